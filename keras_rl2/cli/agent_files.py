"""The files of a training's agent and of its best agent."""

from typing import Any

import keras

from keras_rl2.agents import Agent
from keras_rl2.agents.loader import load
from keras_rl2.cli.progress_file import count
from keras_rl2.cli.run_folder import RunFolder
from keras_rl2.cli.run_folder import write_json
from keras_rl2.data.evaluation import EvaluationDataset
from keras_rl2.presets.loading import read_object
from keras_rl2.saving.atomic_files import replacing

_NUMBERS = ("episode_return", "episode_return_std", "episode_length")


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

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Counts from the steps that the agent has taken so far."""
        done = count(self.model, self.axis)
        self._save_due = done + self.save_every
        self._evaluate_due = done + self.evaluate_every

    def on_epoch_begin(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Saves the agent if it is due.

        This is not done at the end of the previous epoch, since a checkpoint is
        written first, from which a training killed in between can be resumed.
        """
        done = count(self.model, self.axis)
        if self.save_every and done >= self._save_due:
            self._save_due = done + self.save_every
            self.save(self.model)

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Evaluates the agent if it is due."""
        done = count(self.model, self.axis)
        if self.evaluate_every and done >= self._evaluate_due:
            self._evaluate_due = done + self.evaluate_every
            results = self._evaluate(self.model)
            if logs is not None:
                logs.update({f"val_{name}": results[name] for name in _NUMBERS})

    def get_state(self) -> list[Any]:
        """Returns when files are due, and the last evaluation."""
        return [self._save_due, self._evaluate_due, self._last]

    def set_state(self, state: list[Any]) -> None:
        """Restores a state of `get_state`."""
        self._save_due, self._evaluate_due, self._last = state

    def save(self, agent: keras.Model) -> None:
        """Saves the agent of the folder, replacing an existing file."""
        with replacing(self.folder.agent) as unfinished:
            agent.save(unfinished)

    def remember(self) -> None:
        """Continues from the best agent of the folder.

        The folder's agent is evaluated first if there is no best agent, as in
        earlier versions, or no score, since the process was killed before
        writing it. A folder with a checkpoint from before the first evaluation
        is left alone.
        """
        kept = self.folder.best.is_file()
        if not kept and self.folder.holds_checkpoint:
            # The training resumes before its first evaluation.
            return
        agent = load(self.folder.best if kept else self.folder.agent)
        score: dict[str, Any] = {}
        if kept and self.folder.score.is_file():
            score = read_object(self.folder.score)
        if score.get(self.axis) == count(agent, self.axis):
            self.score = self._last = score
        else:
            self._evaluate(agent)

    def conclude(self, agent: Agent) -> dict[str, float]:
        """Returns the results of the last agent, evaluating it if needed.

        Args:
            agent: `keras_rl2.Agent`. The agent at the end of training.

        Returns:
            dict: the results of `agent.evaluate`, and `env_steps` or `updates`.
        """
        if self._last.get(self.axis) == count(agent, self.axis):
            return self._last
        return self._evaluate(agent)

    def close(self) -> None:
        """Closes the environments."""
        self.episodes.env.close()

    def _evaluate(self, agent: Agent) -> dict[str, float]:
        """Evaluates the agent, and saves it if it is the best so far."""
        results = agent.evaluate(self.episodes)
        self._last = {**results, self.axis: count(agent, self.axis)}
        best = self.score.get("episode_return")
        if best is None or results["episode_return"] > best:
            self.score = self._last
            # The agent first: a score without it would never be beaten.
            with replacing(self.folder.best) as unfinished:
                agent.save(unfinished)
            write_json(self.folder.score, self.score)
        return self._last
