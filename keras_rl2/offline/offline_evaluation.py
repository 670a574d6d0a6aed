"""Evaluation of a policy by recorded episodes, without an environment."""

from collections.abc import Callable
from typing import Any
from typing import Protocol

import gymnasium
import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_rl2 import returns
from keras_rl2.basics import seeds
from keras_rl2.basics.arguments import check_at_least
from keras_rl2.basics.arguments import check_flag
from keras_rl2.basics.arguments import check_seed
from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks.inputs import run_network
from keras_rl2.offline.fitted_q import FittedQ
from keras_rl2.offline.fitted_q import networks_beside
from keras_rl2.offline.offline import OfflineDataset
from keras_rl2.offline.recorded_episodes import RecordedEpisodes
from keras_rl2.policies.agent_protocols import CollectingAgent
from keras_rl2.policies.policy import ModelPolicy
from keras_rl2.policies.policy import Stochastic
from keras_rl2.policy_heads.discrete_head import DiscreteHead
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.updates.updater import apply_gradients

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
    - `wis_value`, weighted importance sampling per decision: returns of
      episodes, weighted by their probability under the policy relative to
      that under the behavior policy. It is available with
      `deterministic=False`, for Discrete actions of a policy with
      probabilities: under a greedy policy most episodes are impossible. The
      data does not include the probabilities of its actions, so a network is
      trained to clone the behavior policy, by `updates` minibatches as well.
      `wis_episodes` is the effective number of episodes, by which to judge the
      estimate;
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
        updates: int. Updates of the Q network, and of the clone; 0 leaves both
            estimates out. Defaults to `5000`.
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
        - [Le et al., 2019](https://arxiv.org/abs/1903.08738), fitted Q.
        - [Precup et al., 2000](https://scholarworks.umass.edu/cs_faculty_pubs/80).
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
        bootstrap = self._of_policy(agent, episodes)
        to_go = _returns_to_go(episodes, bootstrap)
        found = {"behavior_value": float(np.mean(to_go[episodes.first]))}
        taken = _in_pieces(
            lambda each: _taken(agent, each), episodes.transitions
        )
        if taken is not None:
            found["q_overestimation"] = float(np.mean(taken - to_go))
        if self.updates:
            found["fqe_value"] = self._fitted(agent, episodes)
            if self._has_probabilities(agent):
                found |= self._weighted(agent, episodes)
        return found

    def _of_policy(
        self, agent: EvaluatedAgent, episodes: RecordedEpisodes
    ) -> np.ndarray:
        """Returns the values after the last steps, `[E]`."""
        last = episodes.take(episodes.last)

        def value(each: dict[str, Any]) -> np.ndarray | None:
            following = each["next_observation"]
            action = agent.greedy_action(following)
            return _taken(agent, {"observation": following, "action": action})

        found = _in_pieces(value, last)
        return np.zeros(len(episodes.lengths)) if found is None else found

    def _fitted(
        self, agent: EvaluatedAgent, episodes: RecordedEpisodes
    ) -> float:
        """Returns the value by fitted Q evaluation."""
        fitted = FittedQ(agent, self.deterministic, self.seed)
        fitted.fit(episodes, self.updates, _BATCH_SIZE)
        first = episodes.take(episodes.first)["observation"]
        return float(np.mean(fitted.values(first)))

    def _has_probabilities(self, agent: EvaluatedAgent) -> bool:
        """Returns whether importance sampling is possible."""
        discrete = isinstance(agent.action_space, gymnasium.spaces.Discrete)
        return (
            discrete
            and not self.deterministic
            and isinstance(agent, Stochastic)
        )

    def _weighted(
        self, agent: EvaluatedAgent, episodes: RecordedEpisodes
    ) -> dict[str, float]:
        """Returns the value by weighted importance sampling."""
        assert isinstance(agent, Stochastic)
        clone = self._cloned(agent, episodes)

        def log_ratio(each: dict[str, Any]) -> np.ndarray:
            observation, action = each["observation"], each["action"]
            policy = agent.distribution(observation)
            behavior = _policy_of(agent, clone, observation)
            ratio = policy.log_prob(action) - behavior.log_prob(action)
            return np.array(ratio)

        ratios = _in_pieces(log_ratio, episodes.transitions)
        assert ratios is not None
        ratio = episodes.padded(ratios, 0.0)
        reward = episodes.padded(episodes.transitions["reward"], 0.0)
        parts = returns.weighted_importance_sampling(ratio, reward, agent.gamma)
        total = ratio.sum(axis=0)
        weight = np.exp(total - total.max())
        return {
            "wis_value": float(np.sum(parts)),
            "wis_episodes": float(weight.sum() ** 2 / np.sum(weight**2)),
        }

    def _cloned(
        self, agent: EvaluatedAgent, episodes: RecordedEpisodes
    ) -> keras.Model:
        """Returns a network with the logits of the behavior policy."""
        build = networks_beside(agent, self.seed)
        head = agent.policy_head
        assert isinstance(head, DiscreteHead)
        clone = build.network("behavior", head.n, self.seed)
        optimizer = keras.optimizers.Adam(1e-3)
        optimizer.build(clone.trainable_variables)

        def update(batch: dict[str, Any]) -> None:
            with tf.GradientTape() as tape:
                policy = _policy_of(agent, clone, batch["observation"])
                loss = -ops.mean(policy.log_prob(batch["action"]))
            variables = clone.trainable_variables
            gradients = tape.gradient(loss, variables)
            apply_gradients(optimizer, gradients, variables)

        traced = tf.function(update)
        generator = seeds.generator(self.seed)
        for _ in range(self.updates):
            index = generator.integers(len(episodes), size=_BATCH_SIZE)
            traced(map_leaves(tf.convert_to_tensor, episodes.take(index)))
        return clone


def _policy_of(
    agent: EvaluatedAgent, network: keras.Model, observation: Tree[Tensor]
) -> Any:
    """Returns the action distribution of a network with logits."""
    logits = run_network(network, agent.task.encode(observation), False)
    return agent.policy_head(agent.task.allowed(observation, logits))


def _taken(agent: EvaluatedAgent, batch: dict[str, Any]) -> np.ndarray | None:
    """Returns the critics' mean Q-values of actions; None without critics."""
    values = agent.values_of_taken(batch["observation"], batch["action"])
    if not values:
        return None
    mean: np.ndarray = np.mean([np.array(each) for each in values], axis=0)
    return mean


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
