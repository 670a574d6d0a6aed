import keras
import pytest

from keras_rl2.training.fitting import better
from keras_rl2.training.fitting import give_directions

CALLBACKS = keras.callbacks


@pytest.mark.parametrize(
    ("name", "mode"),
    {
        "episode_return": "max",
        "val_episode_return": "max",
        "explained_variance": "max",
        "loss": "min",
        "value_loss": "min",
        # Short episodes are good in a maze and bad on a pole.
        "episode_length": None,
        "val_episode_return_std": None,
        "entropy": None,
        "mine": None,
    }.items(),
)
def test_which_way_is_better(name, mode):
    assert better(name) == mode, name


def test_a_mode_that_was_given_stays():
    callbacks = [
        CALLBACKS.EarlyStopping("episode_return", mode="min"),
        CALLBACKS.EarlyStopping("value_loss", mode="max"),
        CALLBACKS.EarlyStopping("mine"),
        CALLBACKS.CSVLogger("log.csv"),
    ]
    give_directions(callbacks)
    modes = [getattr(callback, "mode", None) for callback in callbacks]
    assert modes == ["min", "max", "auto", None]


class Says(CALLBACKS.Callback):
    """Puts values into the logs, one for each epoch, before all others."""

    def __init__(self, **values):
        super().__init__()
        self.values = values

    def on_epoch_end(self, epoch, logs=None):
        logs.update({key: each[epoch] for key, each in self.values.items()})


def fit(agent, rollouts, callbacks, epochs=5):
    return agent.fit(rollouts, epochs=epochs, callbacks=callbacks, verbose=0)


RISING, FALLING = [1.0, 2.0, 3.0, 4.0, 5.0], [5.0, 4.0, 3.0, 2.0, 1.0]


def test_callbacks_of_keras_know_the_way(agent, rollouts, tmp_path):
    for monitor, good, bad in (
        ("episode_return", RISING, FALLING),
        ("value_loss", FALLING, RISING),
    ):
        for values, epochs, best in ((good, 5, good[-1]), (bad, 3, bad[0])):
            stopping = CALLBACKS.EarlyStopping(monitor, patience=2)
            says = Says(**{monitor: values})
            assert len(fit(agent, rollouts, [says, stopping]).epoch) == epochs
            assert stopping.best == best
    for values, factor in ((RISING, 1.0), (FALLING, 0.5**4)):
        agent.optimizer.learning_rate = 1e-3
        plateau = CALLBACKS.ReduceLROnPlateau(
            "episode_return", factor=0.5, patience=1
        )
        fit(agent, rollouts, [Says(episode_return=values), plateau])
        rate = float(agent.optimizer.learning_rate.numpy())
        assert rate == pytest.approx(1e-3 * factor)
    checkpoint = CALLBACKS.ModelCheckpoint(
        tmp_path / "{epoch}.keras",
        monitor="val_episode_return",
        save_best_only=True,
    )
    says = Says(val_episode_return=[1.0, 3.0, 2.0, 4.0, 0.0])
    fit(agent, rollouts, [says, checkpoint])
    names = sorted(path.stem for path in tmp_path.iterdir())
    assert names == ["1", "2", "4"]
    # Those of a list that Keras has made already too.
    stopping = CALLBACKS.EarlyStopping("episode_return", patience=9)
    fit(agent, rollouts, CALLBACKS.CallbackList([stopping]), epochs=1)
    assert stopping.mode == "max"
