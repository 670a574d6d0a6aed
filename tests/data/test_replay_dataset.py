"""The dataset of replayed rounds, whatever learns from it."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl
from keras_rl2.saving import plain_data
from support import vector_envs
from support.agents import OFF_POLICY
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
    return make_eager_agent(
        DQN,
        env,
        epsilon=0.0,
        gamma=GAMMA,
        seed=seed,
        compile_arguments={"optimizer": keras.optimizers.SGD(0.01)},
    )


def stored(replay, key):
    """Returns the stored steps so far `[steps, envs, ...]`."""
    rows = replay.buffer.steps // replay.env.num_envs
    return replay.buffer.get_state()[key][:rows]


# Numbers.


@pytest.mark.parametrize(
    ("case", "batch_size", "updates"), [(DQN, 64, 33), (SAC, 256, 66)]
)
def test_the_algorithm_chooses_batch_size_and_updates(
    case, batch_size, updates
):
    env = make_env(case.pair, num_envs=3)
    agent = make_eager_agent(case, env)
    replay = rl.ReplayDataset(env, capacity=3000)
    # 64, and the next multiple.
    assert replay.steps_per_round == 66
    assert replay.rounds_per_epoch == 15
    replay.bind(agent)
    assert replay.batch_size == batch_size
    assert replay.updates_per_round == updates
    assert replay.steps_per_epoch == 15 * updates
    assert replay.buffer.capacity == 3000
    small = rl.ReplayDataset(env, capacity=30, warm_up=0)
    small.bind(agent)
    assert small.batch_size == 30


def test_settings_of_replay():
    replay = rl.ReplayDataset(
        "CartPole-v1", capacity=128, batch_size=8, updates_per_round=4, n_step=3
    )
    settings = replay.settings()
    expected = {
        "rounds_per_epoch": 16,
        "steps_per_round": 64,
        "updates_per_round": 4,
        "capacity": 128,
        "batch_size": 8,
        "n_step": 3,
        "warm_up": 1000,
        "prioritized": False,
        "alpha": 0.6,
        "num_envs": 1,
    }
    assert expected.items() <= settings.items()
    # Nor is what was left open.
    assert "seed" not in settings


def test_elements_are_as_documented():
    env = make_env("act_box_matrix")
    agent = make_eager_agent(SAC, env)
    replay = make_replay(env, prioritized=True)
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
        "index": ([8], "int64"),
        "position": ([], "int32"),
    }
    assert batches.element_spec.keys() == batch.keys()
    for key, value in replay.sample(5).items():
        if key != "index":
            assert value.shape == (5, *batch[key].shape[1:])
            assert value.dtype == batch[key].dtype


def test_steps_and_updates_alternate(monkeypatch):
    steps, updates = 4, 3
    env = make_env("act_discrete", num_envs=2)
    agent = greedy_agent(env)
    replay = make_replay(env, steps_per_round=steps, updates_per_round=updates)
    collect, before = replay.collect, []

    def watched():
        before.append((agent.env_steps, int(agent.updates)))
        return collect()

    monkeypatch.setattr(replay, "collect", watched)
    agent.fit(replay, epochs=3, verbose=0)
    assert before == [(i * steps, i * updates) for i in range(3)]
    assert agent.env_steps == 3 * steps
    assert agent.updates.numpy() == 3 * updates
    assert replay.buffer.steps == 3 * steps


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


def test_total_steps_include_the_warm_up():
    env = make_env("act_discrete")
    agent = greedy_agent(env)
    # The warm-up is 32 steps of it.
    replay = make_replay(env, warm_up=20)
    for total_steps, expected in (
        (48, [48]),
        # There is none in a second call.
        (32, [64, 80]),
        (33, [96, 112, 128]),
    ):
        history = agent.fit(replay, total_steps=total_steps, verbose=0).history
        assert history["env_steps"] == expected


def test_a_trained_agent_warms_up_with_its_own_policy():
    env = make_env("act_discrete")
    agent = greedy_agent(env)
    agent.fit(make_replay(env, updates_per_round=1), verbose=0)
    replay = make_replay(env, warm_up=64)
    replay.bind(agent)
    replay.fill(64)
    observation = stored(replay, "observation").reshape(-1, 3)
    own = agent.act(observation, deterministic=True)
    np.testing.assert_array_equal(stored(replay, "action").reshape(-1), own)


# What is drawn is what happened.


class RecordedEnv(CountingEnv):
    """Records its own steps."""

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
    """Makes environments, and the list of the steps of each."""
    truth = [[] for _ in range(num_envs)]
    env = vector_envs.sync(lambda i: RecordedEnv(i, truth[i]), mode, num_envs)
    return env, truth


@pytest.mark.parametrize(
    ("mode", "n_step", "prioritized"),
    [
        (vector_envs.MODES[0], 1, False),
        (vector_envs.MODES[1], 3, True),
        pytest.param(*(vector_envs.MODES[2], 3, False), marks=pytest.mark.slow),
    ],
    ids=lambda value: str(value),
)
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


# Handing over.


def test_asking_before_a_refresh_is_an_error():
    env = make_env("act_discrete")
    replay = make_replay(env)
    iterator = iter(replay.as_dataset(greedy_agent(env)))
    replay.refresh()
    for _ in range(replay.updates_per_round):
        next(iterator)
    with pytest.raises(tf.errors.OpError, match="before the round was"):
        next(iterator)


def test_another_agent_continues_with_the_stored_steps():
    env = make_env("act_discrete")
    replay = make_replay(env, warm_up=16)
    one, two = (greedy_agent(env, seed) for seed in (0, 1))
    one.fit(replay, epochs=2, verbose=0)
    two.fit(replay, epochs=1, verbose=0)
    assert (one.env_steps, two.env_steps) == (48, 16)
    assert len(replay.buffer) == 64
    # And back again.
    one.fit(replay, epochs=1, verbose=0)
    assert one.env_steps == 64
    other = make_eager_agent(DQN, env, gamma=0.5)
    with raises("stored returns were summed with, gamma=0.9", "gamma=0.5"):
        other.fit(replay, verbose=0)
    assert replay.agent is one


def test_a_changed_gamma_needs_another_dataset():
    env = make_env("act_discrete")
    replay = make_replay(env, warm_up=16)
    agent = greedy_agent(env)
    agent.fit(replay, epochs=1, verbose=0)
    agent.gamma = 0.5
    with raises("stored returns were summed with, gamma=0.9", "gamma=0.5"):
        agent.fit(replay, epochs=1, verbose=0)


# State.


def test_state_is_plain_data_and_resumes_exactly():
    def make():
        env = make_env("act_discrete")
        replay = make_replay(env, prioritized=True, warm_up=16)
        return greedy_agent(env), replay

    agent, replay = make()
    agent.fit(replay, epochs=2, verbose=0)
    state = replay.get_state()
    # Two random generators are never equal: their states are.
    kept = plain_data.to_json(plain_data.copied(state))

    rounds = []
    for _ in range(2):
        one, other = make()
        one.set_weights(agent.get_weights())
        other.bind(one)
        # As if something else had been stored and drawn before.
        other.refresh()
        other.set_state(state)
        other.source.collector.reset(seed=7)
        assert other.steps_before_first_round == 0
        other.refresh()
        after = plain_data.to_json(other.get_state())
        rounds.append((other.hand_over()["batches"], after))
    np.testing.assert_equal(*rounds)
    # Of each of two environments.
    assert rounds[0][1][0]["buffer"]["steps"] == (48 + 16) // 2
    # Copies, which what comes later does not reach.
    np.testing.assert_equal(plain_data.to_json(state), kept)
    agent.fit(replay, epochs=1, verbose=0)
    np.testing.assert_equal(plain_data.to_json(state), kept)


def test_states_that_do_not_fit_are_refused():
    env = make_env("act_discrete")
    one, other = make_replay(env), make_replay(env, capacity=64)
    one.bind(greedy_agent(env))
    with raises("a ReplayDataset bound to an agent", "no agent"):
        other.set_state(one.get_state())
    other.bind(greedy_agent(env))
    with raises("capacity=64", "capacity=256"):
        other.set_state(one.get_state())
