"""The memory of a process and of all that it has started, on Linux."""

import os
import threading
from pathlib import Path

PROCESSES = Path("/proc")
MIB = 2**20


class PeakMemory:
    """The most memory that this process and its descendants held together.

    Measured while a `with` block runs, which it may do more than once. Reading
    takes some milliseconds for each process, so that what is timed should be
    outside of the block.

    Args:
        interval: float. Seconds between two measurements. Defaults to `0.1`.
    """

    def __init__(self, interval=0.1):
        self.interval = interval
        #: MiB; pages that several processes share count once, or less where
        #: others of the machine share them too.
        self.proportional = 0.0
        #: MiB; they count for each of these processes.
        self.resident = 0.0
        #: Processes at the time of the most memory.
        self.processes = 0
        self._stop = threading.Event()

    def __enter__(self):
        self._stop.clear()
        self._thread = threading.Thread(target=self._measure, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _measure(self):
        while True:
            self._take()
            if self._stop.wait(self.interval):
                return

    def _take(self):
        """Measures once."""
        each = [memory_of(process) for process in tree(os.getpid())]
        proportional = sum(memory["Pss"] for memory in each)
        if proportional > self.proportional:
            self.proportional = proportional
            self.processes = len(each)
        self.resident = max(
            self.resident, sum(memory["Rss"] for memory in each)
        )

    def result(self):
        """Returns what was measured, for a line of JSON."""
        return {
            "peak_pss_mib": self.proportional,
            "peak_rss_mib": self.resident,
            "processes": self.processes,
        }


def tree(root):
    """Returns the ids of a process and of all that descend from it."""
    children = {}
    for folder in PROCESSES.glob("[0-9]*"):
        try:
            status = (folder / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        # After the name, which stands in brackets and may hold any of them.
        parent = int(status.rpartition(")")[2].split()[1])
        children.setdefault(parent, []).append(int(folder.name))
    found = [root]
    for process in found:
        found.extend(children.get(process, ()))
    return found


def memory_of(process):
    """Returns the MiB of a process, resident and shared out; 0 if it ended."""
    memory = {"Rss": 0.0, "Pss": 0.0}
    try:
        lines = (PROCESSES / str(process) / "smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return memory
    for line in lines.splitlines():
        name, _, value = line.partition(":")
        if name in memory:
            memory[name] = int(value.split()[0]) * 1024 / MIB
    return memory
