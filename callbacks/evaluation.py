"""Evaluation during a `fit`."""

import keras

from keras_rl2.basics import arguments
from keras_rl2.callbacks.run import Logs


class Evaluation(keras.callbacks.Callback):
    """Plays episodes every few epochs and adds `val_...` to the logs.

    `Agent.fit` adds one for its argument `validation_data`. Keras' own
    validation evaluates batches of a dataset; a policy is measured by whole
    episodes.

    Args:
        episodes: `keras_rl2.EvaluationDataset`. The episodes to play.
        frequency: int. Epochs from one evaluation to the next. Defaults to
            `1`.

    Example:

    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("CartPole-v1", horizon=32, passes=1,
    ...                              batch_size=32, seed=0)
    >>> agent = rl.PPO.for_env(rollouts.env, seed=0)
    >>> evaluation = Evaluation(rl.EvaluationDataset("CartPole-v1", 1, seed=0))
    >>> history = agent.fit(rollouts, callbacks=[evaluation], verbose=0)
    >>> "val_episode_return" in history.history
    True
    """

    @arguments.refusing_unknown
    def __init__(self, episodes: object, frequency: int = 1) -> None:
        super().__init__()
        arguments.check_has("an `EvaluationDataset`", "play", episodes=episodes)
        arguments.check_positive(frequency=frequency)
        self.episodes = episodes
        self.frequency = frequency
        #: All callbacks of a `fit` of an agent, called in evaluations too.
        self.callbacks: list[keras.callbacks.Callback] = []

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Evaluates and adds the results to the logs."""
        if logs is None or (epoch + 1) % self.frequency:
            return
        callbacks = keras.callbacks.CallbackList(self.callbacks)
        results = self.model.evaluate(
            self.episodes, verbose=0, callbacks=callbacks
        )
        logs.update({f"val_{key}": value for key, value in results.items()})
