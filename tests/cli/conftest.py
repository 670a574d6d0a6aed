import shutil

import pytest

import keras_rl2 as rl
from keras_rl2.cli import training_run
from keras_rl2.cli.main import main


@pytest.fixture(scope="session")
def train_eagerly():
    """Runs a command without graphs, as `eagerly` does for a whole test."""

    def run(*arguments):
        always = property(lambda agent: True, lambda agent, value: None)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rl.Agent, "run_eagerly", always, raising=False)
            assert main([str(each) for each in arguments]) == 0

    return run


@pytest.fixture(scope="session")
def trained(train_eagerly, tmp_path_factory):
    """The folder of a training, which is not to be changed."""
    logdir = tmp_path_factory.mktemp("runs")
    arguments = ["train", "ppo", "CartPole-v1", "--steps", "1024"]
    small = ["--set", "networks.hidden=[8]", "dataset.passes=2"]
    train_eagerly(*arguments, *small, "--logdir", logdir)
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
    """The requested trainings, none of which takes place."""
    trainings = []

    def record(preset, folder, seed, resume, arguments):
        names = ("checkpoint", "evaluate", "data")
        options = {name: getattr(arguments, name) for name in names}
        options |= {"seed": seed, "resume": resume}
        trainings.append((preset, folder, options))

    monkeypatch.setattr(training_run, "train", record)
    return trainings
