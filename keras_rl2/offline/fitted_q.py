"""Fitted Q evaluation: the value of a fixed policy from recorded steps."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from gymnasium.spaces import Box
from gymnasium.spaces import Discrete
from keras import ops

from keras_rl2.basics import seeds
from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks.builder import NetworkBuilder
from keras_rl2.networks.network_copies import copy_of
from keras_rl2.offline.recorded_episodes import RecordedEpisodes
from keras_rl2.policies.policy import ModelPolicy
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.updates import critics
from keras_rl2.updates.target_networks import TargetUpdate
from keras_rl2.updates.updater import apply_gradients

_OPTIONS = {
    "hidden": None,
    "activation": "relu",
    "normalize_observations": False,
    "normalization": "none",
    "initialization": "fan_in",
}


class FittedQ:
    """Values of a fixed policy, learned from the steps of another one.

    A separate network learns the action values of the policy,

        Q(s, a) = r + discount Q'(s', a'),    a' ~ π(s')

    with a target network Q'. It does not share the errors of the agent's
    critic. It has two hidden layers of 64 units, or the convolutions of
    `for_env`.

    Args:
        agent: `keras_rl2.Agent`. The agent with the policy, of Box or Discrete
            actions.
        deterministic: bool. Whether the policy takes its most probable
            actions.
        seed: int or None. Seeds weights, minibatches and actions.

    Reference:
        - [Le et al., 2019](https://arxiv.org/abs/1903.08738).
    """

    def __init__(
        self, agent: ModelPolicy, deterministic: bool, seed: int | None
    ) -> None:
        space, head = agent.action_space, agent.policy_head
        if not isinstance(space, Box | Discrete):
            raise ValueError(
                "Expected an agent of Box or Discrete actions for fitted Q "
                "evaluation; without it, pass `updates=0`. Received: "
                f"{space}"
            )
        self._agent = agent
        self._deterministic = deterministic
        build = NetworkBuilder(
            agent.observation_space, head, _OPTIONS, (64, 64), None, seed
        )
        if isinstance(space, Discrete):
            self._network = build.network("fitted_q", int(space.n), seed)
        else:
            self._network = build.critic_of_actions("fitted_q", seed)
        self._target = copy_of(self._network, "target_fitted_q")
        self._target_update = TargetUpdate(
            self._target, self._network.weights, tau=0.01, every=1
        )
        self._optimizer = keras.optimizers.Adam(1e-3)
        self._optimizer.build(self._network.trainable_variables)
        self._generator = seeds.generator(seed)
        self._update = tf.function(self._updated)

    def fit(
        self, episodes: RecordedEpisodes, updates: int, batch_size: int
    ) -> None:
        """Updates the network by minibatches that are drawn uniformly."""
        for _ in range(updates):
            index = self._generator.integers(len(episodes), size=batch_size)
            batch = map_leaves(tf.convert_to_tensor, episodes.take(index))
            self._update(batch, *self._noise(batch_size))

    def values(self, observation: Tree[Tensor]) -> np.ndarray:
        """Returns the estimated values `[B]` of raw observations."""
        noise = self._noise(len(leaves(observation)[0]))
        return np.array(self._value(self._network, observation, *noise))

    def _noise(self, count: int) -> tuple[Any, ...]:
        """Returns noise for a stochastic policy, else nothing."""
        if self._deterministic:
            return ()
        return (self._agent.draw_noise(self._generator, (count,))[0],)

    def _value(
        self, network: keras.Model, observation: Tree[Tensor], *noise: Tensor
    ) -> Tensor:
        """Returns the values `[B]` of the policy's actions."""
        act = self._agent.sample_action if noise else self._agent.greedy_action
        return self._of_taken(network, observation, act(observation, *noise))

    def _of_taken(
        self, network: keras.Model, observation: Tree[Tensor], action: Tensor
    ) -> Tensor:
        """Returns the values `[B]` of actions."""
        encoded = self._agent.task.encode(observation)
        discrete = isinstance(self._agent.action_space, Discrete)
        return critics.values_of_taken([network], encoded, action, discrete)[0]

    def _updated(self, batch: dict[str, Any], *noise: Tensor) -> None:
        """Makes one gradient step on the TD errors of a minibatch."""
        following = self._value(self._target, batch["next_observation"], *noise)
        target = batch["reward"] + batch["discount"] * following
        with tf.GradientTape() as tape:
            taken = self._of_taken(
                self._network, batch["observation"], batch["action"]
            )
            loss = ops.mean(0.5 * ops.square(target - taken))
        variables = self._network.trainable_variables
        gradients = tape.gradient(loss, variables)
        apply_gradients(self._optimizer, gradients, variables)
        self._target_update.move()
