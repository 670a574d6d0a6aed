"""Rollouts in the graph, for datasets that prepare their rounds in Python."""

import operator
from collections.abc import Generator
from typing import Any

import numpy as np
import tensorflow as tf

from keras_rl2.basics.shapes import Tensor
from keras_rl2.collecting.checks import check_mask
from keras_rl2.collecting.collector import Collector
from keras_rl2.collecting.collector import StepNoise
from keras_rl2.collecting.policy_actor import Actor
from keras_rl2.collecting.trajectory import RolloutStorage
from keras_rl2.envs.vector_env import Step
from keras_rl2.graph.graph_rollout import GraphRollout
from keras_rl2.graph.graph_rollout import Totals
from keras_rl2.graph.graph_rollout import roll_out
from keras_rl2.graph.graph_vector_env import GraphVectorEnv
from keras_rl2.policies.actors import ActorWithoutMemory
from keras_rl2.policies.actors import weights_of
from keras_rl2.policies.agent_protocols import ActingPolicy
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves

_STORED = operator.attrgetter(
    "observation", "action", "reward", "terminated", "truncated"
)


class GraphActor(ActorWithoutMemory):
    """The policy itself, which a rollout in the graph contains.

    Unlike an `ActorSnapshot` it is neither copied nor converted: nothing
    changes the weights within a rollout.
    """

    def __init__(self, agent: ActingPolicy) -> None:
        self.agent = agent

    def sync(self) -> None:
        """Raises a `ValueError` if a weight of the agent is not finite."""
        weights_of(list(self.agent.acting_variables))


class GraphCollector(Collector):
    """Collects a rollout in one call of TensorFlow.

    Rollouts of actors of other kinds, such as random ones, are collected step
    by step.

    Example:

    >>> import keras_rl2 as rl
    >>> env = rl.envs.GraphVectorEnv("CartPole-v1", num_envs=2)
    >>> agent = rl.PPO.for_env(env, hidden=(8,), seed=0)
    >>> env = rl.envs.as_vector_env(env)
    >>> collector = GraphCollector(env, 16, agent.policy.head)
    >>> collector.reset(seed=0)
    >>> actor = GraphActor(agent.policy)
    >>> noise, _ = agent.policy.noise.draw(np.random.default_rng(0), (16, 2))
    >>> collector.collect(actor, noise).reward.shape
    (16, 2)
    """

    # The agent that the rollout was traced for, and the traced function.
    _traced: tuple[Any, Any] | None = None

    def _run(
        self, actor: Actor, noise: StepNoise, storage: RolloutStorage
    ) -> Generator[Any, Step, None]:
        """Acts, steps and stores, T times."""
        if not isinstance(actor, GraphActor):
            yield from super()._run(actor, noise, storage)
            return
        env: GraphVectorEnv = self._adapter.env
        policy = actor.agent
        if self._traced is None or self._traced[0] is not policy:
            self._traced = policy, _rollout_function(policy, env)
        rollout: Any = self._traced[1](tf.constant(noise))
        steps = len(noise)
        for array, tensor in zip(
            leaves(_STORED(storage)), leaves(_STORED(rollout)), strict=True
        ):
            array[:steps] = tensor.numpy()
        storage.keep_observation(steps, env.observations())
        following = map_leaves(
            operator.methodcaller("numpy"), rollout.next_observation
        )
        ended = storage.terminated | storage.truncated
        for step in np.flatnonzero(ended.any(axis=1)).tolist():
            at_step = operator.itemgetter(step)
            storage.keep_final(step, map_leaves(at_step, following))
        storage.steps = steps
        self._adapter.steps += steps
        nowhere = np.zeros(env.num_envs, np.bool_)
        storage.pending = [nowhere] * steps
        if self._is_masked:
            for t in range(steps):
                observation = storage.acted_on(t)
                check_mask(self.head, observation, nowhere, env.name, t)


def _rollout_function(agent: ActingPolicy, env: GraphVectorEnv) -> Any:
    """Returns a compiled function from noise `[T, B, ...]` to a rollout."""

    def run(noise: Tensor) -> GraphRollout:
        zeros = tf.zeros(env.num_envs)
        episodes, _, rollout = roll_out(
            agent, env, env.read(), Totals(zeros, zeros), noise
        )
        env.write(episodes)
        return rollout

    return tf.function(run, autograph=False, jit_compile=True)
