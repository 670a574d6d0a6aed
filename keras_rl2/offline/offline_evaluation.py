"""Evaluation of a policy by recorded episodes, without an environment."""

from collections.abc import Callable
from typing import Any
from typing import Protocol

import numpy as np
import tensorflow as tf

from keras_rl2 import returns
from keras_rl2.basics.arguments import check_at_least
from keras_rl2.basics.arguments import check_flag
from keras_rl2.basics.arguments import check_seed
from keras_rl2.basics.shapes import Tensor
from keras_rl2.offline.fitted_q import FittedQ
from keras_rl2.offline.offline import OfflineDataset
from keras_rl2.offline.recorded_episodes import RecordedEpisodes
from keras_rl2.policies.agent_protocols import CollectingAgent
from keras_rl2.policies.policy import ModelPolicy
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves

_BATCH_SIZE = 256
# Rows of one call of a network.
_ROWS = 16384


class EvaluatedAgent(ModelPolicy, CollectingAgent, Protocol):
    """An agent whose return is estimated; see `keras_rl2.Agent`."""

    def values_of_taken(
        self, observation: Tree[Tensor], action: Tensor, training: bool = False
    ) -> list[Tensor]:
        """Returns the Q-values of actions, `[B]` of each critic.

        Args:
            observation: `[B, ...]`. Raw observations.
            action: `[B, ...]`. The policy's own actions.
            training: bool. Passed on to the critics. Defaults to `False`.

        Returns:
            list of `[B]` float32; empty if there is no critic.
        """


class OfflineEvaluation:
    """Estimates of a policy's value from recorded episodes.

    An instance can be passed as `validation_data` to `agent.fit`. Values are
    discounted by the agent's `gamma`, and averaged over the first observations
    of episodes:

    - `fqe_value`, fitted Q evaluation: a separate Q network learns the values
      of the policy's actions by `updates` minibatches, in each evaluation;
    - `behavior_value`, the mean return of the data itself, for comparison;
    - `q_overestimation`, for agents with critics: mean Q-value of the steps in
      the data, minus the mean of the returns from there on. It is 0 for the
      behavior policy, and positive for a better one; if it keeps growing, the
      values diverge.

    The steps after a truncated episode are not in the data: its returns
    bootstrap from the critic's value of the policy's action; without critics
    nothing is added.

    Args:
        offline: `OfflineDataset`. In memory; its `n_step` is not used.
        updates: int. Updates of the Q network; 0 leaves `fqe_value` out.
            Defaults to `5000`.
        deterministic: bool. Whether the policy takes its most probable
            actions. Defaults to `True`.
        seed: int or None. Seeds weights, minibatches and actions. Defaults to
            `0`.

    Raises:
        ValueError: If a number is out of range.

    Example:

    >>> import keras_rl2 as rl
    >>> offline = rl.record("random", "CartPole-v1", 500, seed=0)
    >>> agent = rl.DQN.for_env("CartPole-v1", seed=0)
    >>> sorted(agent.evaluate(offline, updates=10))
    ['behavior_value', 'fqe_value', 'q_overestimation']

    Reference:
        - [Le et al., 2019](https://arxiv.org/abs/1903.08738).
    """

    def __init__(
        self,
        offline: OfflineDataset,
        *,
        updates: int = 5000,
        deterministic: bool = True,
        seed: int | None = 0,
    ) -> None:
        check_at_least(0, updates=updates)
        check_flag(deterministic=deterministic)
        check_seed(seed)
        if not isinstance(offline, OfflineDataset):
            raise ValueError(
                "Expected `offline` to be an `OfflineDataset`. "
                f"Received: offline={offline!r}"
            )
        self.offline = offline
        self.updates = updates
        self.deterministic = deterministic
        self.seed = seed

    def play(self, agent: EvaluatedAgent) -> dict[str, float]:
        """Returns the estimates for the agent's current weights.

        Args:
            agent: `keras_rl2.Agent`. It is not changed.

        Returns:
            dict of floats; see the class.

        Raises:
            ValueError: If the dataset streams, or does not fit the agent.
        """
        episodes = RecordedEpisodes(self.offline, agent)
        to_go = _returns_to_go(episodes, _after_last(agent, episodes))
        found = {"behavior_value": float(np.mean(to_go[episodes.first]))}
        taken = _in_pieces(
            lambda each: _taken(agent, each), episodes.transitions
        )
        if taken is not None:
            found["q_overestimation"] = float(np.mean(taken - to_go))
        if self.updates:
            fitted = FittedQ(agent, self.deterministic, self.seed)
            fitted.fit(episodes, self.updates, _BATCH_SIZE)
            first = episodes.take(episodes.first)["observation"]
            found["fqe_value"] = float(np.mean(fitted.values(first)))
        return found


def _after_last(
    agent: EvaluatedAgent, episodes: RecordedEpisodes
) -> np.ndarray:
    """Returns the policy's values after the last steps, `[E]`."""

    def value(each: dict[str, Any]) -> np.ndarray | None:
        seen = each["next_observation"]
        taken = {"observation": seen, "action": agent.greedy_action(seen)}
        return _taken(agent, taken)

    found = _in_pieces(value, episodes.take(episodes.last))
    return np.zeros(len(episodes.lengths)) if found is None else found


def _taken(agent: EvaluatedAgent, batch: dict[str, Any]) -> np.ndarray | None:
    """Returns the critics' mean Q-values of actions; None without critics."""
    values = agent.values_of_taken(batch["observation"], batch["action"])
    return np.mean(np.array(values), axis=0) if values else None


def _in_pieces(
    function: Callable[[dict[str, Any]], Any],
    batch: dict[str, Any],
) -> np.ndarray | None:
    """Applies a function to `_ROWS` rows at a time; returns None if it does."""
    count = len(leaves(batch["observation"])[0])
    found = []
    for start in range(0, count, _ROWS):
        rows = slice(start, start + _ROWS)
        piece = {
            key: map_leaves(
                lambda array, rows=rows: tf.convert_to_tensor(array[rows]), tree
            )
            for key, tree in batch.items()
        }
        found.append(function(piece))
    return None if found[0] is None else np.concatenate(found)


def _returns_to_go(
    episodes: RecordedEpisodes, bootstrap: np.ndarray
) -> np.ndarray:
    """Returns the return from each step on, `[N]`."""
    steps = episodes.transitions
    to_go = returns.discounted_returns(
        episodes.padded(steps["reward"], 0.0),
        # The bootstrap passes the padding of shorter episodes undiminished.
        episodes.padded(steps["discount"], 1.0),
        bootstrap,
    )
    return episodes.flat(np.array(to_go))
