"""Callbacks of a run that was killed end as those of one that was not."""

import csv
import functools
import importlib.util
import inspect
import io
import itertools
import signal
import zipfile

import gymnasium
import h5py
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.saving import callback_states
from keras_rl2.saving import plain_data
from support.checkpointed import outcome_of
from support.checkpointed import rollouts

CALLBACKS = keras.callbacks
pytestmark = pytest.mark.usefixtures("in_the_foreground")
EPOCHS = 10


class Hook(CALLBACKS.Callback):
    """Does something when so many rounds have begun in this process."""

    def __init__(self, rounds, action):
        super().__init__()
        self.rounds = rounds
        self.action = action

    def on_train_batch_begin(self, batch, logs=None):
        self.rounds -= 1
        if not self.rounds:
            self.action()

    def get_state(self):
        """Remembers nothing: each process counts its own."""

    def set_state(self, state):
        pass


def lose_power():
    raise RuntimeError("the power is out")


def interrupt():
    signal.raise_signal(signal.SIGINT)


@functools.cache
def beginning():
    agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    agent.compile(
        keras.optimizers.Adam(1e-2, use_ema=True, ema_momentum=0.5),
        jit_compile=False,
    )
    data = rollouts()
    data.bind(agent)
    # Only environments that were reset once can be put back.
    data.collect()
    agent.optimizer.build(agent.trainable_variables)
    return agent, data, (agent.get_state(), data.get_state())


def begin():
    """Returns an agent and its data as they are when a program begins."""
    agent, data, states = beginning()
    for each, state in zip((agent, data), states, strict=True):
        each.set_state(plain_data.copied(state))
    return agent, data


def fit(folder, *callbacks, epochs=EPOCHS, every_steps=1):
    """Trains in epochs of two rounds, with a checkpoint after each epoch."""
    agent, data = begin()
    checkpoint = rl.callbacks.Checkpoint(
        folder / "run", every_steps=every_steps
    )
    history = agent.fit(
        data, epochs=epochs, callbacks=[*callbacks, checkpoint], verbose=0
    )
    return outcome_of(agent, data, history)


def killed(folder, *callbacks, rounds, by=lose_power):
    """Trains until so many rounds have begun."""
    with pytest.raises((RuntimeError, KeyboardInterrupt)):
        fit(folder, *callbacks, Hook(rounds, by))


def stock_callbacks(folder):
    """Makes callbacks of eight classes, two of some of them.

    The monitored values rise and fall, so that all counters matter.
    """
    return [
        CALLBACKS.TerminateOnNaN(),
        CALLBACKS.LearningRateScheduler(lambda epoch, rate: 0.9 * rate),
        CALLBACKS.ReduceLROnPlateau(
            "loss", factor=0.5, patience=1, cooldown=2, min_delta=1e9
        ),
        # The first epoch is the best one, and that is long ago.
        CALLBACKS.EarlyStopping(
            "loss", patience=9, min_delta=1e9, restore_best_weights=True
        ),
        CALLBACKS.EarlyStopping("env_steps", patience=7, mode="min"),
        CALLBACKS.ModelCheckpoint(
            folder / "best.keras", "loss", save_best_only=True
        ),
        CALLBACKS.ModelCheckpoint(
            folder / "{epoch}-{batch}.weights.h5",
            save_weights_only=True,
            # Of updates, no part of those of an epoch.
            save_freq=9,
        ),
        CALLBACKS.SwapEMAWeights(swap_on_epoch=True),
        CALLBACKS.CSVLogger(folder / "log.csv"),
        CALLBACKS.CSVLogger(folder / "other.csv", separator=";", append=True),
        CALLBACKS.TensorBoard(folder / "board", update_freq="batch"),
    ]


def left_by(callbacks, folder):
    """Returns the attributes of callbacks, and the contents of their files."""
    return {
        "counted": [
            {
                name: value
                for name, value in vars(each).items()
                if isinstance(value, bool | int | float)
            }
            for each in callbacks
            # It goes on in its file.
            if not isinstance(each, CALLBACKS.CSVLogger)
        ],
        "saved": {
            path.name: arrays(path)
            for pattern in ("*.h5", "*.keras")
            for path in sorted(folder.glob(pattern))
        },
    }


def arrays(path):
    """Returns the arrays of a saved model, or of its weights alone."""
    content = path.read_bytes()
    if path.suffix == ".keras":
        with zipfile.ZipFile(path) as archive:
            content = archive.read("model.weights.h5")
    found = {}

    def take(name, item):
        if isinstance(item, h5py.Dataset):
            found[name] = np.array(item)

    with h5py.File(io.BytesIO(content)) as file:
        file.visititems(take)
    return found


def trained(folder, *more):
    """Trains with stock callbacks, and returns all that is left of it."""
    callbacks = stock_callbacks(folder)
    # After every second epoch: there is something to repeat.
    outcome = fit(folder, *callbacks, *more, every_steps=100)
    return outcome, left_by(callbacks, folder)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("whole"))


class TestStock:
    def test_the_callbacks_have_state_that_a_restart_would_lose(self, whole):
        """A run that was killed could otherwise not tell."""
        outcome, left = whole
        # The second `EarlyStopping` has.
        assert outcome["epoch"] == [*range(8)]
        assert sorted(left["saved"]) == [
            *("2-4.weights.h5", "3-8.weights.h5", "5-4.weights.h5"),
            *("6-8.weights.h5", "8-4.weights.h5", "best.keras"),
        ]
        rates = outcome["history"]["learning_rate"]
        halved = [b < 0.7 * a for a, b in itertools.pairwise(rates)]
        assert 2 <= sum(halved) < len(halved) - 2

    # Of 16 rounds. After a signal in the first round of an epoch, the run goes
    # on in the midst of it.
    @pytest.mark.parametrize(
        ("rounds", "by"),
        [
            (8, lose_power),
            (9, interrupt),
            pytest.param(15, lose_power, marks=pytest.mark.slow),
            pytest.param(3, interrupt, marks=pytest.mark.slow),
        ],
    )
    def test_a_resumed_run_equals_the_whole_run(
        self, rounds, by, whole, tmp_path
    ):
        with pytest.raises((RuntimeError, KeyboardInterrupt)):
            trained(tmp_path, Hook(rounds, by))
        for part, expected in zip(trained(tmp_path), whole, strict=True):
            np.testing.assert_equal(part, expected)

    def test_none_is_unknown(self):
        """Keras has no callback that nobody has looked at."""
        # Without a state: a schedule, functions, requests to a server.
        none = {"LambdaCallback", "LearningRateScheduler", "RemoteMonitor"}
        none |= {"TerminateOnNaN", "OrbaxCheckpoint"}
        # Of no `fit` with a checkpoint, or no callback itself.
        none |= {"BackupAndRestore", "Callback", "CallbackList"}
        known = {name.partition(".")[2] for name in callback_states.KEPT}
        found = {
            name
            for name, each in vars(CALLBACKS).items()
            if inspect.isclass(each) and issubclass(each, CALLBACKS.Callback)
        }
        assert found - none - known == {"ProgbarLogger"}

    def test_the_saved_attributes_of_keras_callbacks_exist(self):
        """Names that are not public may be others in a later version."""
        home = {"keras": CALLBACKS}
        if importlib.util.find_spec("wandb") is not None:
            from wandb.integration import keras as of_wandb

            home["wandb"] = of_wandb
        for kind, kept in callback_states.KEPT.items():
            package, name = kind.split(".")
            if package not in home:
                continue
            made = getattr(home[package], name)
            source = "".join(map(inspect.getsource, inspect.getmro(made)[:-1]))
            for attribute in kept.split():
                assert f"self.{attribute} = " in source, kind


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return [*csv.reader(file)]


def epochs_of(path):
    return [row[0] for row in rows(path)]


class TestTables:
    """`CSVLogger`, which empties its file when training begins."""

    def test_a_finished_run_leaves_it(self, tmp_path):
        path = tmp_path / "log.csv"
        fit(tmp_path, CALLBACKS.CSVLogger(path), epochs=2)
        before = path.read_bytes()
        fit(tmp_path, CALLBACKS.CSVLogger(path), epochs=2)
        assert path.read_bytes() == before
        fit(tmp_path, CALLBACKS.CSVLogger(path), epochs=3)
        assert epochs_of(path) == ["epoch", "0", "1", "2"]

    def test_columns_are_those_of_the_first_epoch(self, tmp_path):
        """Later epochs log fewer keys, or more."""

        class Extra(CALLBACKS.Callback):
            def on_epoch_end(self, epoch, logs=None):
                if epoch % 2 == 0:
                    logs["extra"] = epoch

        path = tmp_path / "log.csv"
        killed(tmp_path, Extra(), CALLBACKS.CSVLogger(path), rounds=4)
        fit(tmp_path, Extra(), CALLBACKS.CSVLogger(path), epochs=3)
        header, *found = rows(path)
        extra = header.index("extra")
        assert [row[extra] for row in found] == ["0", "NA", "2"]


def test_backups_of_keras_are_refused(tmp_path):
    agent, _ = begin()
    before = agent.get_weights(), agent.env_steps
    with pytest.raises(ValueError, match="`BackupAndRestore`"):
        fit(tmp_path, CALLBACKS.BackupAndRestore(tmp_path / "backup"))
    assert not [*tmp_path.iterdir()]
    np.testing.assert_equal((agent.get_weights(), agent.env_steps), before)


class TestOwn:
    def test_each_of_a_class_has_its_own_state(self, tmp_path):
        class Own(CALLBACKS.EarlyStopping):
            """The base class has a state of its own too."""

            def __init__(self, step):
                super().__init__("loss", patience=9, min_delta=1e9)
                self.step, self.count = step, 0

            def on_epoch_end(self, epoch, logs=None):
                super().on_epoch_end(epoch, logs)
                self.count += self.step

            def get_state(self):
                return self.count

            def set_state(self, state):
                self.count = state

        killed(tmp_path, Own(1), Own(10), rounds=6)
        again = Own(1), Own(10)
        fit(tmp_path, *again, epochs=4)
        assert [(each.count, each.wait) for each in again] == [(4, 3), (40, 3)]

    def test_a_state_that_is_no_plain_data_is_refused_with_its_callback(
        self, tmp_path
    ):
        class Own(CALLBACKS.Callback):
            def get_state(self):
                return {"agent": self.model}

            def set_state(self, state):
                pass

        with pytest.raises(TypeError, match=r"callback Own to .* Received"):
            fit(tmp_path, Own(), epochs=2)


class TestOurs:
    def test_diagnostics(self, tmp_path):
        def diagnosed(name, *more):
            diagnostics = rl.callbacks.Diagnostics()
            # The last one is measured from its first round on.
            history = fit(tmp_path / name, diagnostics, *more, epochs=4)
            measured = {
                key: values
                for key, values in history.pop("history").items()
                if not key.endswith("_share")
            }
            assert "update_norm" in measured
            return history, measured, diagnostics.get_state()

        whole = diagnosed("whole")
        (tmp_path / "run").mkdir()
        with pytest.raises(KeyboardInterrupt):
            diagnosed("run", Hook(5, interrupt))
        again = diagnosed("run")
        for part, expected in zip(again[:2], whole[:2], strict=True):
            np.testing.assert_equal(part, expected)
        for key in ("faults", "weights"):
            np.testing.assert_equal(again[2][key], whole[2][key])

    def test_videos_that_were_due(self, tmp_path, monkeypatch):
        """The videos were due in the round before the run was killed."""
        films = []
        monkeypatch.setattr(
            rl.callbacks.RecordVideo,
            "_record",
            lambda self: films.append(self.model.env_steps),
        )

        def filmed(name, *more):
            env = gymnasium.make("CartPole-v1", render_mode="rgb_array")
            film = rl.callbacks.RecordVideo(
                lambda: env, tmp_path / "films", every=100
            )
            fit(tmp_path / name, film, *more, epochs=4)

        filmed("whole")
        whole = [*films]
        films.clear()
        with pytest.raises(KeyboardInterrupt):
            filmed("run", Hook(3, interrupt))
        filmed("run")
        assert films == whole
