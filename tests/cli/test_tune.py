"""`keras-rl2 tune`: its plan, resuming, and the best preset."""

import json
import signal
from pathlib import Path

import numpy as np
import pytest

from keras_rl2 import presets
from keras_rl2.cli import learning_curves
from keras_rl2.cli import tuning_run
from keras_rl2.cli.main import main
from keras_rl2.presets import find_space
from support.hparams_tab import table
from support.run_folders import rows_of

optuna = pytest.importorskip("optuna")
journal = pytest.importorskip("optuna.storages.journal")

ONE_RATE = ["--space", "space.json"]


def study_of(folder):
    """Returns the study that a folder keeps."""
    backend = journal.JournalFileBackend(str(Path(folder) / "study.journal"))
    return optuna.load_study(
        study_name=Path(folder).name,
        storage=optuna.storages.JournalStorage(backend),
    )


def tune(*options, algorithm="ppo", env="CartPole-v1"):
    return main(["tune", algorithm, env, *map(str, options)])


@pytest.fixture(autouse=True)
def space(tmp_path, monkeypatch):
    """A search space of one setting in the working directory."""
    monkeypatch.chdir(tmp_path)
    ranges = {"optimizer.learning_rate": {"low": 1e-4, "high": 1e-2}}
    data = {"algorithm": "PPO", "ranges": ranges}
    (tmp_path / "space.json").write_text(json.dumps(data))


@pytest.fixture
def planned(monkeypatch):
    """What trials are asked for, none of which takes place."""
    calls = []
    monkeypatch.setattr(tuning_run, "tune", lambda *given: calls.append(given))
    return calls


class Trials:
    """Trials that are over at once, worth their learning rates."""

    def __init__(self):
        self.rates = []
        self.interrupt_at = None
        self.signal = signal.SIGINT
        self.prune = False
        self.within = lambda: None

    def __call__(self, trial, plan, folder, episodes):
        (rate,) = plan.space.suggest(trial).values()
        self.rates.append(rate)
        if len(self.rates) - 1 == self.interrupt_at:
            if self.signal == signal.SIGINT:
                # A shell in the background has it ignored.
                raise KeyboardInterrupt
            signal.raise_signal(self.signal)
        self.within()
        trial.report(rate, 100)
        if self.prune and trial.number % 2:
            raise optuna.TrialPruned
        return rate


@pytest.fixture
def trials(monkeypatch):
    found = Trials()
    monkeypatch.setattr(tuning_run, "_train", found)
    return found


class TestWhatIsAskedFor:
    def test_without_options(self, planned, tmp_path):
        assert tune() == 0
        ((study, plan, folder, trials, pruner),) = planned
        assert plan.preset == presets.find("PPO", "CartPole-v1")
        # A round of 2048 steps of 8 environments is no tenth of a run.
        space = find_space("PPO").with_ranges(
            {"dataset.horizon": [32, 64, 128, 256, 512, 1024]}
        )
        assert plan.space == space
        assert (plan.seeds, plan.reports) == ([0, 1], 10)
        assert (trials, pruner) == (50, "median")
        assert folder.as_posix() == "tuning/PPO-CartPole-v1"
        assert study.study_name == "PPO-CartPole-v1"
        assert (tmp_path / folder / "study.journal").is_file()

    def test_with_options(self, planned):
        options = ["--trials", 7, "--steps", "2e4", "--seeds", 3, "--seed", 5]
        options += ["--pruner", "none", "--reports", 4, "--envs", 2]
        options += ["--set", "agent.gamma=0.9", "networks.hidden=[8]"]
        options += ["--search", "agent.gae_lambda=null"]
        options += ["--search", 'dataset.passes={"low":1,"high":3}']
        options += ["--study", "mine", "--logdir", "there"]
        assert tune(*options) == 0
        ((_, plan, folder, trials, pruner),) = planned
        assert plan.preset.total_steps == 20_000
        assert plan.preset.num_envs == 2
        assert plan.preset.agent["gamma"] == 0.9
        assert plan.preset.networks["hidden"] == [8]
        ranges = plan.space.ranges
        assert not {"agent.gamma", "agent.gae_lambda"} & set(ranges)
        assert "networks.hidden" not in ranges
        assert ranges["dataset.passes"] == {"low": 1, "high": 3}
        assert (plan.seeds, plan.reports) == ([5, 6, 7], 4)
        assert (trials, pruner) == (7, "none")
        assert folder.as_posix() == "there/mine"

    def test_a_dry_run_prints_the_space(self, capsys, planned, tmp_path):
        assert tune("--dry-run", *ONE_RATE, "--seeds", 1) == 0
        assert capsys.readouterr().out.splitlines() == [
            "PPO on CartPole-v1, 1 settings, 1 seed of 100,000 steps",
            'optimizer.learning_rate      {"low": 0.0001, "high": 0.01}',
        ]
        assert not planned
        assert not (tmp_path / "tuning").exists()

    def test_invalid_options_are_refused(self, refused, tmp_path):
        gamma = "agent.gamma=[0,1]"
        for options, said in (
            (["--trials", "0"], "--trials: expected a number of at least 1"),
            (["--seeds", "0"], "--seeds"),
            (["--pruner", "mean"], "invalid choice: 'mean'"),
            (["--steps", "5"], "--reports 10 are more than the steps"),
            (["--search", "agent.gama=[0,1]"], "perhaps 'agent.gamma'"),
            (
                ["--set", "agent.gamma=1", "--search", gamma],
                "agent.gamma: expected either a value",
            ),
            (
                ["--envs", "2", "--search", "num_envs=[2,4]"],
                "num_envs: expected either a value",
            ),
            (["--space", "nowhere.json"], "nowhere.json"),
            (["--storage", "nonsense://x"], "--storage nonsense://x: expected"),
            (["--preset", "Pendulum-v9"], "environment with a preset of PPO"),
            (["--env-kwargs", "nonsense=1"], "nonsense"),
        ):
            assert said in refused("tune", "ppo", "CartPole-v1", *options)
        for algorithm, options, said in (
            ("ppoo", [], "Expected an algorithm"),
            ("cql", [], "CQL learns from recorded data"),
            ("a2c", ONE_RATE, "is one of PPO, not of A2C"),
        ):
            assert said in refused("tune", algorithm, "CartPole-v1", *options)
        assert not (tmp_path / "tuning" / "PPO-CartPole-v1").exists()

    def test_normalization_where_the_doctor_asks_for_it(self, planned, capsys):
        assert main(["doctor", "MountainCar-v0"]) == 1
        assert "use normalize_observations=True" in capsys.readouterr().out
        name = "networks.normalize_observations"
        said = f"{name}: searched too: some observations deviate by"
        for options, searched in (
            (["--study", "a"], [False, True]),
            (["--study", "b", "--set", f"{name}=true"], None),
            (["--study", "c", "--search", f"{name}=null"], None),
        ):
            assert tune(*options, env="MountainCar-v0") == 0
            _, plan, *_ = planned.pop()
            assert plan.space.ranges.get(name) == searched
            assert (said in capsys.readouterr().out) == bool(searched)


@pytest.mark.parametrize(
    "storage",
    [
        None,
        pytest.param("sqlite:///x.db", marks=pytest.mark.slow),
    ],
)
def test_the_same_command_goes_on(storage, trials, capsys, tmp_path):
    options = [*ONE_RATE, *(["--storage", storage] if storage else [])]
    assert tune(*options, "--trials", 3) == 0
    assert "resumed" not in capsys.readouterr().out
    assert tune(*options, "--trials", 5) == 0
    assert "5 trials, resumed at trial 3" in capsys.readouterr().out
    assert len(trials.rates) == 5
    # Nothing is drawn twice because the search began anew.
    assert len(set(trials.rates)) == 5
    assert tune(*options, "--trials", 5) == 0
    assert len(trials.rates) == 5
    out = capsys.readouterr().out
    assert f"return {max(trials.rates):.1f}, trial" in out
    # The folder may be moved with its journal.
    (tmp_path / "tuning").rename(tmp_path / "elsewhere")
    moved = ["--logdir", "elsewhere", "--trials", 6]
    assert tune(*options, *moved) == 0
    assert len(trials.rates) == 6
    if storage:
        assert (tmp_path / storage.removeprefix("sqlite:///")).is_file()


def test_another_storage_does_not_write_over_what_was_found(
    trials, refused, tmp_path
):
    other = ["--storage", "other.journal"]
    assert tune(*ONE_RATE, "--trials", 2) == 0
    folder = tmp_path / "tuning" / "PPO-CartPole-v1"
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert "best.json" in {path.name for path in before}
    command = ["tune", "ppo", "CartPole-v1", *ONE_RATE, *other]
    for more in ([], ["--overwrite"]):
        line = refused(*command, *more, "--trials", 1)
        assert "--study or --logdir keeps others apart" in line
        assert {p: p.read_bytes() for p in before} == before
    # Under another name both are kept, and the first one goes on.
    assert tune(*ONE_RATE, *other, "--study", "b", "--trials", 1) == 0
    assert (tmp_path / "tuning" / "b" / "best.json").is_file()
    assert tune(*ONE_RATE, "--trials", 3) == 0
    assert len(trials.rates) == 4


def test_two_processes_do_not_draw_the_same(trials):
    """One runs a trial while the other has begun its own."""

    def other():
        if len(trials.rates) == 1:
            assert tune(*ONE_RATE, "--trials", 1) == 0

    trials.within = other
    assert tune(*ONE_RATE, "--trials", 1) == 0
    assert len(set(trials.rates)) == 2


def test_the_best_is_a_preset_for_train(trials, asked, capsys, tmp_path):
    trials.prune = True
    assert tune(*ONE_RATE, "--trials", 4) == 0
    folder = tmp_path / "tuning" / "PPO-CartPole-v1"
    kept = study_of(folder).trials
    assert [each.state.name for each in kept] == ["COMPLETE", "PRUNED"] * 2
    assert [each.value for each in kept] == trials.rates
    out = capsys.readouterr().out
    assert "4 trials, 2 of them to 100,000 steps, 2 pruned" in out
    best = presets.read(folder / "best.json")
    base = presets.find("PPO", "CartPole-v1")
    assert best.agent == base.agent
    assert best.optimizer["learning_rate"] == {
        "schedule": "linear",
        "initial": max(trials.rates[::2]),
        "final": 0.0,
    }
    assert "best of 4 trials" in best.source
    path = str(folder / "best.json")
    assert main(["train", "ppo", "CartPole-v1", "--preset", path]) == 0
    assert asked[0][0] == best


@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM],
)
def test_a_trial_that_was_broken_off_comes_first_again(number, trials, capsys):
    trials.interrupt_at, trials.signal = 2, number
    before = signal.getsignal(signal.SIGTERM)
    assert tune(*ONE_RATE, "--trials", 4) == 128 + number
    assert signal.getsignal(signal.SIGTERM) is before
    captured = capsys.readouterr()
    assert "2 trials, 2 of them" in captured.out
    said = "keras-rl2: interrupted\n" if number == signal.SIGINT else ""
    assert captured.err.endswith(said)
    assert "Traceback" not in captured.err
    assert tune(*ONE_RATE, "--trials", 4) == 0
    assert len(trials.rates) == 5
    assert trials.rates[3] == trials.rates[2]
    assert "4 trials, 4 of them" in capsys.readouterr().out
    states = [t.state.name for t in study_of("tuning/PPO-CartPole-v1").trials]
    assert states == ["COMPLETE", "COMPLETE", "FAIL", "COMPLETE", "COMPLETE"]


def test_trials_of_another_kind_are_not_mixed_in(
    trials, refused, capsys, tmp_path
):
    assert tune(*ONE_RATE, "--trials", 1) == 0
    capsys.readouterr()
    more = ["--set", "agent.gamma=0.5", "--seeds", "3"]
    line = refused("tune", "ppo", "CartPole-v1", *ONE_RATE, *more)
    assert "preset.agent.gamma, seeds" in line
    assert "--overwrite" in line
    assert len(trials.rates) == 1
    # Trials and pruner may be others.
    assert tune(*ONE_RATE, "--trials", 2, "--pruner", "none") == 0
    folder = tmp_path / "tuning" / "PPO-CartPole-v1"
    (folder / "notes.txt").write_text("mine")
    (folder / "trials" / "0004").mkdir(parents=True)
    assert tune(*ONE_RATE, *more, "--trials", 1, "--overwrite") == 0
    assert len(trials.rates) == 3
    assert "resumed" not in capsys.readouterr().out.splitlines()[-4]
    # What the study wrote is removed, and nothing else.
    assert not (folder / "trials").exists()
    assert "of 1 trials" in presets.read(folder / "best.json").source
    assert (folder / "notes.txt").is_file()


def test_a_study_of_somebody_else_is_refused(refused):
    study = optuna.create_study(
        storage="sqlite:///x.db", study_name="PPO-CartPole-v1"
    )
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    line = refused("tune", "ppo", "CartPole-v1", "--storage", "sqlite:///x.db")
    assert "that keras-rl2 has not made" in line


@pytest.mark.slow
@pytest.mark.usefixtures("eagerly")
def test_a_short_tune_of_three_trials(tmp_path, capsys):
    options = ["--trials", 3, "--steps", 1024, "--reports", 2, "--seeds", 2]
    options += ["--set", "networks.hidden=[8]", "dataset.passes=1"]
    options += ["--pruner", "hyperband", *ONE_RATE]
    assert tune(*options) == 0
    capsys.readouterr()
    folder = tmp_path / "tuning" / "PPO-CartPole-v1"
    trials = study_of(folder).trials
    assert len(trials) == 3
    for trial in trials:
        runs = sorted(folder.glob(f"trials/000{trial.number}/seed-*"))
        assert [run.name for run in runs] == ["seed-0", "seed-1"]
        last = []
        for run in runs:
            scored = [r for r in rows_of(run) if r["val_episode_return"]]
            assert len(scored) == len(trial.intermediate_values)
            last.append(float(scored[-1]["val_episode_return"]))
            preset = presets.read(run / "preset.json")
            rate = preset.optimizer["learning_rate"]["initial"]
            assert rate == trial.params["optimizer.learning_rate"]
        mean = learning_curves.interquartile_mean(np.array(last))
        assert trial.value == pytest.approx(float(mean))
    columns, rows = table(folder / "trials")
    assert "optimizer.learning_rate" in columns
    assert sorted(len(row["sessions"]) for row in rows) == [2, 2, 2]
    best = str(folder / "best.json")
    arguments = ["train", "ppo", "CartPole-v1", "--preset", best]
    assert main([*arguments, "--logdir", str(tmp_path / "runs")]) == 0
    assert "agent.keras: return" in capsys.readouterr().out
