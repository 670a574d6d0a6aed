"""Keeping the best agent of a training."""

from typing import Any

import keras

from keras_rl2.agents import Agent
from keras_rl2.cli import saved_agents
from keras_rl2.cli.agent_file import AgentFile
from keras_rl2.cli.axis import STEPS
from keras_rl2.cli.axis import Axis
from keras_rl2.cli.errors import CommandError
from keras_rl2.cli.run_folder import RunFolder
from keras_rl2.cli.run_folder import write_json
from keras_rl2.data.evaluation import EvaluationDataset
from keras_rl2.files.plain_files import read_json

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
        agent = saved_agents.load(
            self.folder.best if kept else self.folder.agent
        )
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
