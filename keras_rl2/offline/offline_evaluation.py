"""Evaluation of a policy by recorded episodes, without an environment."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from gymnasium.spaces import Box
from gymnasium.spaces import Discrete
from keras import ops

from keras_rl2 import returns
from keras_rl2.basics import arguments
from keras_rl2.basics import seeds
from keras_rl2.basics.shapes import Tensor
from keras_rl2.losses.value import of_action
from keras_rl2.networks.builder import NetworkBuilder
from keras_rl2.networks.inputs import one_value_each
from keras_rl2.networks.inputs import run_network
from keras_rl2.networks.network_copies import copy_of
from keras_rl2.networks.network_options import NetworkOptions
from keras_rl2.offline.episodes import TransitionBlock
from keras_rl2.offline.offline import OfflineDataset
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.updates.target_networks import TargetUpdate
from keras_rl2.updates.updater import apply_gradients

_BATCH_SIZE = 256
# Rows of one call of a network.
_ROWS = 16384
# The options of the Q network.
_OPTIONS = NetworkOptions(
    activation="relu", normalization="none", initialization="fan_in"
)


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
        offline: `OfflineDataset`. Its `n_step` is not used.
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
        arguments.check_at_least(0, updates=updates)
        arguments.check_flag(deterministic=deterministic)
        arguments.check_seed(seed)
        self.offline = offline
        self.updates = updates
        self.deterministic = deterministic
        self.seed = seed

    def play(self, agent: Any) -> dict[str, float]:
        """Returns the estimates for the agent's current weights.

        Args:
            agent: `keras_rl2.Agent`. It is not changed.

        Returns:
            dict of floats; see the class.

        Raises:
            ValueError: If the dataset does not fit the agent.
        """
        known = self.offline
        # Neither the dataset's binding nor the agent's statistics change.
        if known.observation_space and known.action_space:
            agent.bind(known.observation_space, known.action_space)
        generator = seeds.generator(self.seed)
        block = TransitionBlock(known.recorded, agent, 1, generator)
        lengths, last = known.recorded.lengths, known.recorded.last
        first = last + 1 - lengths
        steps = block.take(np.arange(len(block)))
        after = _values(agent, block.take(last)["next_observation"])
        bootstrap = np.zeros(len(lengths)) if after is None else after
        to_go = _returns_to_go(steps, lengths, bootstrap)
        found = {"behavior_value": float(np.mean(to_go[first]))}
        values = _values(agent, steps["observation"], steps["action"])
        if values is not None:
            found["q_overestimation"] = float(np.mean(values - to_go))
        if self.updates:
            fitted = FittedQ(agent, self.deterministic, self.seed)
            fitted.fit(block, self.updates, _BATCH_SIZE)
            value = fitted.values(block.take(first)["observation"])
            found["fqe_value"] = float(np.mean(value))
        return found


def _values(
    agent: Any,
    observation: Tree[np.ndarray],
    action: np.ndarray | None = None,
) -> np.ndarray | None:
    """Returns the critics' mean Q-values of actions, `[N]`.

    Without actions, they are those of the policy. None without critics.
    """
    found = []
    for start in range(0, len(leaves(observation)[0]), _ROWS):
        rows = slice(start, start + _ROWS)
        batch = map_leaves(
            lambda array, rows=rows: tf.convert_to_tensor(array[rows]),
            observation,
        )
        values = agent.values_of_taken(
            batch,
            agent.greedy_action(batch)
            if action is None
            else tf.convert_to_tensor(action[rows]),
        )
        if not values:
            return None
        found.append(np.mean(np.array(values), axis=0))
    return np.concatenate(found)


def _returns_to_go(
    steps: dict[str, Any], lengths: np.ndarray, bootstrap: np.ndarray
) -> np.ndarray:
    """Returns the return from each step on, `[N]`."""
    # [E, T], where T is the length of the longest episode.
    held = np.arange(lengths.max()) < lengths[:, None]

    def padded(values: np.ndarray, fill: float) -> np.ndarray:
        """Stacks episodes along a new axis: `[N]` -> `[T, E]`."""
        rows = np.full(held.shape, fill)
        rows[held] = values
        return rows.T

    to_go = returns.discounted_returns(
        padded(steps["reward"], 0.0),
        # The bootstrap passes the padding of shorter episodes undiminished.
        padded(steps["discount"], 1.0),
        bootstrap,
    )
    return np.array(to_go).T[held]


class FittedQ:
    """Values of a fixed policy, learned from the steps of another one.

    A separate network learns the action values of the policy,

        Q(s, a) = r + discount Q'(s', a'),    a' ~ π(s')

    with a target network Q'. It does not share the errors of the agent's
    critic.
    """

    def __init__(
        self, agent: keras.Model, deterministic: bool, seed: int | None
    ) -> None:
        space, head = agent.action_space, agent.policy.head
        if not isinstance(space, Box | Discrete):
            raise ValueError(
                "Expected an agent of Box or Discrete actions for fitted Q "
                "evaluation; without it, pass `updates=0`. Received: "
                f"{space}"
            )
        self._agent = agent
        self._deterministic = deterministic
        build = NetworkBuilder(
            agent.observation_space, head, _OPTIONS, (64, 64), seed
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
        self, block: TransitionBlock, updates: int, batch_size: int
    ) -> None:
        """Updates the network by minibatches that are drawn uniformly."""
        for _ in range(updates):
            index = self._generator.integers(len(block), size=batch_size)
            batch = map_leaves(tf.convert_to_tensor, block.take(index))
            self._update(batch, *self._noise(batch_size))

    def values(self, observation: Tree[Tensor]) -> np.ndarray:
        """Returns the estimated values `[B]` of raw observations."""
        noise = self._noise(len(leaves(observation)[0]))
        return np.array(self._value(self._network, observation, *noise))

    def _noise(self, count: int) -> tuple[Any, ...]:
        """Returns noise for a stochastic policy, else nothing."""
        if self._deterministic:
            return ()
        return (self._agent.policy.noise.draw(self._generator, (count,))[0],)

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
        encoded = self._agent.policy.encode(observation)
        if isinstance(self._agent.action_space, Discrete):
            return of_action(run_network(network, encoded), action)
        return one_value_each(run_network(network, encoded, action=action))

    def _updated(self, batch: dict[str, Any], *noise: Tensor) -> None:
        """Makes one gradient step on the TD errors of a minibatch."""
        following = self._value(self._target, batch["next_observation"], *noise)
        target = batch["reward"] + batch["discount"] * following
        with tf.GradientTape() as tape:
            value = self._of_taken(
                self._network, batch["observation"], batch["action"]
            )
            loss = ops.mean(0.5 * ops.square(target - value))
        variables = self._network.trainable_variables
        gradients = tape.gradient(loss, variables)
        apply_gradients(self._optimizer, gradients, variables)
        self._target_update.move()
