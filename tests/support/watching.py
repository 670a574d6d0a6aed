"""What a piece of code does to the machine, seen by Python itself."""

import contextlib
import gc
import resource
import sys
import sysconfig
import time

# Runs something, or would fetch it.
_DOING = {
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.startfile",
    "subprocess.Popen",
    "pickle.find_class",
    "socket.connect",
    "urllib.Request",
}
_watches = []


class Watch:
    """What was done meanwhile.

    Attributes:
        done: list of str. What was run, or opened outside of the folder.
        seconds: float. Processor time of the thread, whatever the machine or
            other threads did, and without the garbage collector: what that
            costs depends on how much earlier tests have left.
        mebibytes: float. What the process's largest size has grown by.
    """

    def __init__(self, folder):
        self.folder = str(folder)
        self.done = []
        self.seconds = 0.0
        self.mebibytes = 0.0


def _hook(event, arguments):
    for watch in _watches:
        if event in _DOING:
            watch.done.append(f"{event} {arguments}")
        elif event == "open" and isinstance(arguments[0], str | bytes):
            path = arguments[0]
            path = path if isinstance(path, str) else path.decode()
            if not path.startswith((watch.folder, *_OWN)):
                watch.done.append(f"open {path}")


_OWN = (
    sys.prefix,
    sys.base_prefix,
    *sysconfig.get_paths().values(),
    __file__.rpartition("/tests/")[0],
    "/proc/",
    "/sys/",
)


@contextlib.contextmanager
def watched(folder):
    """Sees what is done within, but for files in a folder, and libraries'."""
    if not hasattr(watched, "hooked"):
        # It cannot be taken away again.
        sys.addaudithook(_hook)
        watched.hooked = True
    watch = Watch(folder)
    _watches.append(watch)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    collects = gc.isenabled()
    gc.disable()
    start = time.thread_time()
    try:
        yield watch
    finally:
        watch.seconds = time.thread_time() - start
        if collects:
            gc.enable()
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        watch.mebibytes = (after - before) / 1024
        _watches.remove(watch)
