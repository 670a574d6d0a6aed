"""A run that is killed, at any event, ends as one that was not."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import checkpointed

REPOSITORY = Path(__file__).parents[2]
# Root may write anywhere unless it gives up what overrides permissions.
AS_ANY_USER = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


def kill(case, directory, kills, command=()):
    """Has runs killed, and says that all of them end as one that was not."""
    arguments = [case, str(directory), str(kills)]
    report = subprocess.run(
        [*command, sys.executable, checkpointed.__file__, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.returncode == 0, report.stderr[-4000:]
    counted = json.loads(report.stdout.splitlines()[-1])
    assert counted["kills"] >= kills
    assert counted["different"] == []
    assert counted["finished"] >= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        *("PPO", "DQN", "GraphDQN", "Minari", "Processes", "LocalWorkers"),
        *(checkpointed.STOCK, checkpointed.COMMAND, "FullDisk"),
    ],
)
def test_at_environment_steps_and_within_the_writing_of_files(case, tmp_path):
    kill(case, tmp_path, 6)


@pytest.mark.slow
def test_where_the_directory_is_at_times_read_only(tmp_path):
    command = [] if os.geteuid() else AS_ANY_USER
    if command and shutil.which(command[0]) is None:
        pytest.skip("root writes anywhere, and there is no setpriv")
    kill("ReadOnly", tmp_path, 6, command=command)
