"""The file of a saved agent: loaded, and kept while training goes on."""

import warnings
from pathlib import Path
from typing import Any

import keras

from keras_rl2.agents import Agent
from keras_rl2.agents.loader import load as load_agent
from keras_rl2.cli.errors import CommandError
from keras_rl2.cli.progress_file import STEPS
from keras_rl2.cli.progress_file import Axis
from keras_rl2.cli.run_folder import RunFolder
from keras_rl2.cli.run_folder import write_json
from keras_rl2.data.evaluation import EvaluationDataset
from keras_rl2.saving.atomic_files import replacing
from keras_rl2.saving.plain_files import read_json


class AgentFile(keras.callbacks.Callback):
    """Saves the agent after a number of environment steps, or updates.

    Each write is atomic: if the process is stopped, the previous file remains.

    Args:
        path: Path. The `.keras` file.
        every: int. Environment steps from one saving to the next, between
            Keras epochs; 0 to save only when `save` is called.
        axis: `Axis`. The unit of `every`. Defaults to `STEPS`.
    """

    def __init__(self, path: Path, every: int, axis: Axis = STEPS) -> None:
        super().__init__()
        self.axis = axis
        self.path = path
        self.every = every
        self._due = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Counts from the steps that the agent has taken so far."""
        self._due = self.axis.count(self.model) + self.every

    def on_epoch_begin(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Saves the agent if it is due.

        This is not done at the end of the previous epoch, since a checkpoint is
        written first, from which a training killed in between can be resumed.
        """
        done = self.axis.count(self.model)
        if self.every and done >= self._due:
            self._due = done + self.every
            self.save(self.model)

    def get_state(self) -> int:
        """Returns the count at which the next saving is due."""
        return self._due

    def set_state(self, state: int) -> None:
        """Restores a state of `get_state`.

        Args:
            state: int, as returned by `get_state`.
        """
        self._due = state

    def save(self, agent: keras.Model) -> None:
        """Saves an agent, replacing an existing file.

        Args:
            agent: `keras_rl2.Agent`.
        """
        with replacing(self.path) as unfinished:
            agent.save(unfinished)


def load(path: Path) -> Agent:
    """Loads a saved agent.

    Args:
        path: Path. A `.keras` file.

    Returns:
        `keras_rl2.Agent`, compiled as it was.

    Raises:
        CommandError: If the file holds no agent, or is damaged.
    """
    try:
        return load_agent(path)
    except ValueError as error:
        raise CommandError(str(error)) from error


def load_into(agent: Agent, path: Path) -> None:
    """Loads weights, optimizer state and step count into an agent.

    Args:
        agent: `keras_rl2.Agent`. Compiled; gets weights, the state of its
            optimizers, and the count of its steps.
        path: Path. A `.keras` file.

    Raises:
        CommandError: If the file's agent is another one.
    """
    agent.optimizer.build(agent.trainable_variables)
    try:
        with warnings.catch_warnings():
            # Keras only warns if it does not load an optimizer.
            warnings.simplefilter("error", UserWarning)
            agent.load_weights(path)
    except (ValueError, UserWarning) as error:
        raise CommandError(
            f"{path}: does not fit the settings of its preset.json: {error}"
        ) from error


_NUMBERS = ("episode_return", "episode_return_std", "episode_length")


class BestAgent(keras.callbacks.Callback):
    """Evaluates after a number of steps or updates, and saves the best agent.

    Training is the same with and without it. The logs of an evaluated epoch
    have the results, as `val_episode_return` and the like.

    Args:
        folder: `RunFolder`. Where `best.keras` and its score, `best.json`,
            go.
        episodes: `keras_rl2.EvaluationDataset`. Seeded, so that scores can
            be compared.
        every: int. Environment steps from one evaluation to the next, at ends
            of Keras epochs; 0 to evaluate only in `conclude`.
        axis: `Axis`. The unit of `every`. Defaults to `STEPS`.

    Attributes:
        score: dict. Results of the best agent, with its `env_steps` or
            `updates`; empty before the first evaluation.
    """

    def __init__(
        self,
        folder: RunFolder,
        episodes: EvaluationDataset,
        every: int,
        axis: Axis = STEPS,
    ) -> None:
        super().__init__()
        self.axis = axis
        self.folder = folder
        self.episodes = episodes
        self.every = every
        self.score: dict[str, float] = {}
        self._file = AgentFile(folder.best, 0)
        self._last: dict[str, float] = {}
        self._due = 0

    def remember(self) -> None:
        """Continues from the best agent of the folder.

        The folder's agent is evaluated first if there is no best agent, as in
        earlier versions, or no score, since the process was killed before
        writing it. A folder with a checkpoint from before the first evaluation
        is left alone.

        Raises:
            CommandError: If an agent or its score cannot be read.
        """
        kept = self.folder.best.is_file()
        if not kept and self.folder.holds_checkpoint:
            # The training resumes before its first evaluation.
            return
        agent = load(self.folder.best if kept else self.folder.agent)
        score = self._read_score()
        if kept and score.get(self.axis.name) == self.axis.count(agent):
            self.score = self._last = score
        else:
            self._evaluate(agent)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Counts from the steps that the agent has taken so far."""
        self._due = self.axis.count(self.model) + self.every

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Evaluates the agent if it is due."""
        done = self.axis.count(self.model)
        if not self.every or done < self._due:
            return
        self._due = done + self.every
        results = self._evaluate(self.model)
        if logs is not None:
            logs.update({f"val_{name}": results[name] for name in _NUMBERS})

    def get_state(self) -> dict[str, Any]:
        """Returns the state of the evaluations, as plain data.

        The score is not part of it: the folder has that of its best agent.
        """
        return {"last": self._last, "due": self._due}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores a state of `get_state`.

        Args:
            state: dict, as returned by `get_state`.
        """
        self._last, self._due = state["last"], state["due"]

    def conclude(self, agent: Agent) -> dict[str, float]:
        """Returns the results of the last agent, evaluating it if needed.

        Args:
            agent: `keras_rl2.Agent`. The agent at the end of training.

        Returns:
            dict: the results of `agent.evaluate`, and `env_steps` or `updates`.
        """
        if self._last.get(self.axis.name) == self.axis.count(agent):
            return self._last
        return self._evaluate(agent)

    def close(self) -> None:
        """Closes the environments."""
        self.episodes.env.close()

    def _evaluate(self, agent: Agent) -> dict[str, float]:
        """Evaluates the agent, and saves it if it is the best so far."""
        results = agent.evaluate(self.episodes)
        self._last = {**results, self.axis.name: self.axis.count(agent)}
        best = self.score.get("episode_return")
        if best is None or results["episode_return"] > best:
            self.score = self._last
            # The agent first: a score without it would never be beaten.
            self._file.save(agent)
            write_json(self.folder.score, self.score)
        return self._last

    def _read_score(self) -> dict[str, float]:
        """Returns the score in the folder; empty if there is none."""
        try:
            score = read_json(self.folder.score)
            return {
                name: float(score[name]) for name in (*_NUMBERS, self.axis.name)
            }
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError, KeyError) as error:
            raise CommandError(
                f"{self.folder.score}: not a score: {error!r}; remove it to "
                "have the agent evaluated"
            ) from error
