"""The beginning of each round of a `fit`."""

import time

import keras
import numpy as np

from keras_rl2.basics.arguments import check_has
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.callbacks.run import Logs
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.updates.skipped_updates import parts_of


class RoundLogs(keras.callbacks.Callback):
    """Adds the statistics of the rounds to the logs of an epoch."""

    def __init__(self, rollouts: RoundDataset) -> None:
        super().__init__()
        self.rollouts = rollouts
        #: Keys without a value, NaN, which monitors would take for the best.
        self.empty: dict[str, float] = {}
        self._started = 0.0
        self._steps = 0

    def on_train_begin(self, logs: Logs = None) -> None:
        """Discards leftover data from a previous `fit`."""
        self.rollouts.begin()

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Starts the clock of the epoch."""
        self._started = time.perf_counter()
        self._steps = getattr(self.rollouts.agent, "env_steps", 0)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Adds the statistics of the rounds to the logs."""
        if logs is None:
            return
        env_steps = getattr(self.rollouts.agent, "env_steps", 0)
        seconds = max(time.perf_counter() - self._started, 1e-9)
        logs.update(self.rollouts.logs())
        logs["env_steps"] = env_steps
        if self.rollouts.steps_per_round:
            logs["steps_per_second"] = (env_steps - self._steps) / seconds
        else:
            updates = self.rollouts.steps_per_epoch
            logs["updates_per_second"] = updates / seconds
        learners = getattr(self.model, "learners", lambda: {"": self.model})
        for name, model in learners().items():
            prefix = f"{name}/" if name else ""
            parts = parts_of(model.optimizer)
            for part in parts:
                suffix = "" if len(parts) == 1 else f"_{part.name}"
                rate = part.learning_rate.numpy()
                logs[f"{prefix}learning_rate{suffix}"] = float(rate)
        keys = [k for k, v in logs.items() if np.ndim(v) == 0 and v != v]
        self.empty = {key: logs.pop(key) for key in keys}


class RolloutRefresh(RoundLogs):
    """Collects a new round before its first update, in Keras' own loop.

    `agent.fit(rollouts)` collects by itself. This callback is for a `fit` with
    `rollouts.as_dataset(agent)`, of the agent or of another `keras.Model`. A
    `fit` of the agent for whole rounds then makes all updates of a round in one
    execution of TensorFlow, unless `compile` was given `steps_per_execution`.

    The callback also adds the statistics of the round to the logs of the epoch
    (`episode_return`, `episode_length`, `env_steps`, `steps_per_second`,
    `learning_rate`, ...; `updates_per_second` if a dataset takes no steps).
    It should come before callbacks that read them.

    Args:
        rollouts: `keras_rl2.data.RoundDataset`. The dataset to refresh.

    Example:

    A plain Keras model trained on an agent's minibatches:

    >>> import keras
    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("CartPole-v1", horizon=32, passes=1,
    ...                              batch_size=32, seed=0)
    >>> agent = rl.PPO.for_env(rollouts.env, seed=0)
    >>> critic = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    >>> critic.compile("adam", "mse")
    >>> batches = rollouts.as_dataset(agent).map(
    ...     lambda batch: (batch["observation"], batch["returns"]))
    >>> history = critic.fit(
    ...     batches, steps_per_epoch=rollouts.steps_per_epoch, epochs=2,
    ...     callbacks=[RolloutRefresh(rollouts)], shuffle=False, verbose=0)
    >>> history.history["env_steps"][-1] == agent.env_steps
    True
    """

    @refusing_unknown
    def __init__(self, rollouts: RoundDataset) -> None:
        check_has(
            "a `RolloutDataset` or `ReplayDataset`",
            "refresh",
            rollouts=rollouts,
        )
        super().__init__(rollouts)

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Refreshes at the first update of each round."""
        if batch % self.rollouts.updates_per_round == 0:
            self.rollouts.refresh()
