"""Workers whose processes are this one, so that they can be lost at will."""

import tempfile
from collections import deque

from keras_rl2.workers.shared_memory import Message
from keras_rl2.workers.shared_memory import SharedMemoryReceiver
from keras_rl2.workers.shared_memory import SharedMemorySender
from keras_rl2.workers.transport import Answer
from keras_rl2.workers.transport import Link
from keras_rl2.workers.transport import LinkLostError
from keras_rl2.workers.transport import Transport
from keras_rl2.workers.worker_host import WorkerHost
from keras_rl2.workers.workers import Workers
from support.worker_processes import held_by
from support.worker_processes import transport_of


class LinkHere(Link):
    """A worker that does what it is asked for when the answer is wanted.

    Attributes:
        lost: bool. Whether it is gone.
        lost_before: str or None. The method with whose next call it goes.
    """

    def __init__(self, folder, name, sender):
        self.host = WorkerHost()
        self.lost = False
        self.lost_before = None
        self._to = sender
        self._from = SharedMemorySender(folder, name)
        self._reads = SharedMemoryReceiver()
        self._asked = deque()

    def send(self, index, method, arguments):
        if self.lost:
            raise LinkLostError("lost")
        shared = [each for each in arguments if isinstance(each, Message)]
        own = tuple(each for each in arguments if not isinstance(each, Message))
        self._asked.append((index, method, shared, self._to.pack(own)))

    def receive(self):
        if not self.lost and self._asked[0][1] == self.lost_before:
            self.lost = True
        if self.lost:
            raise LinkLostError("")
        index, method, shared, own = self._asked.popleft()
        arguments = [self._reads.unpack(each) for each in shared]
        arguments += self._reads.unpack(own)
        message = self._from.pack(self.host.call(index, method, *arguments))
        well, value = self._reads.unpack(message)
        self._to.release(own)
        return Answer(well, value, message)

    def release(self, token):
        self._from.release(token)

    def kill(self):
        self.lost = True
        while self._asked:
            self._to.release(self._asked.popleft()[-1])

    def close(self):
        self.host.close()


class TransportHere(Transport):
    """Starts workers in this process.

    Args:
        folder: For shared memory.

    Attributes:
        links: list of `LinkHere`. All so far.
        most: int. How many may be started.
        fails: int. How often none is started before one is.
        lost_before: str or None. The method with whose first call those go
            that are started from now on.
        closed: bool. Whether it has been closed.
    """

    def __init__(self, folder):
        self.folder = folder
        self.links = []
        self.most = 1000
        self.fails = 0
        self.lost_before = None
        self.closed = False
        self._sender = SharedMemorySender(folder, "to")

    def start(self, count, seconds):
        self.fails -= 1
        if self.fails >= 0 or len(self.links) + count > self.most:
            raise LinkLostError("there is no more")
        names = [f"from-{len(self.links) + i}" for i in range(count)]
        links = [LinkHere(self.folder, each, self._sender) for each in names]
        for link in links:
            link.lost_before = self.lost_before
        self.links += links
        return links

    def unread(self):
        """Returns how many messages to workers lie in memory."""
        return len(self._sender._taken)

    def share(self, value):
        return self._sender.pack(value)

    def forget(self, shared):
        self._sender.release(shared)

    def wait(self, links, seconds):
        return links[:1]

    def close(self):
        self.closed = True
        for link in self.links:
            link.close()


class WorkersHere(Workers):
    """Workers in this process, over the same shared memory.

    Args:
        folder: Where it is.
        count: int. As of `Workers`.
        **kwargs: As of `Workers`.

    Attributes:
        transport: `TransportHere`, once they have been started.
    """

    def __init__(self, folder, count=2, **kwargs):
        super().__init__(count, **kwargs)
        self.folder = folder

    def _transport(self):
        self.transport = TransportHere(tempfile.mkdtemp(dir=self.folder))
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
    [link] = [each for each in held if index in held[each]]
    link.lost_before = method
    return transport_of(data)
