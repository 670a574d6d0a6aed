"""`keras-rl2 tune`: searches better settings than a preset's by Optuna."""

import argparse
import contextlib
import datetime
import time
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from keras_rl2 import agents
from keras_rl2 import presets
from keras_rl2.cli.parser import require_module
from keras_rl2.cli.run_folder import run_name
from keras_rl2.cli.run_folder import write_json
from keras_rl2.cli.train import asked_settings
from keras_rl2.cli.train import find_preset
from keras_rl2.cli.training import Training
from keras_rl2.cli.training_run import evaluation_of
from keras_rl2.presets import Preset
from keras_rl2.presets import SearchSpace
from keras_rl2.presets.algorithms import algorithm_name
from keras_rl2.training.from_preset import check_names
from keras_rl2.training.shared_programs import SharedPrograms

if TYPE_CHECKING:
    import optuna

_REPORTS = 10


def run(arguments: argparse.Namespace) -> None:
    """Runs the missing trials, and writes the best one as a preset."""
    name = algorithm_name(arguments.algorithm)
    if presets.ALGORITHMS[name].offline:
        raise ValueError(f"{name} learns from recorded data")
    preset = find_preset(name, arguments)
    preset = preset.with_settings(asked_settings(preset, arguments))
    ranges = {**presets.ALGORITHMS[name].search, **dict(arguments.search)}
    fixed = dict(arguments.set)
    for key in list(ranges):
        if ranges[key] is None or {key, key.partition(".")[0]} & fixed.keys():
            del ranges[key]
    space = SearchSpace(name, ranges)
    searched = dict.fromkeys(space.ranges.keys() - {"optimizer.name"})
    check_names(getattr(agents, name), space.apply(preset, searched))
    require_module("optuna", "pip install optuna")
    study = arguments.study or run_name(name, preset.environment)
    seeds = list(range(arguments.seed, arguments.seed + arguments.seeds))
    _tune(preset, space, seeds, study, arguments)


def _tune(
    preset: Preset,
    space: SearchSpace,
    seeds: list[int],
    name: str,
    arguments: argparse.Namespace,
) -> None:
    """Runs trials until there are enough, and writes the best preset."""
    import optuna
    from optuna.trial import TrialState

    ended = (TrialState.COMPLETE, TrialState.PRUNED)
    plan = [preset.to_dict(), dict(space.ranges), seeds]
    study = _study(name, arguments.storage, plan, preset.total_steps)
    if not any(each.state != TrialState.FAIL for each in study.trials):
        study.enqueue_trial({}, {"preset": True})

    def objective(trial: optuna.Trial) -> float:
        # A resumed study draws the values that it would have drawn, and
        # processes that share a study draw different ones.
        study.sampler = optuna.samplers.TPESampler(seed=seeds[0] + trial.number)
        try:
            return _train(trial, _settings(preset, space, trial), seeds)
        except FloatingPointError as error:
            raise optuna.TrialPruned(str(error)) from error

    def tell(study: optuna.Study, trial: Any) -> None:
        done = len(study.get_trials(states=ended))
        spent = (time.monotonic() - begun) / (done - before)
        left = datetime.timedelta(seconds=round(spent * max(trials - done, 0)))
        value = "pruned" if trial.value is None else f"{trial.value:.1f}"
        print(f"trial {trial.number}: {value}, {done} of {trials}, {left} left")

    trials = arguments.trials
    begun, before = time.monotonic(), len(study.get_trials(states=ended))
    enough = optuna.study.MaxTrialsCallback(trials, states=ended)
    try:
        if before < trials:
            study.optimize(objective, callbacks=[tell, enough])
    finally:
        if study.get_trials(states=ended[:1]):
            best = study.best_trial
            _write_best(name, best, _settings(preset, space, best))


def _study(
    name: str, storage: str, plan: list[Any], steps: int
) -> "optuna.Study":
    """Returns the study of a plan, which may hold trials already."""
    import optuna

    study = optuna.create_study(
        storage=storage,
        study_name=name,
        direction="maximize",
        load_if_exists=True,
        pruner=optuna.pruners.MedianPruner(5, steps // 5),
    )
    if study.user_attrs.get("plan", plan) != plan:
        raise ValueError(
            f"{storage} holds trials of {name} with other settings: --study "
            "gives another name"
        )
    study.set_user_attr("plan", plan)
    return study


def _write_best(name: str, best: Any, preset: Preset) -> None:
    """Writes the settings of the best trial as a preset."""
    data = preset.to_dict()
    data["source"] = f"tune, trial {best.number}: {best.value:.1f}"
    data["notes"] = "Other seeds will do worse: the best of many."
    write_json(Path(f"{name}.json"), data)
    summary = f"best: trial {best.number}, return {best.value:.1f}"
    print(f"{summary}, written to {name}.json")


def _train(trial: "optuna.Trial", preset: Preset, seeds: list[int]) -> float:
    """Trains all seeds in turns, and returns their mean return."""
    import optuna

    score = float("nan")
    with contextlib.ExitStack() as stack:
        # The seeds of a trial differ in nothing that is compiled.
        stack.enter_context(SharedPrograms().used())
        episodes = evaluation_of(preset, seeds[0])
        stack.callback(episodes.env.close)
        trainings = [Training.from_preset(preset, seed=seed) for seed in seeds]
        for training in trainings:
            stack.callback(training.close)
        warm_up = trainings[0].dataset.steps_before_first_round
        for part in range(1, _REPORTS + 1):
            steps = preset.total_steps * part // _REPORTS
            if part < _REPORTS and steps <= warm_up:
                continue
            returns = []
            for training in trainings:
                # With whole rounds it may have taken more already.
                if training.agent.env_steps < steps:
                    training.run(total_steps=steps)
                results = training.agent.evaluate(episodes, verbose=0)
                returns.append(results["episode_return"])
            score = float(np.mean(returns))
            trial.report(score, steps)
            if part < _REPORTS and trial.should_prune():
                raise optuna.TrialPruned(f"{score:.6g} after {steps} steps")
    return score


def _settings(preset: Preset, space: SearchSpace, trial: Any) -> Preset:
    """Returns the settings of a trial; the first trial has the preset's."""
    if "preset" in trial.user_attrs:
        return preset
    return space.apply(preset, space.suggest(trial))
