"""The memory of a process together with those that it started."""

import os
import subprocess
import sys

import pytest

from benchmarks import process_tree
from benchmarks.process_tree import MIB
from benchmarks.process_tree import PROCESSES
from benchmarks.process_tree import PeakMemory
from benchmarks.process_tree import memory_of
from benchmarks.process_tree import tree

pytestmark = pytest.mark.skipif(
    not (PROCESSES / "self" / "smaps_rollup").exists(),
    reason="memory by process is read from Linux' /proc",
)
HELD = 64
# Tells its child's id once that holds its memory; both end with their input.
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]])
child.wait()
"""
CHILD = f"""
import os, sys
held = b"x" * ({HELD} * {MIB})
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def grandchild():
    """The id of a process that a process started by this one has started."""
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT, CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield int(process.stdout.readline())
    process.communicate()


def test_the_memory_of_a_grandchild_counts(grandchild):
    processes = tree(os.getpid())
    assert processes[0] == os.getpid()
    assert grandchild in processes
    held = memory_of(grandchild)
    assert HELD < held["Pss"] <= held["Rss"] < 2 * HELD
    with PeakMemory() as memory:
        pass
    measured = memory.result()
    # The test runner's, the parent's and the grandchild's.
    assert measured["processes"] >= 3
    own = memory_of(os.getpid())["Pss"]
    assert measured["peak_pss_mib"] > 0.8 * own + held["Pss"]
    assert measured["peak_rss_mib"] >= measured["peak_pss_mib"]


def test_the_most_of_all_blocks_is_kept(monkeypatch):
    held = iter([100.0, 300.0, 200.0])

    def memory_of(process):
        mib = next(held)
        return {"Pss": mib, "Rss": 2.0 * mib}

    monkeypatch.setattr(process_tree, "memory_of", memory_of)
    monkeypatch.setattr(process_tree, "tree", lambda root: [root])
    # Longer than a block: each measures once.
    memory = PeakMemory(interval=60.0)
    for _ in range(3):
        with memory:
            pass
    assert memory.result() == {
        "peak_pss_mib": 300.0,
        "peak_rss_mib": 600.0,
        "processes": 1,
    }


def test_a_process_that_has_ended_holds_nothing():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert memory_of(process.pid) == {"Rss": 0.0, "Pss": 0.0}
    assert process.pid not in tree(os.getpid())
