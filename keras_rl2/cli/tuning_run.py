"""The trials of `keras-rl2 tune`, from the first to the preset they give."""

import contextlib
import dataclasses
import gc
import logging
import signal
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING
from typing import NoReturn

from keras_rl2.callbacks import TensorBoard
from keras_rl2.cli import studies
from keras_rl2.cli import tuning_report
from keras_rl2.cli.learning_curves import interquartile_mean
from keras_rl2.cli.progress_file import ProgressFile
from keras_rl2.cli.run_folder import write_json
from keras_rl2.cli.tune_folder import TuneFolder
from keras_rl2.cli.tuning_plan import TuningPlan
from keras_rl2.data import EvaluationDataset
from keras_rl2.presets import Preset
from keras_rl2.runs.training import Training
from keras_rl2.tuning import fit_seeds

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

_EVALUATION_EPISODES = 20


def tune(
    study: "optuna.Study",
    plan: TuningPlan,
    folder: TuneFolder,
    trials: int,
    pruner: str,
) -> None:
    """Runs the trials that are missing, and writes what all of them found.

    Args:
        study: `optuna.Study`. Has the plan's trials so far.
        plan: `TuningPlan`. What is tried.
        folder: `TuneFolder`. Where files go.
        trials: int. Trials in the end.
        pruner: str. What gives up on trials.

    Raises:
        ValueError: If settings do not fit each other or the environment.
        KeyboardInterrupt: After Ctrl-C; what was found so far is written.
        SystemExit: After SIGTERM; so it is.
    """
    # Each trial has agents of its own, and so graphs.
    logging.getLogger("tensorflow").addFilter(_is_no_retracing)
    there = len(studies.done(study))
    resumed = f", resumed at trial {there}" if there else ""
    print(f"{plan.headline()}, {trials} trials{resumed}: {folder.path}")
    study.pruner = studies.pruner(pruner, plan.preset.total_steps, plan.reports)
    preset = plan.preset
    episodes = EvaluationDataset(
        preset.environment,
        _EVALUATION_EPISODES,
        num_envs=_EVALUATION_EPISODES,
        seed=plan.seeds[0],
        env_kwargs=preset.env_kwargs,
    )
    try:
        if there < trials:
            with _sigterm_as_ctrl_c():
                studies.optimize(
                    study,
                    lambda trial: _train(trial, plan, folder, episodes),
                    trials,
                    plan.seeds[0],
                    tuning_report.print_trial,
                )
    finally:
        episodes.env.close()
        _conclude(study, plan, folder)


@contextlib.contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Has SIGTERM, as of batch systems, break off a trial as Ctrl-C does.

    Raises:
        SystemExit: Of code 143, after such a signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = []

    def interrupt(number: int, frame: object) -> NoReturn:
        signals.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        if signals:
            raise SystemExit(128 + signal.SIGTERM) from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _train(
    trial: "optuna.Trial",
    plan: TuningPlan,
    folder: TuneFolder,
    episodes: EvaluationDataset,
) -> float:
    """Trains one trial with all seeds, and returns what it is worth."""
    values = plan.space.suggest(trial)
    preset = plan.space.apply(plan.preset, values)
    trainings: list[Training] = []
    tables: list[ProgressFile] = []
    boards: list[TensorBoard] = []
    try:
        for seed in plan.seeds:
            trainings.append(Training.from_preset(preset, seed=seed))
            run = folder.run(trial.number, seed)
            run.path.mkdir(parents=True, exist_ok=True)
            run.write_preset(trainings[-1].preset.to_dict())
            tables.append(ProgressFile(run.progress))
            boards.append(
                TensorBoard(
                    run.path,
                    histogram_freq=0,
                    write_graph=False,
                    hyper_parameters=trial.params,
                )
            )
        return fit_seeds(
            trial,
            [(each.agent, each.dataset) for each in trainings],  # type: ignore[misc]
            total_steps=preset.total_steps,
            episodes=episodes,
            reports=plan.reports,
            aggregate=interquartile_mean,
            callbacks=list(zip(tables, boards, strict=True)),
        )
    finally:
        for table in tables:
            table.close()
        for each in trainings:
            each.close()
        trainings.clear()
        # Graphs are circles, which would wait for the next trials.
        gc.collect()


def _is_no_retracing(record: logging.LogRecord) -> bool:
    """Whether TensorFlow speaks of something else than its functions."""
    return "tf.function retracing" not in record.getMessage()


def _conclude(
    study: "optuna.Study", plan: TuningPlan, folder: TuneFolder
) -> None:
    """Writes tables, pictures and the best preset; prints where they are."""
    found = studies.done(study)
    if not found:
        return
    folder.path.mkdir(parents=True, exist_ok=True)
    tuning_report.write_table(folder.table, found, plan.space)
    if best := studies.complete(study)[:1]:
        preset = best_preset(plan, best[0], len(found))
        write_json(folder.best, preset.to_dict())
    tuning_report.print_all(study, plan.preset.total_steps)
    for file in tuning_report.draw(study, folder):
        print(file)
    if best:
        print(
            f"{folder.best}: keras-rl2 train {plan.preset.algorithm.lower()} "
            f"{plan.preset.environment} --preset {folder.best}"
        )


def best_preset(plan: TuningPlan, trial: "FrozenTrial", trials: int) -> Preset:
    """Returns the settings of a trial as a preset.

    Args:
        plan: `TuningPlan`. What the trial was one of.
        trial: `optuna.trial.FrozenTrial`.
        trials: int. How many there were.

    Returns:
        `Preset`.
    """
    from optuna.trial import FixedTrial

    # A trial that is over gives again what it drew.
    drawn = FixedTrial(trial.params)
    preset = plan.space.apply(plan.preset, plan.space.suggest(drawn))
    seeds = ", ".join(map(str, plan.seeds))
    return dataclasses.replace(
        preset,
        source=f"keras-rl2 tune, the best of {trials} trials",
        notes=(
            f"A return of {trial.value:.1f} after {preset.total_steps} steps: "
            f"interquartile mean of seeds {seeds}. Being the best of many, it "
            "is better than what other seeds will give."
        ),
    )
