"""Training one trial of a tuner with several seeds."""

import importlib
import itertools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import Protocol

import keras
import numpy as np

from keras_rl2.agents import Agent
from keras_rl2.basics.arguments import check_has
from keras_rl2.basics.arguments import check_positive
from keras_rl2.data.evaluation import EvaluationDataset
from keras_rl2.data.replay import ReplayDataset
from keras_rl2.data.rollouts import RolloutDataset
from keras_rl2.data.round_dataset import RoundDataset

__all__ = ["fit_seeds"]

Run = tuple[Agent, RolloutDataset | ReplayDataset]


class Trial(Protocol):
    """The methods of an `optuna.Trial` that are used here."""

    def report(self, value: float, step: int) -> None:
        """Takes the value of the trial at a step."""

    def should_prune(self) -> bool:
        """Returns whether the trial is to be pruned."""


def fit_seeds(
    trial: Trial,
    runs: Sequence[Run],
    *,
    total_steps: int,
    episodes: EvaluationDataset,
    reports: int = 10,
    aggregate: Callable[[np.ndarray], Any] = np.mean,
    callbacks: Sequence[Iterable[keras.callbacks.Callback]] = (),
) -> float:
    """Trains the same settings with several seeds, for one trial of Optuna.

    One seed is weak evidence: the difference between two seeds is often
    larger than that between two settings. The seeds are trained in turns, a
    part of the run each, and evaluated at the same steps; their mean is
    reported to Optuna, which prunes by it.

    Args:
        trial: `optuna.Trial`. Reported to at `total_steps / reports`,
            `2 total_steps / reports`, ..., except within a warm-up.
        runs: Sequence of pairs of an agent and its dataset, one for each seed.
            With `Training` that is `(training.agent, training.dataset)`.
        total_steps: int. Environment steps of each run, in whole rounds.
        episodes: `keras_rl2.EvaluationDataset`. The evaluation episodes.
            Seeded, or trials are not compared on the same ones.
        reports: int. Evaluations of a run. Defaults to `10`.
        aggregate: Callable. Makes one number of the returns `[S]` of all
            seeds. Defaults to `np.mean`.
        callbacks: Sequence with a list of `keras.callbacks.Callback` for each
            run, or none at all. The logs of evaluated epochs have the results,
            as `val_episode_return` and the like. Defaults to `()`.

    Returns:
        float: the aggregate of the agents' returns at the end of the run.

    Raises:
        ValueError: If there are no runs, or numbers do not fit each other.
        optuna.TrialPruned: If Optuna prunes the trial, or its weights
            diverge: an agent that was skipping its updates has stopped.

    Example:

    >>> import optuna
    >>> import keras_rl2 as rl
    >>> episodes = rl.EvaluationDataset("CartPole-v1", 1, seed=0)
    >>> def objective(trial):
    ...     rate = trial.suggest_float("rate", 1e-4, 1e-2, log=True)
    ...     runs = []
    ...     for seed in range(2):
    ...         agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=seed)
    ...         agent.compile(keras.optimizers.Adam(rate), run_eagerly=True)
    ...         rollouts = rl.RolloutDataset("CartPole-v1", 16, passes=1,
    ...                                      batch_size=16, seed=seed)
    ...         runs.append((agent, rollouts))
    ...     return rl.tuning.fit_seeds(
    ...         trial, runs, total_steps=64, reports=2, episodes=episodes)
    >>> optuna.logging.disable_default_handler()
    >>> study = optuna.create_study(direction="maximize")
    >>> study.optimize(objective, n_trials=1)
    >>> list(study.best_trial.intermediate_values)
    [32, 64]
    """
    check_has("a trial of Optuna", "report", "should_prune", trial=trial)
    check_has("an `EvaluationDataset`", "play", episodes=episodes)
    check_has("a function", "__call__", aggregate=aggregate)
    check_positive(total_steps=total_steps, reports=reports)
    _check(runs, total_steps, reports)
    lists = _callbacks_of(callbacks, len(runs))
    members = [
        _Member(agent, dataset, [_LastEvaluation(episodes), *given])
        for (agent, dataset), given in zip(runs, lists, strict=True)
    ]
    value = float("nan")
    for index in range(1, reports + 1):
        steps = total_steps * index // reports
        last = index == reports
        if not last and any(steps <= m.steps_of_warm_up for m in members):
            continue
        try:
            scores = [member.train(steps) for member in members]
        except FloatingPointError as error:
            raise _pruned()(f"diverged before {steps} steps") from error
        value = float(aggregate(np.array(scores)))
        trial.report(value, steps)
        # A run that has ended is complete, not pruned.
        if not last and trial.should_prune():
            raise _pruned()(f"{value:.6g} after {steps} steps")
    return value


class _Member:
    """One seed of a trial."""

    def __init__(
        self,
        agent: Agent,
        dataset: RolloutDataset | ReplayDataset,
        callbacks: list[keras.callbacks.Callback],
    ) -> None:
        self._agent = agent
        self._dataset = dataset
        self._callbacks = callbacks
        self._score = float("nan")
        self._asked = 0

    @property
    def steps_of_warm_up(self) -> int:
        """Its count of steps before the first update."""
        # These are 0 where the dataset is full.
        steps: int = self._dataset.steps_before_first_round
        return steps and self._agent.env_steps + steps

    def train(self, steps: int) -> float:
        """Trains up to a number of steps, and returns its score."""
        # With whole rounds it may have taken more already.
        if self._agent.env_steps < steps:
            history = self._agent.fit(
                self._dataset,
                total_steps=steps - self._agent.env_steps,
                callbacks=self._callbacks,
                verbose=0,
            )
            self._score = history.history["val_episode_return"][-1]
        return self._score


class _LastEvaluation(keras.callbacks.Callback):
    """Evaluates with the last epoch of a `fit`."""

    def __init__(self, episodes: EvaluationDataset) -> None:
        super().__init__()
        self.episodes = episodes

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Evaluates, and adds the results to the logs of the last epoch."""
        epochs = (self.params or {})["epochs"]
        last = epoch + 1 >= epochs or self.model.stop_training
        if logs is not None and last:
            results = self.model.evaluate(self.episodes, verbose=0)
            logs.update({f"val_{key}": each for key, each in results.items()})


def _check(runs: Sequence[Run], total_steps: int, reports: int) -> None:
    """Raises an error for runs that cannot be trained."""
    if not isinstance(runs, Sequence) or not all(map(_is_run, runs)):
        raise ValueError(
            "Expected `runs` to be pairs of an agent and its dataset. "
            f"Received: runs={runs!r:.200}"
        )
    if not runs:
        raise ValueError("Expected at least one run. Received: runs=[]")
    if reports > total_steps:
        raise ValueError(
            "Expected `reports` to be at most `total_steps`. "
            f"Received: reports={reports}, total_steps={total_steps}"
        )
    taken = max(agent.env_steps for agent, _ in runs)
    if taken >= total_steps // reports:
        # The first report would never be made.
        raise ValueError(
            "Expected agents that have taken fewer steps than the "
            f"{total_steps // reports} before the first report. Received: one "
            f"that has taken {taken}"
        )


def _is_run(run: object) -> bool:
    """Returns whether a value is a pair of an agent and its dataset."""
    return (
        isinstance(run, Sequence)
        and len(run) == 2
        and isinstance(run[0], Agent)
        and isinstance(run[1], RoundDataset)
    )


def _callbacks_of(given: object, runs: int) -> list[list[Any]]:
    """Returns a list of callbacks for each run, or raises an error."""
    each_given = given if isinstance(given, Sequence) else [given]
    lists = [
        list(each) if isinstance(each, Iterable) else [each]
        for each in each_given
    ]
    if lists and len(lists) != runs:
        raise ValueError(
            "Expected a list of callbacks for each run, or none at all. "
            f"Received: {len(lists)} of them for {runs} runs"
        )
    if not all(
        isinstance(each, keras.callbacks.Callback)
        for each in itertools.chain(*lists)
    ):
        raise ValueError(
            "Expected a list of callbacks for each run, or none at all. "
            f"Received: callbacks={given!r:.200}"
        )
    return lists or [[] for _ in range(runs)]


def _pruned() -> Any:
    """Returns Optuna's exception for pruned trials."""
    return importlib.import_module("optuna").TrialPruned
