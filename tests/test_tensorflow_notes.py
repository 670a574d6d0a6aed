"""TensorFlow starts without its notes, and nothing else is kept back."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from keras_rl2 import tensorflow_notes

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# The others, which do no more in this respect, are run where they train.
IN_SHORT = ("bandit_actor_critic", "dqn_cartpole", "sac_pendulum")
# What TensorFlow, its converter and its interpreter write of themselves.
NOTES = re.compile(
    r"(?m)^(?:[IWE]\d{4} |[\d-]+ [\d:.]+: [IWE] |INFO: |WARNING: All log"
    r"|WARNING:tensorflow|To enable the following).*"
)
LINE = b"%s0000 00:00:1795429057.250521    6591 port.cc:153] oneDNN is on.\n"

FIT = """
import keras_rl2 as rl
import sys
rollouts = rl.RolloutDataset("CartPole-v1", num_envs=2, horizon=32)
agent = rl.PPO.for_env(rollouts.env, seed=0)
agent.fit(rollouts, total_steps=256)
agent.fit(rollouts, total_steps=256)
agent.evaluate("CartPole-v1", episodes=2)
agent.act(rollouts.env.observation_space.sample())
assert "IPython" not in sys.modules
"""


def ran(code, folder, **environment):
    """Runs code in a fresh Python; returns what was written to stderr."""
    unset = {k: v for k, v in os.environ.items() if "TF_CPP" not in k}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**unset, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_lines_below_the_level_are_left_out():
    info, warning, error = (LINE % level for level in (b"I", b"W", b"E"))
    dated = b"2026-01-01 10:00:00.123456: I tensorflow/core/x.cc:12] Hello.\n"
    mine = b"WARNING: mine\n"
    every = info + warning + dated + error + mine
    for level, expected in (
        (1, warning + error + mine),
        (2, error + mine),
        (3, mine),
    ):
        assert tensorflow_notes.without_notes(every, level) == expected


def test_a_driver_that_is_not_there_is_no_error_but_one_that_fails_is():
    start = b"E0000 00:00:1795.2  91 cuda_platform.cc:52] failed call to cuInit"
    absent = start + b": INTERNAL: CUDA error: UNKNOWN ERROR (303)\n"
    failing = start + b": INTERNAL: CUDA error: unknown error (999)\n"
    left = tensorflow_notes.without_notes(absent + failing, 1)
    assert left == failing


def test_stderr_is_back_and_what_matters_is_shown(capfd, monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "1")
    with tensorflow_notes.left_out():
        os.write(2, LINE % b"I" + LINE % b"E")
        with tensorflow_notes.left_out():
            os.write(2, b"within\n")
    os.write(2, b"after\n")
    expected = (LINE % b"E").decode() + "within\nafter\n"
    assert capfd.readouterr().err == expected


def test_all_is_shown_after_an_exception_and_if_the_user_wants_it(
    capfd, monkeypatch
):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "1")

    def fail():
        with tensorflow_notes.left_out():
            os.write(2, LINE % b"I")
            raise ImportError

    with pytest.raises(ImportError):
        fail()
    assert capfd.readouterr().err == (LINE % b"I").decode()
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    with tensorflow_notes.left_out():
        os.write(2, LINE % b"I")
    assert capfd.readouterr().err == (LINE % b"I").decode()


@pytest.mark.slow
def test_a_first_import_and_a_first_fit_write_nothing(tmp_path):
    assert ran(FIT, tmp_path) == ""
    # By whomever TensorFlow is imported.
    assert ran("import keras_rl2, keras; keras.ops.ones(3)", tmp_path) == ""
    code = """
import keras_rl2, tensorflow
assert tensorflow.__spec__.loader is tensorflow.__loader__
"""
    assert ran(code, tmp_path) == ""


@pytest.mark.slow
def test_the_setting_of_the_user_wins(tmp_path):
    code = "import keras_rl2 as rl; rl.PPO"
    said = ran(code, tmp_path, TF_CPP_MIN_LOG_LEVEL="0")
    assert NOTES.search(said)
    # And what was said before we were asked is said.
    said = ran("import keras; import keras_rl2 as rl; rl.PPO", tmp_path)
    assert NOTES.search(said)


@pytest.mark.slow
def test_an_import_that_fails_tells_why(tmp_path):
    (tmp_path / "tensorflow.py").write_text(
        "import os\nos.write(2, b'I0000 0  6 port.cc:153] why\\n')\n"
        "raise ImportError('no such library')\n"
    )
    code = """
import sys; sys.path.insert(0, ".")
import keras_rl2
try:
    import tensorflow
except ImportError as error:
    assert "no such library" in str(error)
else:
    raise AssertionError
"""
    assert "why" in ran(code, tmp_path)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            marks=pytest.mark.slow
            if path.stem in IN_SHORT
            else pytest.mark.learning,
        )
        for path in EXAMPLES
    ],
    ids=lambda path: path.stem,
)
def test_an_example_writes_no_notes(tmp_path, path):
    source = path.read_text()
    for package in ("ray", "minigrid", "optuna", "matplotlib"):
        if package in source.lower():
            pytest.importorskip(package)
    for long, short in (
        # A little more than the warm-up of any.
        (r"total_steps=[\d_]+", "total_steps=1100"),
        (r"(?m)^STEPS = [\d_]+", "STEPS = 1100"),
        (r"EPOCHS, SAMPLES = 0, 300, 100", "EPOCHS, SAMPLES = 0, 20, 10"),
        (r"horizon=1024", "horizon=64"),
        (r"epochs=\d+", "epochs=1"),
        (r"(?m)^TRIALS = \d+", "TRIALS = 1"),
    ):
        source = re.sub(long, short, source)
    said = ran(source, tmp_path)
    assert not NOTES.findall(said)


@pytest.mark.slow
def test_the_command_writes_nothing(tmp_path):
    def run(*arguments):
        argv = ["keras-rl2", *arguments]
        code = f"import sys; sys.argv = {argv!r}\n"
        main = "from keras_rl2.cli.main import main; sys.exit(main())"
        assert ran(code + main, tmp_path) == ""

    run("train", "ppo", "CartPole-v1", "--steps", "512")
    [agent] = map(str, tmp_path.glob("runs/*/*/agent.keras"))
    run("evaluate", agent)
    run("export", agent, "--format", "litert")
