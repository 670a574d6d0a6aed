"""Workers collect the trajectories of one process, bit for bit."""

import functools

import gymnasium
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.spaces.trees import map_leaves
from support.memory_envs import RememberTheCue
from support.probe_envs import CountingEnv
from support.probe_envs import ImageEnv
from support.structured_envs import HYBRID_ACTIONS
from support.structured_envs import OBSERVATIONS
from support.structured_envs import MaskedEnv
from support.structured_envs import StructuredEnv
from support.structured_envs import assert_trees_equal
from support.worker_envs import Reused
from support.worker_envs import next_step_vector
from support.workers_here import WorkersHere

ID = "OfWorkers-v0"
NUM_ENVS = 4
ROLLOUTS = {"horizon": 16, "passes": 1, "batch_size": 32}
REPLAY = {
    "capacity": 400,
    "batch_size": 8,
    "warm_up": 64,
    "steps_per_round": 16,
    "updates_per_round": 1,
    "rounds_per_epoch": 2,
}
ENVS = {
    "counting": CountingEnv,
    "hybrid": functools.partial(
        StructuredEnv, OBSERVATIONS["nested"], HYBRID_ACTIONS["dict"]
    ),
    "masked": MaskedEnv,
    "image": ImageEnv,
    "cue": functools.partial(RememberTheCue, steps=5),
}
_MEMORY = {"memory": lambda: keras.layers.LSTMCell(4)}
CASES = {
    "PPO": ("counting", rl.PPO, {}, ROLLOUTS),
    "A2C": ("counting", rl.A2C, {}, {**ROLLOUTS, "batch_size": None}),
    "REINFORCE": (
        "counting",
        rl.REINFORCE,
        {},
        {"horizon": 9, "passes": 1, "batch_size": None},
    ),
    "scaled rewards": (
        "counting",
        rl.PPO,
        {"normalize_observations": True},
        {**ROLLOUTS, "scale_rewards": True},
    ),
    "memory": (
        "cue",
        rl.PPO,
        _MEMORY,
        {**ROLLOUTS, "batch_size": None, "sequence_length": 8},
    ),
    "hybrid": ("hybrid", rl.PPO, {}, ROLLOUTS),
    "image": ("image", rl.PPO, {}, ROLLOUTS),
    "masked DQN": ("masked", rl.DQN, {}, {**REPLAY, "prioritized": True}),
    "DQN with memory": (
        "cue",
        rl.DQN,
        _MEMORY,
        {**REPLAY, "sequence_length": 4, "burn_in": 2, "rounds_per_epoch": 1},
    ),
    "SAC": ("Pendulum-v1", rl.SAC, {}, REPLAY),
    "SAC with memory": (
        "Pendulum-v1",
        rl.SAC,
        _MEMORY,
        {**REPLAY, "sequence_length": 4, "burn_in": 2, "rounds_per_epoch": 1},
    ),
}


@pytest.fixture
def registered():
    """Registers environments under an id; `next_step` as one of NEXT_STEP."""

    def register(name, next_step=False):
        if name not in ENVS:
            return name
        vector = None
        if next_step:
            vector = functools.partial(next_step_vector, ENVS[name])
        gymnasium.register(ID, ENVS[name], vector_entry_point=vector)
        return ID

    yield register
    gymnasium.registry.pop(ID, None)


def made(case, env_id, **settings):
    _, kind, given, data = CASES[case]
    given = {k: v() if callable(v) else v for k, v in given.items()}
    dataset = rl.RolloutDataset if kind.on_policy else rl.ReplayDataset
    if not kind.on_policy:
        # One process has collected nothing ahead of the updates.
        settings["rounds_ahead"] = 0
    data = dataset(env_id, num_envs=NUM_ENVS, seed=0, **{**data, **settings})
    agent = kind.for_env(data.env, hidden=(8,), seed=0, **given)
    agent.compile(keras.optimizers.SGD(0.01), run_eagerly=True)
    return agent, data


def trained(case, env_id, **settings):
    """Trains, evaluates, and trains on."""
    agent, data = made(case, env_id, **settings)
    seen = []
    agent.observers.add(
        lambda trajectory: seen.append(map_leaves(np.copy, trajectory.arrays()))
    )
    fits = [agent.fit(data, epochs=2, verbose=0).history]
    results = agent.evaluate(env_id, episodes=3, seed=0)
    fits.append(agent.fit(data, epochs=1, verbose=0).history)
    data.close()
    return {
        "seen": dict(enumerate(seen)),
        "weights": dict(enumerate(agent.get_weights())),
        "evaluated": {k: np.array(v) for k, v in results.items()},
        "history": {
            f"{i} {key}": np.array(values)
            for i, history in enumerate(fits)
            for key, values in history.items()
            if "per_second" not in key
        },
    }


def slow(*cases):
    return [pytest.param(case, marks=pytest.mark.slow) for case in cases]


@pytest.mark.parametrize("case", ["A2C", *slow("scaled rewards", "SAC")])
def test_worker_processes_collect_the_trajectories_of_one_process(
    case, registered
):
    env_id = registered(CASES[case][0])
    one, two = (
        trained(case, env_id, workers=workers)
        for workers in (None, rl.LocalWorkers(2))
    )
    if case == "A2C":
        # Episodes have ended, or there would be little to be mistaken about.
        assert any(each["final_index"].size for each in one["seen"].values())
    assert_trees_equal(two, one)


@pytest.mark.parametrize(
    "case",
    [
        "masked DQN",
        *slow(
            "REINFORCE",
            "memory",
            "hybrid",
            "image",
            "DQN with memory",
            "SAC with memory",
        ),
    ],
)
def test_shares_are_put_together(case, registered):
    env_id = registered(CASES[case][0])
    one, two = (
        trained(case, env_id, workers=workers)
        for workers in (None, WorkersHere(2))
    )
    assert_trees_equal(two, one)


@pytest.mark.parametrize("case", ["PPO", *slow("memory")])
def test_environments_that_reset_in_the_next_step(case, registered):
    env_id = registered(CASES[case][0], next_step=True)
    one, two = (
        trained(case, env_id, workers=workers)
        for workers in (None, WorkersHere(2))
    )
    assert not all(each["valid"].all() for each in one["seen"].values())
    assert_trees_equal(two, one)


@pytest.mark.slow
def test_a_second_agent_remembers_nothing_of_the_first(registered):
    env_id = registered("cue")

    def taken(workers):
        agent, data = made("memory", env_id, workers=workers)
        data.bind(agent)
        data.collect()
        # Of the same networks, and its episodes go on where those were.
        other = rl.PPO.for_env(
            data.env, hidden=(8,), memory=keras.layers.LSTMCell(4), seed=0
        )
        data.bind(other)
        return data.collect().arrays()

    assert_trees_equal(taken(WorkersHere(2)), taken(None))


@pytest.mark.parametrize("next_step", [False, True])
def test_environments_of_workers_are_described(next_step, registered):
    env_id = registered("counting", next_step)
    one, two = (
        rl.RolloutDataset(env_id, num_envs=NUM_ENVS, workers=workers)
        for workers in (None, WorkersHere(2))
    )
    assert two.env.masks_reset_rows == one.env.masks_reset_rows == next_step
    assert two.env.name == one.env.name


def test_whole_episodes_take_up_to_the_time_limit():
    make = functools.partial(gymnasium.make, "CartPole-v1", max_episode_steps=9)
    for workers in (None, WorkersHere(2)):
        data = rl.RolloutDataset(make, num_envs=2, workers=workers)
        data.settle(rl.REINFORCE)
        assert data.horizon == 9


def test_functions_and_wrappers_are_sent(registered):
    env_id = registered("counting")
    rewards = []
    for settings in (
        {"workers": None, "wrappers": [Reused]},
        {"workers": rl.LocalWorkers(1), "wrappers": [lambda e: Reused(e)]},
    ):
        agent, data = made("PPO", env_id, scale_rewards=False, **settings)
        data.bind(agent)
        rewards.append(data.collect().reward)
        data.close()
    agent, data = made(
        "PPO",
        lambda: Reused(CountingEnv()),
        scale_rewards=False,
        workers=rl.LocalWorkers(1),
    )
    data.bind(agent)
    rewards.append(data.collect().reward)
    data.close()
    assert (rewards[0] % 1 == 0.5).all()
    np.testing.assert_array_equal(rewards[1], rewards[0])
    np.testing.assert_array_equal(rewards[2], rewards[0])
