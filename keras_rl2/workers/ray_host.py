"""What runs in the process of a Ray worker."""

from typing import Any

from keras_rl2.workers.worker_host import WorkerHost


class RayHost:
    """An actor that holds workers, and does what they are asked for.

    Here it is a class like any other: Ray is imported by who makes an actor
    of it. In an actor's process Ray gives arguments that were put into its
    object store as what they stand for, with arrays that lie in the store.
    """

    def __init__(self) -> None:
        self._host = WorkerHost()

    def ping(self) -> None:
        """Does nothing, once the process is there to do it."""

    def call(
        self, index: int, method: str, *arguments: Any
    ) -> tuple[bool, Any]:
        """Calls a method of a worker; see `WorkerHost.call`.

        Args:
            index: int. Which worker.
            method: str. The method's name.
            *arguments: What it is given.

        Returns:
            Whether it went well, and what it returned or raised.
        """
        return self._host.call(index, method, *arguments)

    def close(self) -> None:
        """Closes all environments."""
        self._host.close()
