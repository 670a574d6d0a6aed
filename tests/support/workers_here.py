"""Workers whose processes are this one, so that they can be lost at will."""

import pickle

from keras_rl2.workers.worker_host import WorkerHost
from keras_rl2.workers.worker_pool import Link
from keras_rl2.workers.worker_pool import LinkLostError
from keras_rl2.workers.worker_pool import Transport
from keras_rl2.workers.workers import Workers
from support.worker_processes import held_by
from support.worker_processes import transport_of


class LinkHere(Link):
    """A worker that carries out a request when its answer is awaited.

    Attributes:
        lost: bool. Whether it is gone.
        lost_before: str or None. The method with whose next call it goes.
    """

    def __init__(self):
        self.host = WorkerHost()
        self.lost = False
        self.lost_before = None
        self._asked = None

    def send(self, method, arguments):
        assert self._asked is None, "a call before the last one was answered"
        if self.lost:
            raise LinkLostError("lost")
        self._asked = pickle.dumps((method, arguments))

    def receive(self):
        if not self.lost:
            method, arguments = pickle.loads(self._asked)
            self._asked = None
            self.lost = method == self.lost_before
        if self.lost:
            raise LinkLostError("")
        answer = self.host.call(method, *arguments)
        return pickle.loads(pickle.dumps(answer))

    def kill(self):
        self.lost = True


class TransportHere(Transport):
    """Starts workers in this process.

    Attributes:
        links: list of `LinkHere`. All so far.
        most: int. How many may be started.
        lost_before: str or None. The method with whose first call those go
            that are started from now on.
        closed: bool. Whether it has been closed.
    """

    def __init__(self):
        super().__init__()
        self.links = []
        self.most = 1000
        self.lost_before = None
        self.closed = False

    def _begin(self):
        if len(self.links) >= self.most:
            raise LinkLostError("there is no more")
        link = LinkHere()
        link.lost_before = self.lost_before
        self.links.append(link)
        return link

    def _wait_for_start(self, links, seconds):
        pass

    def wait(self, links, seconds):
        return links[:1]

    def close(self):
        self.closed = True
        for link in self.links:
            link.host.close()


class WorkersHere(Workers):
    """Workers in this process.

    Attributes:
        transport: `TransportHere`, once they have been started.
    """

    def _transport(self):
        self.transport = TransportHere()
        return self.transport


def lose(data, index, method="collect"):
    """Loses a worker of a dataset with its next call of a method.

    Args:
        data: The dataset, which has `WorkersHere`.
        index: int. Which worker it is.
        method: str. Defaults to `"collect"`.

    Returns:
        Its `TransportHere`.
    """
    held = held_by(data.env)
    [link] = [each for each in held if index == held[each]]
    link.lost_before = method
    return transport_of(data)
