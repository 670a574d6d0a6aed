import itertools
import json
import os
import signal
import subprocess
import sys

import gymnasium
import keras
import pytest

import keras_rl2 as rl
from keras_rl2 import presets
from keras_rl2.cli.main import main
from keras_rl2.cli.run_folder import RunFolder
from keras_rl2.cli.training_run import AgentFiles
from keras_rl2.cli.training_run import ProgressFile
from support.run_folders import rows_of
from support.taxi import TAXI


def train(logdir, *options, algorithm="ppo"):
    arguments = ["train", algorithm, "CartPole-v1", "--logdir", str(logdir)]
    return main([*arguments, *options])


def test_files_of_a_run_folder(trained):
    names = {path.name for path in trained.iterdir()}
    events = {name for name in names if name.startswith("events.out.tfevents")}
    assert names - events == {
        "agent.keras",
        "best.json",
        "best.keras",
        "checkpoints",
        "preset.json",
        "progress.csv",
    }
    assert len(events) == 1
    preset = json.loads((trained / "preset.json").read_text())
    assert preset["algorithm"] == "PPO"
    assert preset["environment"] == "CartPole-v1"
    assert preset["total_steps"] == 1024
    rows = rows_of(trained)
    agent = keras.models.load_model(trained / "agent.keras")
    assert isinstance(agent, rl.PPO)
    assert int(rows[-1]["env_steps"]) == agent.env_steps > 900
    assert float(rows[-1]["episode_return"]) > 8
    assert float(rows[-1]["steps_per_second"]) > 0
    assert float(rows[-1]["approx_kl"]) >= 0


@pytest.mark.slow
@pytest.mark.usefixtures("eagerly")
def test_seeds_are_trained_one_after_another(tmp_path, capsys):
    """Each repeats, whatever was trained before it."""
    for name, seeds in (("a", ["3", "--seeds", "2"]), ("b", ["4"])):
        options = ["--steps", "64", "--seed", *seeds]
        assert train(tmp_path / name, *options, algorithm="reinforce") == 0
    printed = capsys.readouterr().out
    assert printed.index("seed 3") < printed.index("seed 4")
    folders = sorted(tmp_path.glob("*/REINFORCE-CartPole-v1/*"))
    assert [each.name for each in folders] == ["seed-3", "seed-4", "seed-4"]
    tables = [rows_of(folder) for folder in folders]
    for row in itertools.chain(*tables):
        del row["steps_per_second"]
    assert tables[1] == tables[2]
    assert tables[0] != tables[1]


DEFAULTS = {
    "seed": 0,
    "checkpoint": 100_000,
    "evaluate": None,
    "resume": False,
    "data": None,
}


def test_a_training_is_that_of_the_preset_of_the_environment(
    asked, tmp_path, capsys
):
    assert train(tmp_path) == 0
    ((preset, folder, options),) = asked
    assert preset == presets.find("PPO", "CartPole-v1")
    assert folder.path == tmp_path / "PPO-CartPole-v1" / "seed-0"
    assert options == DEFAULTS
    assert capsys.readouterr().out == ""


def test_options_and_settings_change_it(asked, tmp_path):
    settings = ["total_steps=5", "agent.gamma=0.5", "num_envs=3"]
    options = ["--checkpoint", "7", "--envs", "2", "--seed", "4"]
    options += ["--evaluate", "9"]
    assert train(tmp_path, *options, "--set", *settings) == 0
    ((preset, _, options),) = asked
    assert preset.total_steps == 5
    assert preset.agent["gamma"] == 0.5
    # An option of its own is the clearer word.
    assert preset.num_envs == 2
    given = {"seed": 4, "checkpoint": 7, "evaluate": 9}
    assert options == {**DEFAULTS, **given}


def test_a_preset_made_for_another_environment(asked, tmp_path, capsys):
    made_for = presets.find("PPO", "CartPole-v1")
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(made_for.to_dict()))
    for name in (str(file), "CartPole-v1"):
        arguments = ["train", "PPO", "Acrobot-v1", "--preset", name]
        assert main([*arguments, "--logdir", str(tmp_path / "runs")]) == 0
        preset, folder, _ = asked.pop()
        assert preset == made_for.with_settings({"environment": "Acrobot-v1"})
        assert folder.path.parent.name == "PPO-Acrobot-v1"
        assert capsys.readouterr().out == ""


def test_the_defaults_of_the_algorithm(asked, tmp_path, capsys):
    assert train(tmp_path, "--preset", "default") == 0
    assert asked.pop()[0] == presets.default("PPO", "CartPole-v1")
    assert capsys.readouterr().out == ""
    # Also where there is no preset, which is said.
    arguments = ["train", "reinforce", TAXI]
    assert main([*arguments, "--logdir", str(tmp_path)]) == 0
    assert asked[0][0] == presets.default("REINFORCE", TAXI)
    said = f"no preset of REINFORCE for {TAXI}: the algorithm's defaults\n"
    assert capsys.readouterr().out == said


def test_seeds_that_have_no_agent_are_begun(asked, run_folder):
    logdir = run_folder.parents[1]
    options = ["--resume", "--seeds", "2", "--steps", "5000"]
    assert train(logdir, *options) == 0
    (first, _, one), (second, _, other) = asked
    assert (one["resume"], other["resume"]) == (True, False)
    assert first.total_steps == second.total_steps == 5000


def test_a_preset_of_another_algorithm_is_refused(trained, refused):
    file = trained / "preset.json"
    line = refused("train", "sac", "Pendulum-v1", "--preset", file)
    assert "PPO, not of SAC" in line


def test_a_training_is_not_written_over(run_folder, refused, asked):
    logdir = run_folder.parents[1]
    line = refused("train", "ppo", "CartPole-v1", "--logdir", logdir)
    assert "--resume" in line
    assert "--overwrite" in line
    assert not asked
    assert train(logdir, "--overwrite") == 0
    assert len(asked) == 1
    # Which removes the training, and nothing else.
    (run_folder / "notes.txt").write_text("mine")
    RunFolder(run_folder).clear()
    assert [path.name for path in run_folder.iterdir()] == ["notes.txt"]


@pytest.mark.usefixtures("eagerly")
class TestResume:
    def test_a_resumed_training_ends_at_the_total_steps(self, run_folder):
        first = rows_of(run_folder)
        logdir = run_folder.parents[1]
        more = ["--resume", "--steps", "4000", "--evaluate", "0"]
        assert train(logdir, *more) == 0
        rows = rows_of(run_folder)
        assert rows[: len(first)] == first
        steps = [int(row["env_steps"]) for row in rows]
        assert steps == sorted(set(steps))
        agent = keras.models.load_model(run_folder / "agent.keras")
        # The resets of a NEXT_STEP environment count as steps of `fit`.
        assert agent.env_steps == steps[-1] > 3600
        preset = json.loads((run_folder / "preset.json").read_text())
        assert preset["total_steps"] == 4000
        # Schedules span the steps asked for. The learning rate, 1e-3 at
        # first, had come down to 0; now more than half are behind it.
        rates = [float(row["learning_rate"]) for row in rows]
        assert rates[len(first) - 1] == 0.0
        assert 3.5e-4 < rates[len(first)] < 5e-4
        assert rates[-1] < 1e-4

    def test_killed_before_its_last_evaluation(self, run_folder):
        for name in ("best.keras", "best.json"):
            (run_folder / name).unlink()
        assert train(run_folder.parents[1], "--resume") == 0
        best = rl.load(run_folder / "best.keras")
        score = json.loads((run_folder / "best.json").read_text())
        assert score["env_steps"] == best.env_steps

    def test_an_agent_that_does_not_fit(self, run_folder, refused):
        preset = json.loads((run_folder / "preset.json").read_text())
        logdir = run_folder.parents[1]
        options = ["--resume", "--steps", "3000", "--logdir", logdir]
        preset["networks"] = {"hidden": [16]}
        (run_folder / "preset.json").write_text(json.dumps(preset))
        line = refused("train", "ppo", "CartPole-v1", *options)
        assert "to be a checkpoint of the same training" in line


@pytest.mark.slow
def test_ctrl_c_saves_the_agent(tmp_path):
    process = subprocess.Popen(
        [
            *(sys.executable, "-u", "-m", "keras_rl2.cli"),
            *("train", "ppo", "CartPole-v1", "--steps", "10_000_000"),
            *("--set", "networks.hidden=[8]", "dataset.passes=1"),
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # TensorFlow may say what it likes: nothing of ours depends on it.
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0"},
        # A shell that runs tests in the background has them ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        for line in process.stdout:
            if "steps/s" in line:
                process.send_signal(signal.SIGINT)
                break
        out, error = process.communicate()
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in error
    assert error.splitlines().count("keras-rl2: interrupted") == 1
    # What was broken off is closed before the process ends, not by its end.
    assert "Error occurred when finalizing" not in error
    assert "saved at" in out
    folder = tmp_path / "runs" / "PPO-CartPole-v1" / "seed-0"
    agent = keras.models.load_model(folder / "agent.keras")
    assert agent.env_steps > 0
    assert not list(folder.glob("*partial*"))


@pytest.mark.usefixtures("eagerly")
def test_an_interrupted_training_can_be_resumed(tmp_path, monkeypatch, capsys):
    written = ProgressFile.on_epoch_end

    def interrupt(self, epoch, logs=None):
        written(self, epoch, logs)
        if epoch == 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ProgressFile, "on_epoch_end", interrupt)
        small = ["--set", "networks.hidden=[8]", "dataset.passes=1"]
        small += ["--checkpoint", "200"]
        assert train(tmp_path, "--steps", "800", *small) == 130
    assert "interrupted" in capsys.readouterr().err
    folder = tmp_path / "PPO-CartPole-v1" / "seed-0"
    assert len(rows_of(folder)) == 2
    assert train(tmp_path, "--resume") == 0
    # The resets of a NEXT_STEP environment count as steps of `fit`.
    assert int(rows_of(folder)[-1]["env_steps"]) > 700


@pytest.mark.usefixtures("eagerly")
def test_a_failing_environment_costs_no_training(tmp_path):
    class Failing(gymnasium.envs.classic_control.CartPoleEnv):
        steps = 0

        def step(self, action):
            Failing.steps += 1
            if Failing.steps == 600:
                raise RuntimeError("the motor is hot")
            return super().step(action)

    gymnasium.register("Failing-v0", Failing, max_episode_steps=200)
    arguments = ["train", "ppo", "Failing-v0", "--logdir", str(tmp_path)]
    settings = ["--set", "dataset.horizon=128", "networks.hidden=[8]"]
    settings += ["dataset.passes=1"]
    try:
        with pytest.raises(RuntimeError, match="the motor is hot"):
            # Evaluations take steps in the environment as well.
            main([*arguments, *settings, "--steps", "2000", "--evaluate", "0"])
    finally:
        del gymnasium.registry["Failing-v0"]
    folder = tmp_path / "PPO-Failing-v0" / "seed-0"
    agent = keras.models.load_model(folder / "agent.keras")
    assert agent.env_steps == 512


class FakeAgent:
    """Counts steps, and saves them as text."""

    def __init__(self):
        self.env_steps = 0

    def save(self, path):
        assert path.suffix == ".keras"
        path.write_text(str(self.env_steps))


class TestAgentFiles:
    def test_saves_every_so_many_steps(self, tmp_path):
        cases = ((0, []), (20, [20, 40]), (25, [30]), (100, []))
        for every, saved in cases:
            folder = RunFolder(tmp_path / str(every))
            folder.path.mkdir()
            files = AgentFiles(folder, None, every, 0)
            agent = FakeAgent()
            files.set_model(agent)
            files.on_train_begin()
            seen = set()
            for epoch in range(5):
                agent.env_steps += 10
                files.on_epoch_begin(epoch)
                if folder.agent.exists():
                    seen.add(int(folder.agent.read_text()))
            assert sorted(seen) == saved, every


class TestProgressFile:
    def file(self, path, env_steps):
        progress = ProgressFile(path)
        agent = FakeAgent()
        agent.env_steps = env_steps
        progress.set_model(agent)
        progress.on_train_begin()
        return progress

    def test_rows_that_were_lost_with_the_agent_are_dropped(self, tmp_path):
        path = tmp_path / "progress.csv"
        progress = self.file(path, 0)
        for count, steps in enumerate((10, 20, 30), 1):
            progress.on_epoch_end(0, {"env_steps": steps, "loss": 0.5})
            # They can be read while it is written.
            assert len(path.read_text().splitlines()) == 1 + count
        progress.on_train_end()
        # The agent was last saved at 20 steps.
        progress = self.file(path, 20)
        progress.on_epoch_end(0, {"loss": 0.25, "env_steps": 31, "new": 1.0})
        progress.on_train_end()
        columns = "env_steps,episode_return,episode_length,steps_per_second"
        assert path.read_text().split() == [
            f"{columns},val_episode_return,loss",
            "10,,,,,0.5",
            "20,,,,,0.5",
            "31,,,,,0.25",
        ]
