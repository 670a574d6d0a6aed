"""A run that is killed, at any event, ends as one that was not."""

import json
import os
import subprocess
import sys

import pytest

from support import checkpointed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "kills"),
    # Each process compiles the rounds in the graph.
    [("PPO", 6), ("DQN", 6), ("Graph", 3)],
)
def test_at_environment_steps_and_within_the_writing_of_files(
    case, kills, tmp_path
):
    report = subprocess.run(
        [
            *(sys.executable, checkpointed.__file__),
            *(case, str(tmp_path), str(kills)),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.returncode == 0, report.stderr[-4000:]
    counted = json.loads(report.stdout.splitlines()[-1])
    assert counted["kills"] >= kills
    assert counted["different"] == []
    assert counted["finished"] >= 1
