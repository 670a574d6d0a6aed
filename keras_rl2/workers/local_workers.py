"""Worker processes of a dataset on this machine."""

import contextlib
import os
import pickle
import signal
import subprocess
import time
from collections.abc import Iterator
from collections.abc import Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.connection import wait
from typing import Any

from keras_rl2.saving import fresh_python
from keras_rl2.workers import worker_pool
from keras_rl2.workers.worker_pool import Link
from keras_rl2.workers.worker_pool import LinkLostError
from keras_rl2.workers.worker_pool import Transport
from keras_rl2.workers.workers import Workers

_MODULE = "keras_rl2.workers.worker_host"


class LocalWorkers(Workers):
    """Steps a dataset's environments in processes of this machine.

    They pay if a step of the environment takes 100 microseconds and more. Each
    process holds its environments and a copy of the policy, so that there is
    one message to it and one back for a whole rollout, not for each step;
    arrays are passed through a pipe. Rollouts are equal, bit for bit, to
    those of one process with the same environments, as far as each of these has
    a random state of its own.

    The environments of the dataset are specified by an id, or by a function
    that makes one. The script is not imported again, and needs no
    `if __name__ == "__main__"`.

    Args:
        count: int. Number of workers: as many as there are cores, or more if
            the environments wait, for example for a network.
        envs_per_worker: int or None. Environments of each; None for
            `num_envs` of the dataset, shared out evenly. Defaults to `None`.
        timeout: float or None. Seconds that a worker may take for its share
            of a rollout, after which it is replaced as if it had died.
            Defaults to `None`: no limit.
        start_timeout: float. Seconds that the processes may take to start and
            to make their environments. Defaults to `60.0`.

    Raises:
        ValueError: If a number is out of bounds.

    Example:

    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("Acrobot-v1", num_envs=4, horizon=32,
    ...                              workers=LocalWorkers(2), seed=0)
    >>> agent = rl.PPO.for_env(rollouts.env, seed=0)
    >>> history = agent.fit(rollouts, epochs=1, verbose=0)
    >>> history.history["env_steps"]
    [128]
    >>> rollouts.close()
    """

    def _transport(self) -> Transport:
        """Makes the transport that runs the processes."""
        return LocalTransport()


class LocalTransport(Transport):
    """Runs a fresh Python for each worker."""

    def _begin(self) -> Link:
        """Starts a process."""
        return LocalLink()

    def _wait_for_start(self, links: Sequence[Any], seconds: float) -> None:
        """Receives the first message of each process."""
        until = time.monotonic() + seconds
        for link in links:
            if not link.connection.poll(max(until - time.monotonic(), 0.0)):
                raise LinkLostError(
                    f"Expected a worker to start within {seconds:.0f} s. "
                    "Received: no answer"
                )
            try:
                link.connection.recv_bytes()
            except (EOFError, OSError) as error:
                code = link.process.wait()
                raise LinkLostError(
                    "Expected a worker to start. Received: exit code "
                    f"{code} as it started"
                ) from error

    def wait(self, links: Sequence[Any], seconds: float | None) -> list[Link]:
        """Waits for answers; see `Transport`."""
        ready = wait([link.connection for link in links], seconds)
        return [link for link in links if link.connection in ready]

    def close(self) -> None:
        """Ends all processes; see `Transport`."""
        for link in self._links:
            link.connection.close()
        until = time.monotonic() + worker_pool.SECONDS_TO_CLOSE
        for link in self._links:
            with contextlib.suppress(subprocess.TimeoutExpired):
                link.process.wait(max(until - time.monotonic(), 0.0))
        self._end()


class LocalLink(Link):
    """A process of this machine, with a pipe to it.

    It ends itself as soon as this process is gone.
    """

    def __init__(self) -> None:
        self.connection: Connection[Any, Any]
        self.connection, theirs = Pipe()
        with theirs:
            handle = theirs.fileno()
            self.process = subprocess.Popen(
                [*fresh_python.command(_MODULE), str(handle)],
                # Nothing is written to it: its end tells of the end of ours.
                stdin=subprocess.PIPE,
                env=fresh_python.environ(),
                **_settings(handle),
            )

    def send(self, method: str, arguments: Sequence[Any]) -> None:
        """Asks for a call; see `Link`."""
        packed = pickle.dumps((method, arguments))
        with _losses():
            self.connection.send_bytes(packed)

    def receive(self) -> tuple[bool, Any]:
        """Returns the answer; see `Link`."""
        with _losses():
            packed = self.connection.recv_bytes()
        return pickle.loads(packed)

    def kill(self) -> None:
        """Kills the process, and those that its environments started."""
        self.connection.close()
        process = self.process
        if process.returncode is None:
            # `wait` was not called yet: until then, its number is not reused.
            if os.name == "posix":
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()
        assert process.stdin is not None
        process.stdin.close()


@contextlib.contextmanager
def _losses() -> Iterator[None]:
    """Turns errors of a broken connection into `LinkLostError`."""
    try:
        yield
    except (EOFError, OSError) as error:
        raise LinkLostError(str(error)) from error


def _settings(handle: int) -> dict[str, Any]:
    """Returns arguments of a process that has a handle, and gets no Ctrl-C."""
    if os.name == "posix":
        return {"pass_fds": [handle], "process_group": 0}
    # Only Windows defines these names.
    os.set_handle_inheritable(handle, True)  # type: ignore[attr-defined]
    started: Any = subprocess.STARTUPINFO()  # type: ignore[attr-defined]
    started.lpAttributeList = {"handle_list": [handle]}
    group = subprocess.CREATE_NEW_PROCESS_GROUP  # type: ignore[attr-defined]
    return {"startupinfo": started, "creationflags": group}
