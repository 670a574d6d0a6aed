"""Models that are trained, and asked, by batches."""

from typing import Any

from keras_rl2.agents.saveable_model import SaveableModel
from keras_rl2.updates.trained_variables import TrainedVariables


class BatchModel(SaveableModel):
    """Base of models with Keras' verbs for single batches.

    Its arguments are those of an `ActingModel`.
    """

    #: What is not frozen, which a subclass has.
    trained: TrainedVariables

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """Makes one update; see `keras.Model.train_on_batch`.

        Args:
            x: dict of `[B, ...]`. A minibatch, as `train_step` takes it.
            y: None. Actions and returns are entries of the minibatch. Defaults
                to `None`.
            sample_weight: `[B]` or None. What each row counts, times its
                `weight` in the minibatch. Defaults to `None`.
            class_weight: None. There are no classes. Defaults to `None`.
            return_dict: bool. Whether logs are returned by their names.
                Defaults to `False`.

        Returns:
            Logs, as a list or a dict.

        Raises:
            ValueError: If the agent is not bound or compiled, there is nothing
                to train, or an argument means nothing to an agent.
        """
        self._require_bound()
        self.check_loaded()
        if class_weight is not None:
            raise ValueError(
                "Expected `train_on_batch` without `class_weight`: there are "
                f"no classes. Received: class_weight={class_weight!r}"
            )
        self.trained.check()
        return super().train_on_batch(
            x, y=y, sample_weight=sample_weight, return_dict=return_dict
        )

    def test_on_batch(
        self,
        x: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        return_dict: bool = False,
    ) -> Any:
        """Refuses: what an agent is worth, no batch tells.

        Args:
            x: As of `keras.Model.test_on_batch`. Defaults to `None`.
            y: As of the same. Defaults to `None`.
            sample_weight: As of the same. Defaults to `None`.
            return_dict: As of the same. Defaults to `False`.

        Raises:
            NotImplementedError: Always; `evaluate` plays episodes.
        """
        del x, y, sample_weight, return_dict
        raise NotImplementedError(
            "Expected `evaluate(env)`, which plays episodes; or "
            "`evaluate(offline)`, which estimates from recorded ones. "
            f"Received: `test_on_batch` of {type(self).__name__}"
        )

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        steps: int | None = None,
        callbacks: Any = None,
    ) -> Any:
        """Returns what `call` gives; see `keras.Model.predict`.

        Those are the parameters of a policy or the values of actions; `act`
        gives actions.

        Args:
            x: `[B, ...]` or a dataset. Raw observations.
            batch_size: int or None. Observations of each call. Defaults to
                `None`: 32.
            verbose: As of Keras. Defaults to `"auto"`.
            steps: int or None. Batches of a dataset. Defaults to `None`: all.
            callbacks: list of `keras.callbacks.Callback`. Defaults to `None`.

        Returns:
            np.ndarray `[B, ...]`.

        Raises:
            ValueError: If the agent is not bound.
            NotImplementedError: If it remembers, so that rows are no episodes.
        """
        self._check_can_predict("predict")
        return super().predict(
            x,
            batch_size=batch_size,
            verbose=verbose,
            steps=steps,
            callbacks=callbacks,
        )

    def predict_on_batch(self, x: Any) -> Any:
        """Returns what `call` gives of one batch; see `predict`.

        Args:
            x: `[B, ...]`. Raw observations.

        Returns:
            np.ndarray `[B, ...]`.

        Raises:
            ValueError: If the agent is not bound.
            NotImplementedError: If it remembers, so that rows are no episodes.
        """
        self._check_can_predict("predict_on_batch")
        return super().predict_on_batch(x)

    def _check_can_predict(self, verb: str) -> None:
        """Refuses to run networks that are not ready for single rows."""
        self._check_can_act()
        if self.memory is not None:
            raise NotImplementedError(
                "Expected `act(observation, state)` of an agent that "
                f"remembers. Received: `{verb}` of {type(self).__name__}"
            )
