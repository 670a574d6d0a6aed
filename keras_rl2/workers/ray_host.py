"""The actor in the process of a Ray worker."""

from typing import Any

from keras_rl2.workers.worker_host import WorkerHost


class RayHost:
    """An actor that holds workers, and calls their methods.

    Here it is a class like any other: `RayTransport`, which makes an actor of
    it, imports Ray. In an actor's process, Ray replaces references to its
    object store by their values, with arrays that lie in the store.
    """

    def __init__(self) -> None:
        self._host = WorkerHost()

    def ping(self) -> None:
        """Returns as soon as the process has started."""

    def call(
        self, index: int, method: str, *arguments: Any
    ) -> tuple[bool, Any]:
        """Calls a method of a worker; see `WorkerHost.call`.

        Args:
            index: int. Index of the worker.
            method: str. The method's name.
            *arguments: Its arguments.

        Returns:
            Whether it succeeded, and its return value or error.
        """
        return self._host.call(index, method, *arguments)

    def close(self) -> None:
        """Closes all environments."""
        self._host.close()
