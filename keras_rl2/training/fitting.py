"""The loop of `fit`: collect, prepare, update, log, and again.

`train` is the whole loop, on-policy and off-policy alike. It uses:

- the dataset (`keras_rl2.RolloutDataset`, `ReplayDataset`, ...), which steps
  the environments and prepares the samples of each round;
- a `Round`, which has the dataset collect and prepare, and makes all updates of
  a round in one call of TensorFlow; each is a `train_step`: the gradients of
  the agent's `objectives`;
- the callbacks, which evaluate, log to TensorBoard, and save;
- a `Plan`, the length of the training and its position, which `Checkpoint`
  restores.
"""

import contextlib
import functools
import math
import threading
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from typing import cast

import keras
import tensorflow as tf

from keras_rl2.basics import arguments
from keras_rl2.callbacks.checkpoint import Checkpoint
from keras_rl2.callbacks.diagnostics import Diagnostics
from keras_rl2.callbacks.diagnostics import RecordedValues
from keras_rl2.callbacks.evaluation import Evaluation
from keras_rl2.callbacks.progress import Progress
from keras_rl2.callbacks.rollout_refresh import RolloutRefresh
from keras_rl2.callbacks.rollout_refresh import RoundLogs
from keras_rl2.data.plan import Plan
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.training.compile_arguments import GivenCallbacks
from keras_rl2.training.rounds import KerasRound
from keras_rl2.training.rounds import Round
from keras_rl2.training.rounds import TeamRound
from keras_rl2.training.rounds import choose_rounds

Callbacks = list[keras.callbacks.Callback]


def train(
    agent: keras.Model,
    plan: Plan,
    rounds: Round,
    callbacks: keras.callbacks.CallbackList,
    last_step: int | None = None,
) -> None:
    """Makes the rounds of each epoch: collect, prepare, update, and log.

    Training ends with the last epoch of the plan, or with the epoch that
    reaches the environment step `last_step`, which is given where rounds differ
    in length.
    """
    of_epoch = (callbacks.params or {})["steps"]
    done = plan.rounds * rounds.dataset.updates_per_round
    # A setting of Keras for trying a program out.
    last_epoch = keras.config.max_epochs() or plan.last_epoch
    agent.stop_training = False
    agent.make_train_function()
    logs: dict[str, Any] = {}
    callbacks.on_train_begin()
    # Keras' `BackupAndRestore` has no other way to set the epoch it resumes.
    first_epoch = getattr(agent, "_initial_epoch", 0) or plan.epoch
    for epoch in range(first_epoch, min(last_epoch, plan.last_epoch)):
        agent.reset_metrics()
        callbacks.on_epoch_begin(epoch)
        while done < of_epoch:
            for callback in callbacks.callbacks:
                callback.on_train_batch_begin(done, logs={})
            logs = rounds.run()
            done += rounds.updates_done
            _tell(callbacks, done - 1, logs)
            if agent.stop_training:
                break
        done = 0
        # A `train_step` may have other logs than the metrics.
        means = agent.get_metrics_result()
        logs = dict(means if set(means) == set(logs) else logs)
        callbacks.on_epoch_end(epoch, logs)
        has_steps = last_step is not None and agent.env_steps >= last_step
        if agent.stop_training or has_steps:
            break
    for each in agent.learners().values():
        each.optimizer.finalize_variable_values(each.trainable_variables)
    callbacks.on_train_end(logs)


def _tell(
    callbacks: keras.callbacks.CallbackList, batch: int, logs: dict[str, Any]
) -> None:
    """Calls the callbacks after updates.

    Keras converts each log to a number, and starts a thread for callbacks
    that use none: with short rounds this takes a part of the time. Logs that
    are numbers already are passed on as they are.
    """
    if not all(type(value) is float for value in logs.values()):
        callbacks.on_train_batch_end(batch, logs)
        return
    for callback in callbacks.callbacks:
        callback.on_train_batch_end(batch, logs=logs)


def check_arguments(
    agent: keras.Model, x: object, plan: Plan, steps_per_epoch: int | None
) -> None:
    """Raises if data or arguments of `fit` have no meaning for each other."""
    total_steps = plan.total_steps
    fits = hasattr(x, "learning") == hasattr(agent, "members")
    if not fits or not isinstance(x, RoundDataset):
        _refuse_other_data(agent, x, total_steps)
        return
    if steps_per_epoch is not None:
        raise ValueError(
            "Expected `fit` without `steps_per_epoch`; use `rounds_per_epoch` "
            f"of the dataset. Received: steps_per_epoch={steps_per_epoch!r}"
        )
    # A dataset with environments may not know its steps before it is bound.
    if total_steps is not None and not getattr(x, "steps_per_round", 1):
        raise ValueError(
            f"Expected `epochs` with an `{type(x).__name__}`, which "
            "takes no environment steps: an epoch is "
            f"{x.steps_per_epoch} updates. Received: total_steps={total_steps}"
        )


def fit_rounds(
    agent: keras.Model,
    dataset: RoundDataset,
    plan: Plan,
    callbacks: Callbacks,
    verbose: int | str,
) -> None:
    """Trains in whole rounds, from a checkpoint if there is one."""
    dataset.bind(agent)
    agent.begin_training(dataset)
    plan = plan.on(dataset, agent.env_steps)
    watched = bool(agent.observers) or any(map(_watches_rounds, callbacks))
    epochs = plan.last_epoch - plan.epoch
    # Before a checkpoint is restored, so that a resumed run decides alike.
    choose = _choice(agent, dataset, watched, epochs * plan.rounds_per_epoch)
    # Before anything is restored, all is checked to fit together.
    rounds = choose(plan.rounds_per_epoch)
    for each in agent.learners().values():
        each.devices.check(each)
    checkpoint, ordered = _ordered(dataset, callbacks, verbose)
    with (
        checkpoint.restoring(agent, dataset, plan, ordered)
        if checkpoint
        else contextlib.nullcontext(plan)
    ) as plan:
        if plan.rounds:
            # The rounds of a call are a divisor of those that remain, too.
            rounds = choose(math.gcd(plan.rounds_per_epoch, plan.rounds))
        for line in checkpoint.lines if checkpoint and verbose else ():
            print(line)
        agent.use_rounds(rounds)
        of_fit = _callback_list(agent, ordered, verbose, plan, dataset)
        # Rounds of whole episodes differ in length.
        last_step = None
        if plan.total_steps is not None and agent.whole_episodes:
            last_step = plan.env_steps + plan.total_steps
        train(agent, plan, rounds, of_fit, last_step)


def _choice(
    agent: Any, dataset: Any, watched: bool, all_rounds: int
) -> Callable[[int], Round]:
    """Returns the choice of the way of making rounds, of an agent or a team."""
    members = getattr(dataset, "learning", None)
    if members is None:
        updates = all_rounds * dataset.updates_per_round
        return functools.partial(
            choose_rounds,
            agent,
            dataset,
            watched=watched,
            all_updates=int(agent.updates_made.numpy()) + updates,
        )
    choices = {
        name: _choice(
            agent.members[name],
            each,
            watched,
            all_rounds * dataset.horizon // each.horizon,
        )
        for name, each in members.items()
    }
    return lambda rounds: TeamRound(
        agent, dataset, {name: choose(1) for name, choose in choices.items()}
    )


def _callback_list(
    agent: keras.Model,
    ordered: Callbacks,
    verbose: int | str,
    plan: Plan,
    dataset: RoundDataset,
) -> keras.callbacks.CallbackList:
    """Returns the callbacks with Keras' own, for the epochs of a plan."""
    shown = 0 if verbose == "auto" else int(verbose)
    params: dict[str, Any] = {
        "verbose": shown,
        "epochs": plan.last_epoch,
        "steps": plan.rounds_per_epoch * dataset.updates_per_round,
        **arguments.present(total_steps=plan.steps_left(agent.env_steps)),
    }
    return keras.callbacks.CallbackList(
        ordered,
        add_history=True,
        add_progbar=shown != 0,
        model=agent,
        **params,
    )


def prepare_minibatches(
    agent: keras.Model, callbacks: Callbacks, steps_per_epoch: int | None
) -> None:
    """Makes the agent ready for Keras' own loop over minibatches.

    With a `RolloutRefresh` one execution makes the updates of a round, if
    `compile` left it open.
    """
    if not agent.compiled:
        agent.compile()
    agent.check_trained()
    agent.reset_targets()
    # Of an earlier `fit`.
    agent.rollouts = None
    steps = 1
    for callback in callbacks:
        if isinstance(callback, RolloutRefresh):
            steps = callback.rollouts.updates_per_round
    if steps_per_epoch is None or steps_per_epoch % steps:
        steps = 1
    if agent.compile_arguments.steps_per_execution != "auto":
        steps = int(agent.compile_arguments.steps_per_execution)
    agent.use_rounds(KerasRound(agent, updates=steps))


def _ordered(
    dataset: RoundDataset, callbacks: Callbacks, verbose: int | str
) -> tuple[Checkpoint | None, Callbacks]:
    """Puts callbacks in their order, and adds those that `fit` needs.

    A `Checkpoint` comes first, to see all of the others before a round begins;
    then `RoundLogs`, which writes logs for the callbacks after it. Tables, with
    all keys in each row, come last.
    """
    checkpoints: list[Checkpoint] = []
    others: Callbacks = []
    for each in callbacks:
        if isinstance(each, Checkpoint):
            checkpoints.append(each)
        elif not isinstance(each, RolloutRefresh):
            others.append(each)
        elif each.rollouts is not dataset:
            raise ValueError(
                "Expected `RolloutRefresh` of the same rollouts as `fit`, "
                "which collects by itself. Received: one of others"
            )
    if len(checkpoints) > 1:
        raise ValueError(
            "Expected at most one `Checkpoint` among the callbacks. "
            f"Received: {len(checkpoints)} of them"
        )
    if checkpoints and _has(keras.callbacks.BackupAndRestore, others):
        raise ValueError(
            "Expected a `Checkpoint` alone, which restores weights, optimizers "
            "and the epoch too. Received: `BackupAndRestore` beside it, which "
            "begins `fit` with weights and at an epoch of its own"
        )
    if hasattr(dataset, "recorded") and not _has(Diagnostics, others):
        others.append(RecordedValues())
    if verbose == "auto" and not _has(Progress, others):
        others.append(Progress())
    # `TensorBoard` writes the logs that `Diagnostics` adds, in either order.
    others.sort(key=lambda each: not getattr(each, "adds_logs", False))
    checkpoint = checkpoints[0] if checkpoints else None
    rounds = RoundLogs(dataset)
    filling = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda _, logs: logs.update(rounds.empty)
    )
    ordered = sorted([*others, filling], key=_is_table)
    return checkpoint, [*checkpoints, rounds, *ordered]


def _is_table(callback: keras.callbacks.Callback) -> bool:
    """Returns whether a callback keeps the columns of the first epoch."""
    is_csv = isinstance(callback, keras.callbacks.CSVLogger)
    return is_csv or getattr(callback, "is_table", False)


def _watches_rounds(callback: keras.callbacks.Callback) -> bool:
    """Returns whether a callback is to be called after each round.

    Keras' callbacks and ours, except `Diagnostics`, can wait for the end of an
    epoch by default. Others wait if they have no method that is called after
    updates.
    """
    if isinstance(callback, keras.callbacks.TensorBoard):
        return bool(callback.update_freq != "epoch")
    if getattr(callback, "save_freq", "epoch") != "epoch":
        return True
    # A `LambdaCallback` has functions in place of methods.
    return not isinstance(callback, _WAITING) and any(
        getattr(getattr(callback, name), "__func__", None)
        is not getattr(keras.callbacks.Callback, name)
        for name in _AFTER_UPDATES
    )


_WAITING = (
    *(Checkpoint, Progress, RoundLogs, keras.callbacks.TerminateOnNaN),
    *(keras.callbacks.ModelCheckpoint, keras.callbacks.BackupAndRestore),
)
_AFTER_UPDATES = (
    *("on_batch_begin", "on_batch_end"),
    *("on_train_batch_begin", "on_train_batch_end"),
)


def _has(kind: type, callbacks: Callbacks) -> bool:
    """Returns whether there is a callback of a class."""
    return any(isinstance(each, kind) for each in callbacks)


def _evaluation(validation_data: Any, validation_freq: int) -> Evaluation:
    """Returns the callback that evaluates on validation data."""
    # They are large, and most trainings need none of them.
    from keras_rl2.data.evaluation import EvaluationDataset
    from keras_rl2.offline.offline import OfflineDataset
    from keras_rl2.offline.offline_evaluation import OfflineEvaluation

    if isinstance(validation_data, OfflineDataset):
        # A fit in each epoch would take longer than the epoch.
        validation_data = OfflineEvaluation(validation_data, updates=0)
    if not hasattr(validation_data, "play"):
        validation_data = EvaluationDataset(validation_data)
    return Evaluation(validation_data, validation_freq)


def all_callbacks(
    callbacks: GivenCallbacks, validation_data: object, validation_freq: int
) -> Callbacks:
    """Returns callbacks as a list, after one that evaluates if asked for."""
    if callbacks is None:
        chosen = []
    elif isinstance(callbacks, keras.callbacks.CallbackList):
        chosen = list(callbacks.callbacks)
    elif isinstance(callbacks, Iterable):
        chosen = list(callbacks)
    else:
        chosen = [callbacks]
    for each in chosen:
        if not isinstance(each, keras.callbacks.Callback):
            raise ValueError(
                "Expected `callbacks` to be objects of classes derived from "
                f"`keras.callbacks.Callback`. Received: {each!r} among them"
            )
    give_directions(chosen)
    if validation_data is not None:
        chosen = [_evaluation(validation_data, validation_freq), *chosen]
    for each in chosen:
        if isinstance(each, Evaluation):
            each.callbacks = chosen
    return chosen


def _refuse_other_data(
    agent: keras.Model, x: object, total_steps: int | None
) -> None:
    """Raises for data without rounds, especially an environment."""
    is_team = hasattr(agent, "members")
    if total_steps or is_team or not isinstance(x, tf.data.Dataset):
        on_policy = getattr(agent, "on_policy", False)
        kind = "RolloutDataset" if on_policy else "ReplayDataset"
        kind = "TeamDataset" if is_team else kind
        env = repr(x) if isinstance(x, str) else "env"
        raise ValueError(
            f"Expected a `keras_rl2.{kind}`, of an environment "
            f"`keras_rl2.{kind}({env})` (or a `tf.data.Dataset` of minibatch "
            f"dicts, with `epochs`). Received: x={x!r}, "
            f"total_steps={total_steps}"
        )


_lock = threading.Lock()
# By identity, and not in the agents: a lock can be neither copied nor saved.
_fitted: set[int] = set()


@contextlib.contextmanager
def fit_alone(agent: keras.Model) -> Iterator[None]:
    """Raises if `fit` would not train, or if another `fit` is running.

    It would not train within a `tf.function`; nor in a strategy's scope, where
    agents and optimizers made outside of it cannot be changed.

    Yields:
        None. Within, no other `fit` of the agent begins.
    """
    if not tf.executing_eagerly():
        error = ValueError(
            "Expected `fit` outside of a `tf.function`, which it makes for "
            "each round itself. "
            f"Received: `fit` of {type(agent).__name__} within one"
        )
        # TensorFlow's own name, for errors that are not about the user's code:
        # it would put a traceback into the message.
        vars(error).update(ag_pass_through=True)
        raise error
    if tf.distribute.has_strategy():
        raise ValueError(
            "Expected `fit` after the `strategy.scope()` in which the agent "
            "was made, which it enters where it needs to. Received: `fit` "
            f"within one of {type(tf.distribute.get_strategy()).__name__}"
        )
    with _lock:
        if id(agent) in _fitted:
            raise RuntimeError(
                "Expected one `fit` of an agent at a time: two would mix their "
                "updates. Received: `fit` of "
                f"{type(agent).__name__} while another one of it runs"
            )
        _fitted.add(id(agent))
    try:
        yield
    finally:
        _fitted.discard(id(agent))


_BETTER = {
    "elo": "max",
    "episode_return": "max",
    "explained_variance": "max",
}


def better(name: str) -> str | None:
    """Returns whether higher or lower values of a key of the logs are better.

    Example:

    >>> better("val_episode_return"), better("value_loss")
    ('max', 'min')
    >>> better("episode_return/red"), better("red/loss")
    ('max', 'min')
    >>> better("episode_length")
    """
    # Some have the name of a member of a team before or after a slash.
    parts = name.removeprefix("val_").split("/")
    if parts[-1] == "loss" or parts[-1].endswith("_loss"):
        return "min"
    return next((_BETTER[each] for each in parts if each in _BETTER), None)


def give_directions(callbacks: Iterable[keras.callbacks.Callback]) -> None:
    """Sets the `mode` of callbacks with `mode="auto"`.

    `EarlyStopping`, `ModelCheckpoint` and `ReduceLROnPlateau` know the
    directions of Keras' own metrics only; for a value that is not among the
    metrics of `compile` they raise an error. So `mode` is set as users would
    pass it.

    Example:

    >>> stopping = keras.callbacks.EarlyStopping("episode_return", patience=9)
    >>> give_directions([stopping])
    >>> stopping.mode
    'max'
    """
    for callback in callbacks:
        if getattr(callback, "mode", None) != "auto":
            continue
        mode = better(str(getattr(callback, "monitor", "")))
        if mode is not None:
            # The attribute exists: it was `"auto"`.
            cast(Any, callback).mode = mode
