"""The process of a local worker, which receives calls and answers them.

Messages are pickled: environments, wrappers and exceptions are the user's own
objects, and both ends are processes of one program. Nothing of it is kept.
"""

import contextlib
import os
import pickle
import signal
import sys
import threading
from multiprocessing import connection
from typing import Any

from keras_rl2.workers.worker_host import WorkerHost
from keras_rl2.workers.worker_host import packed_error

_STDIN = 0


def main() -> None:
    """Answers calls until the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_other, daemon=True).start()
    host = WorkerHost()
    # Raised when the connection is closed on the other side.
    with contextlib.suppress(EOFError, OSError), _connected() as connected:
        connected.send_bytes(b"")
        while True:
            index, method, arguments = pickle.loads(connected.recv_bytes())
            answer = host.call(index, method, *arguments)
            try:
                packed = pickle.dumps(answer)
            except Exception as error:
                packed = pickle.dumps((False, packed_error(error)))
            connected.send_bytes(packed)
    host.close()


def _connected() -> Any:
    """Returns the connection, whose handle is the last argument."""
    kind = "Connection" if os.name == "posix" else "PipeConnection"
    return getattr(connection, kind)(int(sys.argv[-1]))


def _end_with_the_other() -> None:
    """Ends this process as soon as the one that started it is gone."""
    while os.read(_STDIN, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
