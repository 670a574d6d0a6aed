"""Rollouts that the graph collects for datasets that Python prepares."""

import functools

import numpy as np

import keras_rl2 as rl
from keras_rl2.collecting.collector import Collector
from keras_rl2.graph.graph_collector import GraphActor
from keras_rl2.graph.graph_collector import GraphCollector
from keras_rl2.spaces.trees import leaves


def make_replay(num_envs: int = 3) -> rl.ReplayDataset:
    """Returns a replay over environments in the graph."""
    env = rl.envs.GraphVectorEnv("CartPole-v1", num_envs=num_envs)
    return rl.ReplayDataset(
        env,
        steps_per_round=24,
        rounds_per_epoch=1,
        batch_size=16,
        capacity=300,
        warm_up=48,
        seed=0,
    )


def test_a_rollout_equals_one_that_is_collected_step_by_step():
    found = []
    kinds = {
        Collector: functools.partial(rl.data.ActorSnapshot, num_envs=3),
        GraphCollector: GraphActor,
    }
    for kind, make_actor in kinds.items():
        env = rl.envs.as_vector_env(
            rl.envs.GraphVectorEnv("CartPole-v1", num_envs=3)
        )
        agent = rl.PPO.for_env(env, hidden=(8,), seed=0)
        collector = kind(env, 64, agent.policy.head)
        collector.reset(seed=5)
        actor = make_actor(agent.policy)
        generator = np.random.default_rng(0)
        for _ in range(2):
            noise, _ = agent.noise.draw(generator, (64, 3))
            found.append(collector.collect(actor, noise))
        assert env.steps == sum(len(each.reward) for each in found[-2:])
        found.append(list(collector.episodes.returns))
    for one, other in zip(found[:2], found[3:5], strict=True):
        assert one.ended.any()
        for key, value in one.arrays().items():
            for mine, its in zip(
                leaves(value), leaves(other.arrays()[key]), strict=True
            ):
                np.testing.assert_allclose(mine, its, atol=1e-6)
    assert found[2] == found[5]
