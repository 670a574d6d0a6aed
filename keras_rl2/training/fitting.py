"""How `fit` turns rounds into Keras epochs."""

import contextlib
import threading
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import TYPE_CHECKING
from typing import Any
from typing import cast

import keras
import tensorflow as tf

from keras_rl2.basics.arguments import check_at_least
from keras_rl2.basics.arguments import check_choice
from keras_rl2.basics.arguments import check_flag
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.arguments import present
from keras_rl2.basics.arguments import refuse_unknown
from keras_rl2.callbacks import Checkpoint
from keras_rl2.callbacks import Evaluation
from keras_rl2.callbacks import Progress
from keras_rl2.callbacks import RolloutRefresh
from keras_rl2.callbacks import TargetNetworkSync
from keras_rl2.callbacks.directions import give_directions
from keras_rl2.callbacks.fit_position import FitPosition
from keras_rl2.callbacks.protocols import Rounds
from keras_rl2.data import EvaluationDataset
from keras_rl2.data import OfflineDataset
from keras_rl2.data import RoundDataset
from keras_rl2.offline.offline_evaluation import OfflineEvaluation
from keras_rl2.training import round_execution

if TYPE_CHECKING:
    from keras_rl2.agents.agent import Agent
    from keras_rl2.agents.off_policy_agent import OffPolicyAgent


Callbacks = list[keras.callbacks.Callback]
# As Keras takes them.
GivenCallbacks = (
    keras.callbacks.Callback | Iterable[keras.callbacks.Callback] | None
)


def fit(
    agent: "Agent",
    keras_fit: Callable[..., keras.callbacks.History],
    x: object,
    *,
    epochs: int | None = None,
    total_steps: int | None = None,
    callbacks: GivenCallbacks = None,
    validation_data: object = None,
    validation_freq: int = 1,
    initial_epoch: int = 0,
    verbose: int | str = "auto",
    **kwargs: Any,
) -> keras.callbacks.History:
    """Runs `keras.Model.fit` on rounds.

    Args:
        agent: `keras_rl2.Agent`. What is trained.
        keras_fit: Callable. Keras' own `fit` of the agent.
        x: `RoundDataset`, or what Keras takes.
        epochs: int or None. Keras epochs; None for 1. Defaults to `None`.
        total_steps: int or None. Environment steps of this call instead of
            epochs. Defaults to `None`.
        callbacks: list of `keras.callbacks.Callback`. Defaults to `None`.
        validation_data: `EvaluationDataset` or None. Defaults to `None`.
        validation_freq: int. Epochs between evaluations. Defaults to `1`.
        initial_epoch: int. Where epochs are counted from. Defaults to `0`.
        verbose: `"auto"` for `Progress`, which counts environment steps; 0, 1
            and 2 as of Keras. Defaults to `"auto"`.
        **kwargs: Further arguments of Keras.

    Returns:
        `keras.callbacks.History`.

    Raises:
        ValueError: If arguments exclude each other or do not fit the round.
        FloatingPointError: If too many updates in a row were skipped; its
            notes name the last checkpoint of callbacks that keep any.
    """
    kwargs.setdefault("shuffle", False)
    check_positive(
        **present(epochs=epochs, total_steps=total_steps),
        validation_freq=validation_freq,
    )
    check_at_least(0, initial_epoch=initial_epoch)
    check_choice(verbose=(verbose, ("auto", 0, 1, 2)))
    given = _list(callbacks)
    give_directions(given)
    extra = _evaluation(validation_data, validation_freq)
    # An earlier `fit` may have been interrupted.
    agent.target_networks.forget()
    if not isinstance(x, RoundDataset):
        refuse_other_data(agent, x, total_steps)
        refuse_said_elsewhere(kwargs, of_minibatches=True)
        if not agent.compiled:
            agent.compile()
        agent.trained.check()
        round_execution.prepare_minibatches(agent)
        return keras_fit(
            x,
            epochs=epochs or 1,
            initial_epoch=initial_epoch,
            callbacks=[*extra, *_with_sync(agent, given)],
            verbose=verbose,
            **kwargs,
        )
    refuse_arguments(kwargs)
    _refuse_steps(x, total_steps)
    data = _data_of(agent, x, total_steps)
    begin = FitPosition.beginning(agent, x, initial_epoch)
    # Before anything is put back: what does not fit each other is refused.
    rounds = _rounds_per_epoch(x, total_steps, begin)
    _epochs(x, rounds, epochs, total_steps, begin)
    checkpoint = _checkpoint(given)
    with checkpoint.alone() if checkpoint else contextlib.nullcontext():
        if checkpoint is not None:
            begin = checkpoint.begin(agent, cast(Rounds, x), begin)
            rounds = _rounds_per_epoch(x, total_steps, begin)
        last = _epochs(x, rounds, epochs, total_steps, begin)
        if checkpoint is not None:
            end = _resumed_end(agent, x, rounds, total_steps, begin)
            last = checkpoint.end_at(total_steps, max(last, end), given)
            for line in checkpoint.told if verbose else ():
                print(line)
        all_callbacks = _with_refresh(
            x,
            [*_stop(begin, agent, total_steps), *extra],
            _with_progress(verbose, _with_sync(agent, given)),
        )
        agent.updates_already_made = begin.rounds * x.updates_per_round
        steps_per_epoch = rounds * x.updates_per_round
        shown = 0 if verbose == "auto" else verbose
        told = FitCallbacks(
            all_callbacks,
            add_history=True,
            add_progbar=shown != 0,
            model=agent,
            verbose=shown,
            epochs=last,
            steps=steps_per_epoch,
        )
        with (
            _watching(checkpoint, all_callbacks),
            round_execution.handing_over(agent, x),
        ):
            return keras_fit(
                data,
                initial_epoch=min(begin.epoch, last),
                epochs=last,
                steps_per_epoch=steps_per_epoch,
                callbacks=told,
                verbose=shown,
                **kwargs,
            )


def _data_of(
    agent: "Agent", x: RoundDataset, total_steps: int | None
) -> tf.data.Dataset:
    """Ties a dataset and an agent, and returns what Keras iterates over."""
    x.bind(agent)
    agent.rollouts = x
    if not agent.compiled:
        agent.compile()
    agent.trained.check()
    agent.build_optimizer()
    size = round_execution.prepare_rounds(agent, x)
    if size is None:
        agent.learners.refuse_keras_loop()
    agent.learners.check(agent, x, total_steps)
    data = (
        x.as_rounds(agent, size.from_trajectory)
        if size is not None
        else x.as_dataset(agent)
    )
    agent.learners.check_rows(data.element_spec)
    return data


class _StopAtSteps(keras.callbacks.Callback):
    """Ends `fit` with the epoch in which enough steps have been taken."""

    def __init__(self, env_steps: int) -> None:
        super().__init__()
        self._env_steps = env_steps

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Compares the steps taken with those asked for."""
        if self.model.env_steps >= self._env_steps:
            self.model.stop_training = True


def _checkpoint(callbacks: Callbacks) -> Checkpoint | None:
    """Returns the callback that saves all of a run, if there is one."""
    given = [each for each in callbacks if isinstance(each, Checkpoint)]
    if len(given) > 1:
        raise ValueError(
            "Expected at most one `Checkpoint` among the callbacks. "
            f"Received: {len(given)} of them"
        )
    if given and any(
        isinstance(each, keras.callbacks.BackupAndRestore) for each in callbacks
    ):
        raise ValueError(
            "Expected a `Checkpoint` alone, which restores weights, optimizers "
            "and the epoch too. Received: `BackupAndRestore` beside it, which "
            "begins `fit` with weights and at an epoch of its own"
        )
    return given[0] if given else None


def _watching(
    checkpoint: Checkpoint | None, callbacks: Callbacks
) -> contextlib.AbstractContextManager[None]:
    """Has the checkpoint take care of signals and errors, if there is one."""
    if checkpoint is None:
        return contextlib.nullcontext()
    return checkpoint.watching(callbacks)


def _rounds_per_epoch(
    x: RoundDataset, total_steps: int | None, begin: FitPosition
) -> int:
    """Returns the rounds of an epoch, no more than the steps asked for need.

    Raises:
        ValueError: If there would be no update within the steps.
    """
    if total_steps is None:
        return x.rounds_per_epoch
    warm_up = begin.warm_up
    if total_steps <= warm_up:
        raise ValueError(
            f"Expected `total_steps` to be more than the {warm_up} steps that "
            "are taken before the first update: ask for more, or for less of "
            f"a `warm_up`. Received: total_steps={total_steps}"
        )
    needed = -(-(total_steps - warm_up) // x.fewest_steps_per_round)
    return min(x.rounds_per_epoch, needed)


def _refuse_steps(x: RoundDataset, total_steps: int | None) -> None:
    """Refuses to count steps where none are taken.

    Raises:
        ValueError: If there are such steps to count.
    """
    if total_steps is not None and isinstance(x, OfflineDataset):
        raise ValueError(
            f"Expected `epochs` with an `{type(x).__name__}`, which takes no "
            f"environment steps: an epoch is {x.steps_per_epoch} updates. "
            f"Received: total_steps={total_steps}"
        )


def _epochs(
    x: RoundDataset,
    rounds: int,
    epochs: int | None,
    total_steps: int | None,
    begin: FitPosition,
) -> int:
    """Returns the Keras epoch to stop at."""
    if total_steps is None:
        return 1 if epochs is None else epochs
    if epochs is not None:
        raise ValueError(
            "Expected either `epochs` or `total_steps`. Received: "
            f"epochs={epochs}, total_steps={total_steps}"
        )
    steps = total_steps - begin.warm_up
    needed = -(-steps // (x.fewest_steps_per_round * rounds))
    return begin.first_epoch + needed


def _resumed_end(
    agent: "Agent",
    x: RoundDataset,
    rounds: int,
    total_steps: int | None,
    begin: FitPosition,
) -> int:
    """Returns the Keras epoch that a resumed `fit` ends before, or 0.

    Resets count as steps that were asked for, but not as steps taken. Where
    more steps are asked for than before, and than were taken, there is
    something to train, even if epochs of so many steps are over.
    """
    if total_steps is None or begin.total_steps is None:
        return 0
    if total_steps == begin.total_steps:
        return begin.last_epoch or 0
    left = total_steps - (agent.env_steps - begin.env_steps)
    if total_steps < begin.total_steps or left <= 0:
        return 0
    return begin.epoch - (-left // (x.fewest_steps_per_round * rounds))


def _stop(
    begin: FitPosition, agent: "Agent", total_steps: int | None
) -> Callbacks:
    """Returns the callback that counts, where rounds differ in length."""
    if total_steps is None or not agent.whole_episodes:
        return []
    return [_StopAtSteps(begin.env_steps + total_steps)]


def _list(
    callbacks: GivenCallbacks,
) -> Callbacks:
    """Returns callbacks as a list, however they were given."""
    if callbacks is None:
        return []
    if isinstance(callbacks, keras.callbacks.CallbackList):
        return list(callbacks.callbacks)
    if isinstance(callbacks, keras.callbacks.Callback):
        return [callbacks]
    given = list(callbacks) if isinstance(callbacks, Iterable) else [callbacks]
    for each in given:
        if not isinstance(each, keras.callbacks.Callback):
            raise ValueError(
                "Expected `callbacks` to be objects of classes derived from "
                f"`keras.callbacks.Callback`. Received: {each!r} among them"
            )
    return given


def _with_refresh(
    x: RoundDataset,
    extra: Callbacks,
    callbacks: Callbacks,
) -> Callbacks:
    """Puts the refresh first: what it logs is for all the others.

    But for a checkpoint, which is to see all of them before a round begins.
    """
    first = [c for c in callbacks if isinstance(c, Checkpoint)]
    callbacks = [c for c in callbacks if not isinstance(c, Checkpoint)]
    given = [c for c in callbacks if isinstance(c, RolloutRefresh)]
    others = [c for c in callbacks if not isinstance(c, RolloutRefresh)]
    if len(given) > 1 or any(id(c.rollouts) != id(x) for c in given):
        raise ValueError(
            "Expected at most one `RolloutRefresh`, and for the rollouts that "
            f"`fit` was given. Received: {len(given)} of them"
        )
    # It is bound by now: its agent is there.
    [refresh] = given or [RolloutRefresh(cast(Rounds, x))]
    return [*first, refresh, *extra, *others]


def _with_sync(agent: "Agent", callbacks: Callbacks) -> Callbacks:
    """Adds the agent's own sync of target networks, if there is none."""
    if agent.on_policy or any(
        isinstance(callback, TargetNetworkSync) for callback in callbacks
    ):
        return callbacks
    learner = cast("OffPolicyAgent", agent)
    own = TargetNetworkSync(tau=learner.tau, every=learner.target_every)
    return [own, *callbacks]


def _with_progress(verbose: int | str, callbacks: Callbacks) -> Callbacks:
    """Adds what shows how far `fit` is, if asked for and not there yet."""
    if verbose != "auto" or any(isinstance(c, Progress) for c in callbacks):
        return callbacks
    return [*callbacks, Progress()]


def _evaluation(validation_data: object, validation_freq: int) -> Callbacks:
    """Returns the callback that evaluates, if there is anything to play."""
    if validation_data is None:
        return []
    if isinstance(validation_data, OfflineDataset):
        # A fit in each epoch would take longer than the epoch.
        validation_data = OfflineEvaluation(validation_data, updates=0)
    if not isinstance(validation_data, (EvaluationDataset, OfflineEvaluation)):
        validation_data = EvaluationDataset(validation_data)
    return [Evaluation(validation_data, validation_freq)]


def refuse_other_data(
    agent: "Agent", x: object, total_steps: int | None
) -> None:
    """Refuses what an agent cannot be trained on, an environment above all."""
    if total_steps is not None or not isinstance(x, tf.data.Dataset):
        kind = "RolloutDataset" if agent.on_policy else "ReplayDataset"
        made = repr(x) if isinstance(x, str) else "env"
        raise ValueError(
            f"Expected a `keras_rl2.{kind}`, of an environment "
            f"`keras_rl2.{kind}({made})` (or a `tf.data.Dataset` of minibatch "
            f"dicts, with `epochs`). Received: x={x!r}, "
            f"total_steps={total_steps}"
        )


# With rounds; a `tf.data.Dataset` leaves all others to Keras.
_TAKEN = (
    *("epochs", "total_steps", "callbacks", "validation_data", "shuffle"),
    *("validation_freq", "initial_epoch", "verbose"),
)
# What Keras takes, and what says it here.
_SAID_ELSEWHERE = {
    "y": "nothing: actions and returns come from the environment",
    "batch_size": "`batch_size` of the dataset",
    "steps_per_epoch": "`rounds_per_epoch` of the dataset",
    "validation_steps": "`episodes` of the `EvaluationDataset`",
    "validation_batch_size": "`num_envs` of the `EvaluationDataset`",
    "validation_split": "`validation_data`, an `EvaluationDataset`",
    "class_weight": "nothing: there are no classes",
    "sample_weight": "`weight` of each minibatch, which the dataset gives",
}


def refuse_arguments(given: Mapping[str, object]) -> None:
    """Refuses arguments of Keras that mean nothing where rounds are trained."""
    refuse_said_elsewhere(given)
    check_flag(shuffle=given["shuffle"])
    others = {
        name: value
        for name, value in given.items()
        if name not in _SAID_ELSEWHERE
    }
    refuse_unknown("`fit`", others, _TAKEN)


def refuse_said_elsewhere(
    given: Mapping[str, object], of_minibatches: bool = False
) -> None:
    """Refuses arguments of Keras that something else says here."""
    for name, value in given.items():
        if of_minibatches and name == "steps_per_epoch":
            continue
        if name in _SAID_ELSEWHERE and value is not None:
            raise ValueError(
                f"Expected `fit` without `{name}`; what says it is "
                f"{_SAID_ELSEWHERE[name]}. Received: {name}={value!r}"
            )


_lock = threading.Lock()
# By identity, and not in the agents: a lock can be neither copied nor saved.
_fitted: set[int] = set()


@contextlib.contextmanager
def fit_alone(agent: "Agent") -> Iterator[None]:
    """Refuses `fit` where it would not train, or train what another one does.

    Args:
        agent: `keras_rl2.Agent`. What is trained.

    Yields:
        None. Within, no other `fit` of the agent begins.

    Raises:
        RuntimeError: If another one has begun and not ended.
        ValueError: If it is called within a scope of `tf.distribute`, or of a
            `tf.function`.
    """
    _refuse_graph(agent)
    _refuse_scope()
    with _lock:
        if id(agent) in _fitted:
            raise RuntimeError(
                "Expected one `fit` of an agent at a time: what two train in "
                "turns is neither's. Received: `fit` of "
                f"{type(agent).__name__} while another one of it runs"
            )
        _fitted.add(id(agent))
    try:
        yield
    finally:
        _fitted.discard(id(agent))


def _refuse_graph(agent: "Agent") -> None:
    """Refuses to train while a function is traced, which calls nothing."""
    if tf.executing_eagerly():
        return
    error = ValueError(
        "Expected `fit` outside of a `tf.function`, which it makes of each "
        f"round by itself. Received: `fit` of {type(agent).__name__} within one"
    )
    # TensorFlow's own name, for errors that are not about the user's code: it
    # would put a traceback into the message.
    vars(error).update(ag_pass_through=True)
    raise error


def _refuse_scope() -> None:
    """Refuses to train within a scope of `tf.distribute`.

    Raises:
        ValueError: If there is one.
    """
    if tf.distribute.has_strategy():
        raise ValueError(
            "Expected `fit` after the `strategy.scope()` in which the agent "
            "was made, which it enters where it needs to. Received: `fit` "
            f"within one of {type(tf.distribute.get_strategy()).__name__}"
        )


class FitCallbacks(keras.callbacks.CallbackList):
    """Tells callbacks of a batch without looking at the logs again.

    Keras makes a number of each log, and starts a thread for callbacks that
    ask for none: of short rounds that is a part of the time. Here logs that
    are numbers already are passed on as they are.

    Of an epoch that is resumed in its midst, callbacks are not told of what
    they have been told before: Keras begins each epoch with its first batch.

    Args:
        callbacks: list of `keras.callbacks.Callback`.
        **settings: As of `keras.callbacks.CallbackList`.

    Example:

    >>> seen = keras.callbacks.LambdaCallback(
    ...     on_train_batch_end=lambda batch, logs: print(batch, logs))
    >>> FitCallbacks([seen]).on_train_batch_end(3, {"loss": 0.5})
    3 {'loss': 0.5}
    """

    _is_made = False

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Tells all callbacks that a batch begins."""
        self._is_made = getattr(self.model, "updates_already_made", 0) > 0
        if self._is_made:
            return
        # Keras passes none.
        given = logs or {}
        for callback in self.callbacks:
            callback.on_train_batch_begin(batch, logs=given)

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Tells all callbacks that a batch has ended."""
        if self._is_made:
            return
        given = logs or {}
        if not all(type(value) is float for value in given.values()):
            super().on_train_batch_end(batch, logs)
            return
        for callback in self.callbacks:
            callback.on_train_batch_end(batch, logs=given)
