"""Studies of Optuna: kept in a file or a data base, and gone on with."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from keras_rl2.cli.errors import CommandError
from keras_rl2.cli.errors import in_one_line
from keras_rl2.cli.tuning_plan import TuningPlan

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

_PLAN = "keras_rl2"


def open_study(
    name: str,
    storage: str,
    plan: TuningPlan,
    *,
    overwrite: bool,
    clear: Callable[[], None],
) -> "optuna.Study":
    """Opens the study that there is, or makes one.

    Args:
        name: str. Of the study.
        storage: str. A URL of a data base, or a file.
        plan: `TuningPlan`. What its trials have in common.
        overwrite: bool. Whether trials that there are go.
        clear: Callable. Removes the files of a study that goes, or of one of
            which nothing is left.

    Returns:
        `optuna.Study`.

    Raises:
        CommandError: If it cannot be opened, or holds trials of another plan.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        kept = _storage(storage)
        if overwrite:
            _delete(name, kept)
        study = optuna.create_study(
            storage=kept,
            study_name=name,
            direction="maximize",
            load_if_exists=True,
        )
    # Each kind of data base has errors of its own.
    except Exception as error:
        raise CommandError(
            f"--storage {storage}: expected a URL of a data base, "
            f"sqlite:///tuning.db say, or a file: {in_one_line(error)}"
        ) from error
    there = study.user_attrs.get(_PLAN)
    if there is None:
        if study.trials:
            raise CommandError(
                f"{storage} holds a study {name} that keras-rl2 has not made: "
                "--study gives another name"
            )
        clear()
        study.set_user_attr(_PLAN, plan.to_dict())
    elif different := plan.differences(there):
        raise CommandError(
            f"{storage} holds {len(study.trials)} trials of {name} that are "
            f"not of the same kind: {', '.join(different)}; --study or "
            "--logdir keeps others apart, --overwrite begins anew"
        )
    return study


def done(study: "optuna.Study") -> "list[FrozenTrial]":
    """Returns the trials that came to an end, or were given up.

    Args:
        study: `optuna.Study`.

    Returns:
        list of `optuna.trial.FrozenTrial`.
    """
    return study.get_trials(deepcopy=False, states=_states())


def complete(study: "optuna.Study") -> "list[FrozenTrial]":
    """Returns the trials that came to an end, the best first.

    Args:
        study: `optuna.Study`.

    Returns:
        list of `optuna.trial.FrozenTrial`.
    """
    found = [each for each in done(study) if each.state.name == "COMPLETE"]
    return sorted(found, key=_value, reverse=True)


def _states() -> Any:
    """Returns the states of trials that count."""
    from optuna.trial import TrialState

    return TrialState.COMPLETE, TrialState.PRUNED


def _value(trial: "FrozenTrial") -> float:
    """Returns what a trial gave."""
    assert trial.value is not None
    return trial.value


def pruner(name: str, steps: int, reports: int) -> "optuna.pruners.BasePruner":
    """Returns what gives up on trials.

    Args:
        name: str. `"median"`, `"hyperband"` or `"none"`.
        steps: int. Environment steps of a run.
        reports: int. Evaluations of a run.

    Returns:
        `optuna.pruners.BasePruner`.
    """
    import optuna

    if name == "none":
        return optuna.pruners.NopPruner()
    if name == "hyperband":
        return optuna.pruners.HyperbandPruner(
            min_resource=max(steps // reports, 1), max_resource=steps
        )
    # By environment steps: nobody is judged before a fifth of them.
    return optuna.pruners.MedianPruner(n_warmup_steps=steps // 5)


def optimize(
    study: "optuna.Study",
    objective: "Callable[[optuna.Trial], float]",
    trials: int,
    seed: int,
    after_each: "Callable[[optuna.Study, FrozenTrial], None]",
) -> None:
    """Runs trials until there are enough of them.

    One that is broken off is put first in the queue again.

    Args:
        study: `optuna.Study`.
        objective: Callable. Runs one trial.
        trials: int. As many are there in the end, those of other processes
            with the same storage among them.
        seed: int. What a trial draws depends on it, on the number of the trial
            and on the trials that are over: a search that goes on draws what
            it would have drawn, and of two processes none what the other does.
        after_each: Callable. Told of each trial.
    """
    import optuna

    enough = optuna.study.MaxTrialsCallback(trials, states=_states())
    present: list[optuna.Trial] = []

    def watched(trial: "optuna.Trial") -> float:
        present[:] = [trial]
        study.sampler = optuna.samplers.TPESampler(seed=seed + trial.number)
        return objective(trial)

    try:
        study.optimize(watched, callbacks=[after_each, enough])
    except KeyboardInterrupt:
        for trial in present:
            if trial.number not in {each.number for each in done(study)}:
                study.enqueue_trial(trial.params)
        raise


def _storage(where: str) -> Any:
    """Opens a data base, or a file of one's own."""
    import optuna
    from optuna.storages import journal

    if "://" in where:
        return optuna.storages.get_storage(where)
    path = Path(where)
    path.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        # That it is new; it is what does without a data base.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.storages.JournalStorage(
            journal.JournalFileBackend(str(path))
        )


def _delete(name: str, storage: Any) -> None:
    """Forgets a study, if there is one."""
    import optuna

    names = optuna.study.get_all_study_names(storage)
    if name in names:
        optuna.delete_study(study_name=name, storage=storage)
