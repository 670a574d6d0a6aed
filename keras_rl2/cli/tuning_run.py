"""The study of `keras-rl2 tune`: Optuna keeps and drives it."""

import contextlib
import dataclasses
import gc
import logging
import shutil
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from keras_rl2.callbacks import TensorBoard
from keras_rl2.cli.errors import CommandError
from keras_rl2.cli.errors import in_one_line
from keras_rl2.cli.learning_curves import interquartile_mean
from keras_rl2.cli.progress_file import ProgressFile
from keras_rl2.cli.run_folder import RunFolder
from keras_rl2.cli.run_folder import write_json
from keras_rl2.cli.tuning_plan import TuningPlan
from keras_rl2.data.evaluation import EvaluationDataset
from keras_rl2.runs.training import Training
from keras_rl2.training.shared_programs import SharedPrograms
from keras_rl2.tuning import fit_seeds

if TYPE_CHECKING:
    # An extra, which functions import.
    import optuna

_PLAN = "keras_rl2"
_BEST = "best.json"
_TRIALS = "trials"
_EVALUATION_EPISODES = 20


def open_study(
    plan: TuningPlan, folder: Path, storage: str, *, overwrite: bool
) -> "optuna.Study":
    """Opens the study of a folder, or creates it.

    Args:
        plan: `TuningPlan`. The settings that its trials share.
        folder: Path. The folder of its results, which has its name.
        storage: str. A URL of a database, or a file.
        overwrite: bool. Whether the study is deleted first.

    Returns:
        `optuna.Study`.

    Raises:
        CommandError: If it cannot be opened, has trials of another plan, or
            the folder has results of another study.
    """
    import optuna

    name = folder.name
    # Looked at before the names, or another process might create the study
    # and write its first result in between.
    is_written = any((folder / each).exists() for each in (_BEST, _TRIALS))
    kept, names = _storage(storage)
    if is_written and name not in names:
        raise CommandError(
            f"{folder} holds results of a study that is not in {storage}: "
            "--study or --logdir keeps others apart"
        )
    if overwrite and name in names:
        optuna.delete_study(study_name=name, storage=kept)
        (folder / _BEST).unlink(missing_ok=True)
        shutil.rmtree(folder / _TRIALS, ignore_errors=True)
    study = optuna.create_study(
        storage=kept, study_name=name, direction="maximize", load_if_exists=True
    )
    known = study.user_attrs.get(_PLAN)
    if known is None and study.trials:
        raise CommandError(
            f"{storage} holds a study {name} that keras-rl2 has not made: "
            "--study gives another name"
        )
    if known is None:
        study.set_user_attr(_PLAN, plan.to_dict())
    elif different := plan.differences(known):
        raise CommandError(
            f"{storage} holds {len(study.trials)} trials of {name} with "
            f"another {', '.join(different)}; --study or --logdir keeps "
            "others apart, --overwrite begins anew"
        )
    return study


def tune(
    study: "optuna.Study",
    plan: TuningPlan,
    folder: Path,
    trials: int,
    pruner: str,
) -> None:
    """Runs the missing trials, and writes the best preset.

    Args:
        study: `optuna.Study`. Has the plan's trials so far.
        plan: `TuningPlan`. The settings that its trials share.
        folder: Path. Where trainings and the best preset go.
        trials: int. Total number of trials, including trials of other
            processes.
        pruner: str. `"median"`, `"hyperband"` or `"none"`.

    Raises:
        ValueError: If settings do not fit each other or the environment.
        KeyboardInterrupt: After Ctrl-C; the best preset so far is written.
        SystemExit: After SIGTERM, in the same way.
    """
    # Each trial has its own agents, and so its own graphs.
    logging.getLogger("tensorflow").addFilter(
        lambda record: "tf.function retracing" not in record.getMessage()
    )
    there = len(_ended(study))
    resumed = f", resumed at trial {there}" if there else ""
    print(f"{plan.headline()}, {trials} trials{resumed}: {folder}", flush=True)
    study.pruner = _pruner(pruner, plan)
    episodes = EvaluationDataset(
        plan.preset.environment,
        _EVALUATION_EPISODES,
        num_envs=_EVALUATION_EPISODES,
        seed=plan.seeds[0],
        env_kwargs=plan.preset.env_kwargs,
    )
    try:
        if there < trials:
            with _sigterm_exits():
                _optimize(study, plan, folder, episodes, trials)
    finally:
        episodes.env.close()
        _conclude(study, plan, folder)


def _storage(where: str) -> tuple[Any, list[str]]:
    """Opens a database or a journal file, and lists its studies."""
    import optuna
    from optuna.storages import journal

    try:
        if "://" in where:
            storage = optuna.storages.get_storage(where)
        else:
            path = Path(where)
            path.parent.mkdir(parents=True, exist_ok=True)
            with warnings.catch_warnings():
                # Optuna 4 calls the journal experimental.
                warnings.simplefilter(
                    "ignore", optuna.exceptions.ExperimentalWarning
                )
                storage = optuna.storages.JournalStorage(
                    journal.JournalFileBackend(where)
                )
        return storage, optuna.get_all_study_names(storage)
    # Each kind of database has errors of its own.
    except Exception as error:
        raise CommandError(
            f"--storage {where}: expected a URL of a database, e.g. "
            f"sqlite:///tuning.db, or a file: {in_one_line(error)}"
        ) from error


def _pruner(name: str, plan: TuningPlan) -> "optuna.pruners.BasePruner":
    """Makes the pruner of a name, in environment steps."""
    import optuna

    steps = plan.preset.total_steps
    if name == "hyperband":
        return optuna.pruners.HyperbandPruner(
            min_resource=max(steps // plan.reports, 1), max_resource=steps
        )
    if name == "median":
        return optuna.pruners.MedianPruner(n_warmup_steps=steps // 5)
    return optuna.pruners.NopPruner()


@contextlib.contextmanager
def _sigterm_exits() -> Iterator[None]:
    """Raises SystemExit with code 143 after SIGTERM, which batch systems send.

    Yields:
        None.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(
        signal.SIGTERM, lambda number, _: sys.exit(128 + number)
    )
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _optimize(
    study: "optuna.Study",
    plan: TuningPlan,
    folder: Path,
    episodes: EvaluationDataset,
    trials: int,
) -> None:
    """Runs trials until there are enough; an interrupted one is repeated."""
    import optuna
    from optuna.trial import TrialState

    def objective(trial: "optuna.Trial") -> float:
        # A resumed study draws the values that it would have drawn, and
        # processes that share a study draw different ones.
        study.sampler = optuna.samplers.TPESampler(
            seed=plan.seeds[0] + trial.number
        )
        try:
            return _train(trial, plan, folder, episodes)
        except (KeyboardInterrupt, SystemExit) as stop:
            study.enqueue_trial(trial.params)
            if isinstance(stop, SystemExit):
                # Optuna itself leaves the trial running.
                study.tell(trial, state=TrialState.FAIL)
            raise
        finally:
            # Graphs hold reference cycles, which would stay until later.
            gc.collect()

    enough = optuna.study.MaxTrialsCallback(
        trials, states=(TrialState.COMPLETE, TrialState.PRUNED)
    )
    study.optimize(objective, callbacks=[enough])


def _ended(study: "optuna.Study") -> "list[optuna.trial.FrozenTrial]":
    """Returns the trials that are complete or pruned."""
    ends = ("COMPLETE", "PRUNED")
    return [each for each in study.trials if each.state.name in ends]


def _train(
    trial: "optuna.Trial",
    plan: TuningPlan,
    folder: Path,
    episodes: EvaluationDataset,
) -> float:
    """Trains one trial with all seeds, and returns its value."""
    preset = plan.space.apply(plan.preset, plan.space.suggest(trial))
    runs, callbacks = [], []
    with contextlib.ExitStack() as opened:
        # The seeds of a trial differ in nothing that is compiled.
        opened.enter_context(SharedPrograms().used())
        for seed in plan.seeds:
            training = Training.from_preset(preset, seed=seed)
            opened.callback(training.close)
            run = RunFolder(
                folder / _TRIALS / f"{trial.number:04d}" / f"seed-{seed}"
            )
            run.path.mkdir(parents=True, exist_ok=True)
            run.write_preset(training.preset.to_dict())
            table = ProgressFile(run.progress)
            opened.callback(table.close)
            board = TensorBoard(
                run.path,
                histogram_freq=0,
                write_graph=False,
                hyper_parameters=trial.params,
            )
            runs.append((training.agent, training.dataset))
            callbacks.append((table, board))
        return fit_seeds(
            trial,
            runs,  # type: ignore[arg-type]
            total_steps=preset.total_steps,
            episodes=episodes,
            reports=plan.reports,
            aggregate=interquartile_mean,
            callbacks=callbacks,
        )


def _conclude(study: "optuna.Study", plan: TuningPlan, folder: Path) -> None:
    """Writes the best trial as a preset, and prints where it is."""
    from optuna.trial import FixedTrial

    ended = _ended(study)
    complete = [each for each in ended if each.state.name == "COMPLETE"]
    print(
        f"{len(ended)} trials, {len(complete)} of them to "
        f"{plan.preset.total_steps:,} steps, {len(ended) - len(complete)} "
        "pruned"
    )
    if not complete:
        return
    best = study.best_trial
    # A trial with fixed values suggests them again.
    drawn = plan.space.suggest(FixedTrial(best.params))
    preset = plan.space.apply(plan.preset, drawn)
    preset = dataclasses.replace(
        preset,
        source=f"keras-rl2 tune, the best of {len(ended)} trials",
        notes=(
            f"A return of {best.value:.1f} after {preset.total_steps} steps: "
            f"interquartile mean of seeds {', '.join(map(str, plan.seeds))}. "
            "Being the best of many, it is better than the returns of other "
            "seeds will be."
        ),
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / _BEST, preset.to_dict())
    print(
        f"{folder / _BEST}: return {best.value:.1f}, trial {best.number}: "
        f"keras-rl2 train {preset.algorithm.lower()} {preset.environment} "
        f"--preset {folder / _BEST}"
    )
