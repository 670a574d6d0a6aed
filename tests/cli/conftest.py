import shutil

import pytest

from keras_rl2.cli import training_run
from keras_rl2.cli.main import main


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """The folder of a training, which is not to be changed."""
    logdir = tmp_path_factory.mktemp("runs")
    arguments = ["train", "ppo", "CartPole-v1", "--steps", "1024"]
    small = ["--set", "networks.hidden=[8]", "dataset.passes=2"]
    assert main([*arguments, *small, "--logdir", str(logdir)]) == 0
    return logdir / "PPO-CartPole-v1" / "seed-0"


@pytest.fixture
def run_folder(trained, tmp_path):
    """A training of one's own."""
    folder = tmp_path / "runs" / "PPO-CartPole-v1" / "seed-0"
    shutil.copytree(trained, folder)
    return folder


@pytest.fixture
def refused(capsys):
    """Runs a command that is refused, and returns the one line it prints."""

    def run(*arguments):
        assert main([str(each) for each in arguments]) == 2
        error = capsys.readouterr().err
        assert error.startswith("keras-rl2: ")
        assert error.count("\n") == 1
        assert error.endswith("\n")
        return error

    return run


@pytest.fixture
def asked(monkeypatch):
    """What trainings are asked for, none of which takes place."""
    trainings = []

    def record(preset, folder, **options):
        trainings.append((preset, folder, options))

    monkeypatch.setattr(training_run, "train", record)
    return trainings
