"""Everything is traced once, however many samples a round has."""

import gc
import weakref

import gymnasium
import numpy as np
import pytest
import tensorflow as tf
from gymnasium.vector import AutoresetMode

from keras_rl2.envs import as_vector_env
from support.agents import KINDS
from support.agents import make_agent
from support.agents import make_replay
from support.agents import make_rollouts
from support.probe_envs import CountingEnv
from support.tracing import counted

ROUNDS = 12


@pytest.fixture
def graphs(monkeypatch):
    """Counts the graphs made since that somebody holds on to."""
    made, make = weakref.WeakSet(), tf.Graph.__init__

    def noted(graph, *arguments, **kwargs):
        make(graph, *arguments, **kwargs)
        made.add(graph)

    def count():
        gc.collect()
        return len(made)

    monkeypatch.setattr(tf.Graph, "__init__", noted)
    return count


@pytest.fixture
def name():
    """The agent of tests that name no other."""
    return "PPO"


@pytest.fixture
def env(name):
    """Episodes of other lengths: each round has other resets and ends."""

    def make(index):
        env = CountingEnv(index, lengths=(3, 1, 5 + index))
        # The action does not matter to it.
        env.action_space = KINDS[name].action_space
        return env

    return as_vector_env(
        gymnasium.vector.SyncVectorEnv(
            [lambda i=i: make(i) for i in range(3)],
            autoreset_mode=AutoresetMode.NEXT_STEP,
        )
    )


def test_compile_makes_a_changed_attribute_count(env):
    agent = make_agent(KINDS["PPO"], env)
    rollouts = make_rollouts(env, batch_size=10)
    agent.fit(rollouts, epochs=1, verbose=0)
    trajectory = rollouts.collect()
    before, _ = agent.rollout_samples.prepare(trajectory)
    agent.gamma = 0.0
    agent.compile()
    after, _ = agent.rollout_samples.prepare(trajectory)
    # Without a future, the return of a step is its reward.
    reward = trajectory.reward[trajectory.valid]
    valid = trajectory.valid.reshape(-1)
    np.testing.assert_allclose(after["returns"][valid], reward, atol=1e-5)
    assert not np.allclose(before["returns"][valid], reward)


@pytest.mark.parametrize(
    "way",
    [
        {},
        pytest.param({"jit_compile": True}, marks=pytest.mark.slow),
        pytest.param({"steps_per_execution": 1}, marks=pytest.mark.slow),
    ],
    ids=["whole rounds", "compiled", "one by one"],
)
def test_one_trace(way, env, monkeypatch):
    agent = make_agent(KINDS["PPO"], env, compile_arguments=way)
    updates = counted(agent, "train_step", monkeypatch)
    preparations = counted(agent, "targets", monkeypatch)
    policies = counted(agent, "sample_action", monkeypatch)
    rollouts = make_rollouts(env, batch_size=10)
    sizes = set()
    for _ in range(2):
        for _ in range(ROUNDS // 4):
            agent.fit(rollouts, epochs=2, verbose=0)
            sizes.add(len(rollouts.valid_rows))
    assert agent.optimizer.iterations.numpy() == ROUNDS * 3
    assert len(sizes) > 1
    assert (len(updates), len(preparations), len(policies)) == (1, 1, 1)


@pytest.mark.parametrize(
    ("name", "jit_compile"),
    [
        ("DQN", False),
        pytest.param("TD3", False, marks=pytest.mark.slow),
        pytest.param("SAC", True, marks=pytest.mark.slow),
    ],
)
def test_one_trace_of_off_policy_agents(name, jit_compile, env, monkeypatch):
    case = KINDS[name]
    agent = make_agent(
        case, env, compile_arguments={"jit_compile": jit_compile}
    )
    updates = counted(agent, "train_step", monkeypatch)
    policies = counted(agent, "sample_action", monkeypatch)
    # The buffer fills up, and its oldest rows go.
    replay = make_replay(env, capacity=90, n_step=2, prioritized=True)
    lengths = set()
    for _ in range(4):
        agent.fit(replay, epochs=2, verbose=0)
        lengths.add(len(replay.buffer))
    assert len(lengths) > 1
    assert agent.optimizer.iterations.numpy() == agent.updates.numpy() == 16
    assert (len(updates), len(policies)) == (1, 1)


def test_act_is_traced_once_for_all_batches(env, monkeypatch):
    agent = make_agent(KINDS["PPO"], env)
    policies = counted(agent, "sample_action", monkeypatch)
    for count in (1, 2, 5, 17):
        agent.act(env.reset()[:1].repeat(count, axis=0))
    agent.act(env.reset()[0])
    assert len(policies) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["PPO", "DQN"])
def test_no_graph_outlives_its_agent(name, env, graphs):
    """TensorFlow keeps some of those of a plain Keras model."""

    def train():
        agent = make_agent(KINDS[name], env)
        make = make_rollouts if agent.on_policy else make_replay
        agent.fit(make(env), epochs=1, verbose=0)

    train()
    before = graphs()
    train()
    assert graphs() == before
