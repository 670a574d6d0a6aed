"""The dataset of replayed rounds, whatever learns from it."""

import copy
import json

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

import keras_rl2 as rl
from keras_rl2.data import memory
from support import vector_envs
from support.agents import OFF_POLICY
from support.agents import AnySpaceEnv
from support.agents import assert_equal_weights
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_replay
from support.errors import raises
from support.probe_envs import CountingEnv
from support.replay_reference import Step
from support.replay_reference import expected_items

DQN, SAC = OFF_POLICY["DQN"], OFF_POLICY["SAC"]
GAMMA = 0.9


def greedy_agent(env, seed=0):
    """Makes an agent whose actions are without chance."""
    return make_eager_agent(DQN, env, epsilon=0.0, gamma=GAMMA, seed=seed)


def stored(replay, key):
    """Returns what has been stored so far `[steps, envs, ...]`."""
    rows = replay.buffer.steps // replay.env.num_envs
    return replay.buffer.get_state()[key][:rows]


# Numbers.


@pytest.mark.parametrize(
    ("case", "batch_size", "updates"), [(DQN, 64, 16), (SAC, 256, 66)]
)
def test_numbers_are_the_algorithms_unless_given(case, batch_size, updates):
    env = make_env(case.pair, num_envs=3)
    replay = rl.ReplayDataset(env, capacity=3000)
    # 64, and the next multiple.
    assert replay.steps_per_round == 66
    assert replay.rounds_per_epoch == 15
    replay.bind(make_eager_agent(case, env))
    assert replay.batch_size == batch_size
    assert replay.updates_per_round == updates
    assert replay.steps_per_epoch == 15 * updates
    assert replay.buffer.capacity == 3000
    small = rl.ReplayDataset(env, capacity=30, warm_up=0)
    small.bind(make_eager_agent(case, env))
    assert small.batch_size == 30


@pytest.mark.parametrize("prioritized", [False, True])
def test_elements_are_as_documented(prioritized):
    env = make_env("act_box_matrix")
    agent = make_eager_agent(SAC, env)
    replay = make_replay(env, prioritized=prioritized)
    batches = replay.as_dataset(agent)
    replay.refresh()
    batch = next(iter(batches))
    assert {k: (v.shape.as_list(), v.dtype.name) for k, v in batch.items()} == {
        "observation": ([8, 3], "float32"),
        "action": ([8, 4], "float32"),
        "reward": ([8], "float32"),
        "discount": ([8], "float32"),
        "next_observation": ([8, 3], "float32"),
        "weight": ([8], "float32"),
        **(
            {"index": ([8], "int64"), "position": ([], "int32")}
            if prioritized
            else {}
        ),
    }
    assert batches.element_spec.keys() == batch.keys()
    for key, value in replay.sample(5).items():
        if key != "index":
            assert value.shape == (5, *batch[key].shape[1:])
            assert value.dtype == batch[key].dtype


def test_bytes_stay_bytes():
    space = spaces.Box(0, 255, (6,), np.uint8)
    env = AnySpaceEnv(space, spaces.Discrete(2))
    agent = make_eager_agent(DQN, env)
    replay = make_replay(env)
    batches = iter(replay.as_dataset(agent))
    replay.refresh()
    for key in ("observation", "next_observation"):
        assert next(batches)[key].dtype == tf.uint8
    state = replay.buffer.get_state()
    assert state["observation"].dtype == np.uint8
    assert state["final_observation"].dtype == np.uint8


@pytest.mark.parametrize(
    ("steps", "updates", "num_envs"),
    [(1, 1, 1), (4, 1, 1), (1, 3, 1), (2, 2, 2), (16, 16, 2)],
)
def test_steps_and_updates_alternate(steps, updates, num_envs, monkeypatch):
    env = make_env("act_discrete", num_envs)
    agent = greedy_agent(env)
    replay = make_replay(env, steps_per_round=steps, updates_per_round=updates)
    refresh, before = replay.refresh, []

    def watched():
        before.append((agent.env_steps, int(agent.updates)))
        refresh()

    monkeypatch.setattr(replay, "refresh", watched)
    agent.fit(replay, epochs=4, verbose=0)
    assert before == [(i * steps, i * updates) for i in range(4)]
    assert agent.env_steps == 4 * steps
    assert agent.updates.numpy() == 4 * updates
    assert replay.buffer.steps == 4 * steps


def test_a_batch_is_drawn_from_the_step_just_taken_too():
    env = rl.envs.as_vector_env(CountingEnv(lengths=(100,)))
    replay = make_replay(env, steps_per_round=1, updates_per_round=1)
    batches = iter(replay.as_dataset(greedy_agent(env)))
    for newest in range(3):
        replay.refresh()
        step = next(batches)["observation"].numpy()[:, 2]
        assert set(step) <= set(range(newest + 1))
    assert set(replay.sample(64)["observation"][:, 2]) == {0, 1, 2}


# The warm-up.


def test_the_warm_up_is_random_and_counts():
    env = make_env("act_discrete")
    agent = greedy_agent(env)
    # One action is the best everywhere.
    agent.q_network.layers[-1].bias.assign([0.0, 100.0, 0.0])
    replay = make_replay(env, warm_up=90)
    # Whole rounds of 16.
    assert replay.steps_before_first_round == 96
    replay.bind(agent)
    replay.refresh()
    assert replay.steps_before_first_round == 0
    assert agent.env_steps == replay.buffer.steps == 96 + 16
    action = stored(replay, "action")
    counts = np.bincount(action[:48].reshape(-1), minlength=3)
    assert counts.sum() == 96
    assert counts.min() > 16
    assert (action[48:] == 1).all()
    replay.refresh()
    assert agent.env_steps == 96 + 32


def test_random_actions_fill_the_unit_box_and_reach_the_bounds():
    env = make_env("act_box_matrix")
    taken, step = [], env.step
    env.step = lambda action: taken.append(action.copy()) or step(action)
    replay = make_replay(env)
    replay.bind(make_eager_agent(SAC, env))
    replay.fill(192)
    action = stored(replay, "action")
    assert action.shape == (96, 2, 4)
    assert -1 <= action.min() < -0.95
    assert 0.95 < action.max() <= 1
    np.testing.assert_allclose(action.mean(axis=(0, 1)), 0, atol=0.15)
    # Bounds of -0.1 and 0.3.
    expected = 0.1 + 0.2 * action.reshape(96, 2, 2, 2)
    np.testing.assert_allclose(taken, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("total_steps", "expected"),
    # The warm-up is 32 steps of it; there is one round at least.
    [(10, [48]), (48, [48]), (49, [48, 64]), (64, [48, 64])],
)
def test_total_steps_include_the_warm_up(total_steps, expected):
    env = make_env("act_discrete")
    agent = greedy_agent(env)
    replay = make_replay(env, warm_up=20)
    history = agent.fit(replay, total_steps=total_steps, verbose=0).history
    assert history["env_steps"] == expected
    # There is none in a second call.
    history = agent.fit(replay, total_steps=32, verbose=0).history
    assert history["env_steps"] == [expected[-1] + 16, expected[-1] + 32]


def test_a_trained_agent_warms_up_with_its_own_policy():
    env = make_env("act_discrete")
    agent = greedy_agent(env)
    agent.fit(make_replay(env), verbose=0)
    replay = make_replay(env, warm_up=64)
    replay.bind(agent)
    replay.fill(64)
    observation = stored(replay, "observation").reshape(-1, 3)
    own = agent.act(observation, deterministic=True)
    np.testing.assert_array_equal(stored(replay, "action").reshape(-1), own)


def test_filling_by_hand_counts_as_warm_up():
    env = make_env("act_discrete")
    agent = greedy_agent(env)
    replay = make_replay(env, warm_up=48)
    replay.bind(agent)
    replay.fill(17)
    assert replay.buffer.steps == 32
    assert replay.steps_before_first_round == 16
    assert agent.updates.numpy() == 0


# What is drawn is what happened.


class RecordedEnv(CountingEnv):
    """Writes down what truly happens in it."""

    def __init__(self, index, truth):
        super().__init__(index)
        self._truth = truth

    def reset(self, *, seed=None, options=None):
        self._before, info = super().reset(seed=seed)
        return self._before.copy(), info

    def step(self, action):
        result = super().step(action)
        observation, reward, terminated, truncated, _ = result
        self._truth.append(
            Step(
                1000 * self._index + len(self._truth),
                self._before,
                action,
                reward,
                terminated,
                terminated or truncated,
                observation.copy(),
            )
        )
        self._before = observation.copy()
        return result


def recorded(mode, num_envs=3):
    """Makes environments, and the list of what happened in each of them."""
    truth = [[] for _ in range(num_envs)]
    env = vector_envs.sync(lambda i: RecordedEnv(i, truth[i]), mode, num_envs)
    return env, truth


@pytest.mark.parametrize(("n_step", "prioritized"), [(1, False), (3, True)])
@pytest.mark.parametrize("mode", vector_envs.MODES, ids=lambda mode: mode.name)
def test_transitions_are_those_of_the_environments(mode, n_step, prioritized):
    env, truth = recorded(mode)
    agent = make_eager_agent(DQN, env, gamma=GAMMA)
    replay = make_replay(
        env, warm_up=24, n_step=n_step, prioritized=prioritized
    )
    batches = iter(replay.as_dataset(agent))
    drawn = []
    for _ in range(3):
        replay.refresh()
        drawn += [next(batches) for _ in range(replay.updates_per_round)]
    assert agent.env_steps == sum(map(len, truth))
    items = expected_items(truth, n_step, GAMMA, oldest=0)
    by_observation = {
        tuple(item["observation"]): item for item in items.values()
    }
    assert len(by_observation) == len(items) == len(replay.buffer)
    everything = replay.sample(4096)
    seen = {tuple(row) for row in everything["observation"]}
    assert seen == set(by_observation)
    for batch in (everything, *drawn):
        rows = [tuple(row) for row in np.array(batch["observation"])]
        for key in ("action", "reward", "discount", "next_observation"):
            expected = [by_observation[row][key] for row in rows]
            np.testing.assert_allclose(batch[key], expected, 1e-5, 1e-5)


def test_the_oldest_are_overwritten():
    env, truth = recorded(vector_envs.MODES[0], num_envs=2)
    agent = greedy_agent(env)
    replay = make_replay(env, capacity=20)
    agent.fit(replay, epochs=4, verbose=0)
    assert len(replay.buffer) <= 20
    drawn = {tuple(row) for row in replay.sample(512)["observation"]}
    assert len(drawn) == len(replay.buffer)
    newest = [step.observation for steps in truth for step in steps[-10:]]
    assert drawn <= {tuple(row) for row in newest}


# Priorities.


@pytest.fixture
def updates_of(monkeypatch):
    """Notes which transitions each update of an agent saw, and their errors."""

    def watch(agent):
        seen, update = [], agent.update

        def watched(batch):
            terms, td_error = update(batch)
            seen.append((batch["index"].numpy(), td_error.numpy()))
            return terms, td_error

        monkeypatch.setattr(agent, "update", watched)
        return seen

    return watch


def priorities(replay):
    """Returns p of each transition, by its number."""
    state = replay.get_state()["buffer"]
    held = state["priority"].reshape(-1)[: replay.buffer.steps]
    return held ** (1 / replay.alpha)


@pytest.mark.parametrize("name", OFF_POLICY)
@pytest.mark.parametrize("n_step", [1, 3])
def test_errors_of_a_round_are_its_priorities(name, n_step, updates_of):
    case = OFF_POLICY[name]
    env = make_env(case.pair)
    agent = make_eager_agent(case, env)
    replay = make_replay(env, prioritized=True, alpha=0.5, n_step=n_step)
    seen = updates_of(agent)
    expected = {}
    for _ in range(3):
        held, seen[:] = replay.buffer.steps if replay.buffer else 0, []
        agent.fit(replay, verbose=0)
        newest = max([1.0, *expected.values()])
        # New ones have the largest there ever was; others keep theirs.
        for index in range(held, replay.buffer.steps):
            expected[index] = newest
        # What comes twice has its last error.
        for indices, errors in seen:
            for index, error in zip(indices, errors, strict=True):
                expected[int(index)] = abs(float(error)) + 1e-6
        actual = priorities(replay)
        drawable = actual > 0
        wanted = np.array([expected[i] for i in range(len(actual))])
        np.testing.assert_allclose(
            actual[drawable], wanted[drawable], rtol=1e-5
        )
        assert len(seen) == 2
        assert drawable.sum() == len(replay.buffer)
