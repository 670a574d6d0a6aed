"""This process' connection to Ray."""

import os
import re
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from typing import ClassVar

from keras_rl2.envs.errors import WorkerError
from keras_rl2.files import fresh_python

# Ray's own attempt at an address without a listener takes minutes.
_SECONDS_TO_REACH = 5.0

_lock = threading.RLock()


def import_ray() -> Any:
    """Imports Ray, which is optional and slow to import.

    Returns:
        The module.

    Raises:
        ImportError: If it is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            "Expected Ray, which `RayWorkers` need: "
            f'pip install "keras-rl2-fit[ray]". Received: {error}'
        ) from error
    return ray


class RayConnection:
    """A connection to Ray, of which a process has one.

    A connection that the user has made with `ray.init` is used, and left as it
    is. One that is made here ends with its last user.

    Args:
        address: str or None, as for `to`.

    Attributes:
        ray: The module.
        starts_ray: bool. Whether Ray itself is started here, on this machine
            alone, and ends with the connection.
        ours: bool. Whether it is made here.
    """

    _current: "ClassVar[RayConnection | None]" = None

    def __init__(self, address: str | None) -> None:
        self.ray = import_ray()
        self.ours = not self.ray.is_initialized()
        self._asked_for = address
        self._users = 0
        address = address or os.environ.get("RAY_ADDRESS") or "local"
        self.starts_ray = self.ours and address == "local"
        if self.ours:
            with _own_handler_of_sigterm():
                self._begin(address)

    @classmethod
    def to(cls, address: str | None) -> "RayConnection":
        """Connects this process to Ray, unless it is already.

        Args:
            address: str or None. Address of Ray, as for `ray.init`; None for
                the environment variable `RAY_ADDRESS`, and without that for a
                Ray of our own on this machine.

        Returns:
            `RayConnection`, for `release`.

        Raises:
            ImportError: If Ray is not installed.
            ValueError: If the process is connected to another address.
            WorkerError: If there is no connection.
        """
        with _lock:
            current = cls._current
            if current is None or not import_ray().is_initialized():
                current = cls(address)
                if not current.ours and address is not None:
                    raise ValueError(
                        "Expected no `address` where `ray.init` has been "
                        f"called already. Received: address={address!r}"
                    )
            elif address not in (None, current._asked_for):
                raise ValueError(
                    "Expected the `address` of the existing workers, "
                    f"{current._asked_for!r}. Received: address={address!r}"
                )
            if current.ours:
                cls._current = current
            current._users += 1
            return current

    @property
    def alive(self) -> bool:
        """Whether the connection exists: a user may have ended it."""
        mine = not self.ours or RayConnection._current is self
        return mine and bool(self.ray.is_initialized())

    def release(self) -> None:
        """Ends one use of the connection."""
        with _lock:
            self._users -= 1
            if not self.ours or self._users or not self.alive:
                return
            RayConnection._current = None
            with _own_handler_of_sigterm():
                self.ray.shutdown()

    def _begin(self, address: str) -> None:
        """Starts Ray, or connects to one that runs."""
        settings: dict[str, Any] = {}
        if self.starts_ray:
            path = fresh_python.environ()["PYTHONPATH"]
            settings = {
                "include_dashboard": False,
                # On other clusters, each machine has its own installation.
                "runtime_env": {"env_vars": {"PYTHONPATH": path}},
            }
        try:
            _try_to_reach(address)
            self.ray.init(address, configure_logging=False, **settings)
        except (OSError, RuntimeError) as error:
            raise WorkerError(
                f"Expected to reach Ray at {address!r}. Received: {error}"
            ) from error


def _try_to_reach(address: str) -> None:
    """Raises an OSError if nothing is at an address with a port."""
    found = re.fullmatch(r"(?:ray://)?\[?([^/]*?)\]?:(\d+)", address)
    if found is not None:
        host, port = found.groups()
        socket.create_connection((host, int(port)), _SECONDS_TO_REACH).close()


@contextmanager
def _own_handler_of_sigterm() -> Iterator[None]:
    """Keeps the handler of a signal that Ray takes for itself.

    It is put back only if it is the user's, or that of a callback of ours.
    Without any, Ray's own handler ends its processes with this one.
    """
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        in_main = threading.current_thread() is threading.main_thread()
        if callable(before) and in_main:
            signal.signal(signal.SIGTERM, before)
