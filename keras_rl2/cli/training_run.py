"""One training of `keras-rl2 train`: its run, and the files that it writes."""

import argparse
import contextlib
import csv
import sys
from pathlib import Path
from typing import Any

import keras

from keras_rl2.agents import Agent
from keras_rl2.agents.loader import load
from keras_rl2.callbacks import Checkpoint
from keras_rl2.callbacks import Progress
from keras_rl2.callbacks import TensorBoard
from keras_rl2.callbacks.run import Logs
from keras_rl2.cli.evaluate import describe
from keras_rl2.cli.plot import read_rows
from keras_rl2.cli.run_folder import RunFolder
from keras_rl2.cli.run_folder import read_if_exists
from keras_rl2.cli.run_folder import write_json
from keras_rl2.cli.training import Training
from keras_rl2.data.evaluation import EvaluationDataset
from keras_rl2.offline.offline import OfflineDataset
from keras_rl2.presets import Preset
from keras_rl2.saving.atomic_files import replacing

EVALUATION_EPISODES = 20
# The earlier checkpoint serves if the newest is damaged.
_NUM_CHECKPOINTS = 2
# No run has so many steps: the only checkpoint is the one at its end.
_NEVER = 2**62
# Number of evaluations of a run, by default.
_EVALUATIONS = 10
# The first columns, by the one that identifies a row. On recorded data, no
# episodes are played but those of evaluations.
_COLUMNS = {
    "env_steps": [
        "env_steps",
        "episode_return",
        "episode_length",
        "steps_per_second",
        "val_episode_return",
    ],
    "updates": ["updates", "updates_per_second", "val_episode_return"],
}


class AgentFiles(keras.callbacks.Callback):
    """Saves the agent, and the one that does best in evaluations.

    Training is the same with and without evaluations. The logs of an evaluated
    epoch have the results, as `val_episode_return` and the like. Each write is
    atomic: if the process is stopped, the previous file remains.

    Args:
        folder: `RunFolder`. Where the agents and the best one's score go.
        episodes: `keras_rl2.EvaluationDataset`. Seeded, so that scores can
            be compared.
        save_every: int. Environment steps from one saving to the next, between
            Keras epochs; 0 to save only when `save` is called.
        evaluate_every: int. Environment steps from one evaluation to the next,
            at ends of Keras epochs; 0 to evaluate only in `conclude`.
        axis: str. What is counted: `"env_steps"`, or `"updates"` where no
            steps are taken. Defaults to `"env_steps"`.

    Attributes:
        score: dict. Results of the best agent, with its `env_steps` or
            `updates`; empty before the first evaluation.
    """

    def __init__(
        self,
        folder: RunFolder,
        episodes: EvaluationDataset,
        save_every: int,
        evaluate_every: int,
        axis: str = "env_steps",
    ) -> None:
        super().__init__()
        self.axis = axis
        self.folder = folder
        self.episodes = episodes
        self.save_every = save_every
        self.evaluate_every = evaluate_every
        self.score: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._save_due = self._evaluate_due = 0

    def on_train_begin(self, logs: Logs = None) -> None:
        """Counts from the steps that the agent has taken so far."""
        done = count(self.model, self.axis)
        self._save_due = done + self.save_every
        self._evaluate_due = done + self.evaluate_every

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Saves the agent if it is due.

        This is not done at the end of the previous epoch, since a checkpoint is
        written first, from which a training killed in between can be resumed.
        """
        done = count(self.model, self.axis)
        if self.save_every and done >= self._save_due:
            self._save_due = done + self.save_every
            self.model.save(self.folder.agent)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Evaluates the agent if it is due."""
        done = count(self.model, self.axis)
        if self.evaluate_every and done >= self._evaluate_due:
            self._evaluate_due = done + self.evaluate_every
            results = self._evaluate(self.model)
            if logs is not None:
                logs.update({f"val_{key}": results[key] for key in results})

    def get_state(self) -> list[Any]:
        """Returns when files are due, and the last evaluation."""
        return [self._save_due, self._evaluate_due, self._last]

    def set_state(self, state: list[Any]) -> None:
        """Restores a state of `get_state`."""
        self._save_due, self._evaluate_due, self._last = state

    def remember(self) -> None:
        """Continues from the best agent of the folder, if there is one.

        It is evaluated again if there is no score of it, since the process was
        killed before writing that.
        """
        if not self.folder.best.is_file():
            return
        agent = load(self.folder.best)
        score = read_if_exists(self.folder.score)
        if score.get(self.axis) == count(agent, self.axis):
            self.score = self._last = score
        else:
            self._evaluate(agent)

    def conclude(self, agent: Agent) -> dict[str, float]:
        """Returns the results of the last agent, evaluating it if needed."""
        done = count(agent, self.axis)
        if not self.score or self._last.get(self.axis) != done:
            self._evaluate(agent)
        return self._last

    def _evaluate(self, agent: Agent) -> dict[str, float]:
        """Evaluates the agent, and saves it if it is the best so far."""
        results = agent.evaluate(self.episodes)
        self._last = {**results, self.axis: count(agent, self.axis)}
        best = self.score.get("episode_return")
        if best is None or results["episode_return"] > best:
            self.score = self._last
            # The agent first: a score without it would never be beaten.
            agent.save(self.folder.best)
            write_json(self.folder.score, self.score)
        return results


class ProgressFile(keras.callbacks.Callback):
    """Writes the logs of each epoch as one row of a CSV file.

    An existing file is continued from the step that the agent has reached:
    later rows belong to a part of the training that was lost.
    `keras.callbacks.CSVLogger` would keep them, and reorder the columns.

    Args:
        path: Path. The file.
        axis: str. The column that identifies a row, `"env_steps"` or
            `"updates"`. Defaults to `"env_steps"`.
    """

    is_table = True

    def __init__(self, path: Path, axis: str = "env_steps") -> None:
        super().__init__()
        self.axis = axis
        self.path = path
        self._columns: list[str] = []

    def on_train_begin(self, logs: Logs = None) -> None:
        """Rewrites an existing file, with the rows that are still valid."""
        self._columns = []
        if not self.path.exists():
            return
        self._columns, rows = read_rows(self.path)
        done = count(self.model, self.axis)
        with (
            replacing(self.path) as unfinished,
            unfinished.open("w", newline="", encoding="utf-8") as file,
        ):
            if self._columns:
                index = self._columns.index(self.axis)
                valid = (row for row in rows if float(row[index]) <= done)
                csv.writer(file).writerows([self._columns, *valid])

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Writes a row."""
        logs = dict(logs or {})
        if self.axis == "updates":
            # The number of environment steps does not change.
            logs.pop("env_steps", None)
            logs["updates"] = count(self.model, "updates")
        if not self._columns:
            first = _COLUMNS[self.axis]
            self._columns = [*first, *sorted(set(logs) - set(first))]
            self._write(self._columns)
        self._write([logs.get(name, "") for name in self._columns])

    def _write(self, row: list[Any]) -> None:
        """Adds a row, for readers during the training."""
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow(row)


def count(agent: object, axis: str) -> int:
    """Returns the environment steps or the updates of an agent."""
    return int(getattr(agent, axis))


def train(
    preset: Preset,
    folder: RunFolder,
    seed: int,
    resume: bool,
    arguments: argparse.Namespace,
) -> None:
    """Trains one agent, saves it and the best one, and prints their returns."""
    length = preset.updates or preset.total_steps
    evaluate = arguments.evaluate
    if evaluate is None:
        evaluate = max(length // _EVALUATIONS, 1)
    axis = "updates" if preset.updates else "env_steps"
    episodes = evaluation_of(preset, seed)
    files = AgentFiles(folder, episodes, arguments.checkpoint, evaluate, axis)
    with contextlib.ExitStack() as stack:
        stack.callback(episodes.env.close)
        training = Training.from_preset(preset, seed=seed, data=arguments.data)
        stack.callback(training.close)
        print(
            f"{preset.algorithm} on {preset.environment}, seed {seed}, "
            f"{length:,} {axis.removeprefix('env_')}, "
            f"{_experience(training)}: {folder.path}"
        )
        if resume:
            files.remember()
        else:
            folder.clear()
        folder.path.mkdir(parents=True, exist_ok=True)
        write_json(folder.preset, training.preset.to_dict())
        _fit(training, files, None if resume else length)
        results = files.conclude(training.agent)
    for file, score in ((folder.agent, results), (folder.best, files.score)):
        print(f"{file}: {describe(score, EVALUATION_EPISODES, 'greedy')}")


def evaluation_of(preset: Preset, seed: int) -> EvaluationDataset:
    """Returns episodes to evaluate on, in environments of their own."""
    return EvaluationDataset(
        preset.environment,
        EVALUATION_EPISODES,
        num_envs=EVALUATION_EPISODES,
        seed=seed,
        env_kwargs=preset.env_kwargs,
    )


def _fit(training: Training, files: AgentFiles, length: int | None) -> None:
    """Trains to the end of the run, and saves whatever happens."""
    agent, folder, axis = training.agent, files.folder, files.axis
    table = ProgressFile(folder.progress, axis)
    # The steps of a round that ends with an episode are not known before.
    progress = Progress(length if agent.whole_episodes else None)
    checkpoint = Checkpoint(
        folder.checkpoints,
        every_steps=files.save_every or _NEVER,
        keep=_NUM_CHECKPOINTS,
    )
    board = TensorBoard(folder.path)
    try:
        training.run([checkpoint, files, progress, table, board], "auto")
    except BaseException:
        # The weights of the last round may have taken hours, also if Ctrl-C or
        # an error of the environment ends the training.
        if done := count(agent, axis):
            agent.save(folder.agent)
            # The line of progress has not been ended.
            line_break = "\n" if sys.stdout.isatty() else ""
            unit = axis.removeprefix("env_")
            print(f"{line_break}{folder.agent}: saved at {done:,} {unit}")
        raise
    agent.save(folder.agent)


def _experience(training: Training) -> str:
    """Returns the source of experience in words."""
    if isinstance(training.dataset, OfflineDataset):
        return training.dataset.in_words
    envs = training.preset.num_envs
    return f"{envs} environment{'s' if envs > 1 else ''}"
