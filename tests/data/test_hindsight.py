"""Hindsight: goals that episodes reached, and rewards of these goals.

Rewards of `Milestones` tell the goals that they were computed from, so that all
numbers here are computed by hand.
"""

import functools
import json

import gymnasium
import keras
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import keras_rl2 as rl
from support.agents import OFF_POLICY_KINDS
from support.agents import make_eager_agent
from support.agents import make_replay
from support.errors import raises
from support.goal_envs import BitFlipping
from support.goal_envs import Milestones
from support.structured_envs import vector
from support.vector_envs import MODES
from support.workers_here import WorkersHere


class Ending(Milestones):
    """Ends with its goal."""

    def compute_terminated(self, achieved_goal, desired_goal, info):
        return (achieved_goal == desired_goal).all(axis=-1)


def filled(n_step, capacity=100, steps=9, kind=rl.data.ReplayBuffer):
    """Returns a buffer of the first steps of `Milestones`, γ = 1/2.

    They achieve 101 ... 105 and are truncated; 201, 202, 203 and are
    terminated; 301 and go on.
    """
    env = rl.envs.as_vector_env(Milestones())
    spec = env.observation_spec
    buffer = kind(
        capacity, 1, spec, (), np.int32, n_step=n_step, gamma=0.5, seed=0
    )
    observation = env.reset()
    for _ in range(steps):
        following, *outcome, final = env.step(np.zeros(1, np.int32))
        buffer.add(observation, [0], *outcome, [True], following, final)
        observation = following
    return buffer


def drawn(buffer, env, strategy, count=600):
    """Returns the outcomes of transitions, by step and goal.

    Keys are what the step achieved and its goal; values are reward, discount
    and what the next observation achieved.
    """
    transform = rl.Hindsight(strategy, relabelled=1.0).transform(env)
    batch = transform(buffer.sample(count), buffer)
    assert batch["reward"].dtype == batch["discount"].dtype == np.float32
    here, after = batch["observation"], batch["next_observation"]
    np.testing.assert_array_equal(here["desired_goal"], after["desired_goal"])
    for each in (here, after):
        # Only the goal is another one.
        np.testing.assert_array_equal(
            each["observation"], each["achieved_goal"]
        )
    columns = (
        here["achieved_goal"][:, 0] + 1,
        here["desired_goal"][:, 0],
        batch["reward"],
        batch["discount"],
        after["achieved_goal"][:, 0],
    )
    return {
        (int(step), int(goal)): (float(reward), float(discount), int(reached))
        for step, goal, reward, discount, reached in zip(*columns, strict=True)
    }


def of_first_steps(outcomes):
    """Returns the outcomes of the last three steps of the first episode."""
    return {k: v for k, v in outcomes.items() if 103 <= k[0] <= 105}


# A reward is 10 g + a. The first episode is truncated after 105.
ONE_STEP = {
    (103, 103): (1133.0, 0.5, 103),
    (103, 104): (1143.0, 0.5, 103),
    (103, 105): (1153.0, 0.5, 103),
    (104, 104): (1144.0, 0.5, 104),
    (104, 105): (1154.0, 0.5, 104),
    (105, 105): (1155.0, 0.5, 105),
}
# 1133 + 1134 / 2 + 1135 / 4, and so on; windows end with the episode.
THREE_STEPS = {
    (103, 103): (1983.75, 0.125, 105),
    (103, 104): (2001.25, 0.125, 105),
    (103, 105): (2018.75, 0.125, 105),
    (104, 104): (1716.5, 0.25, 105),
    (104, 105): (1731.5, 0.25, 105),
    (105, 105): (1155.0, 0.5, 105),
}
# The window ends where the goal is achieved.
ENDING = {
    1: {
        **ONE_STEP,
        (103, 103): (1133.0, 0.0, 103),
        (104, 104): (1144.0, 0.0, 104),
        (105, 105): (1155.0, 0.0, 105),
    },
    3: {
        (103, 103): (1133.0, 0.0, 103),
        (103, 104): (1715.0, 0.0, 104),
        (103, 105): (2018.75, 0.0, 105),
        (104, 104): (1144.0, 0.0, 104),
        (104, 105): (1731.5, 0.0, 105),
        (105, 105): (1155.0, 0.0, 105),
    },
}


@pytest.mark.parametrize(
    ("n_step", "env", "expected"),
    [
        (1, Milestones, ONE_STEP),
        (3, Milestones, THREE_STEPS),
        (1, Ending, ENDING[1]),
        (3, Ending, ENDING[3]),
    ],
)
def test_future_goals_are_those_of_the_step_and_later_ones(
    n_step, env, expected
):
    assert of_first_steps(drawn(filled(n_step), env(), "future")) == expected


def test_goals_of_an_episode_are_all_that_it_reached():
    outcomes = drawn(filled(3), Ending(), "episode", 2000)
    goals = {goal for step, goal in outcomes if step == 104}
    assert goals == {101, 102, 103, 104, 105}
    # Goals of the past are not achieved again: 1114, 1115.
    assert outcomes[104, 101] == (1114.0 + 1115.0 / 2, 0.25, 105)
    assert outcomes[105, 104] == (1145.0, 0.5, 105)


def test_final_goals_are_the_last_ones():
    outcomes = drawn(filled(1), Milestones(), "final")
    assert {goal for _, goal in outcomes} == {105, 203, 301}
    assert outcomes[101, 105] == (1151.0, 0.5, 101)
    assert outcomes[105, 105] == (1155.0, 0.5, 105)


def test_a_termination_stays_where_goals_end_nothing():
    outcomes = drawn(filled(3), Milestones(), "future")
    # 2222 + 2223 / 2, until the termination after 203.
    assert outcomes[202, 202] == (3333.5, 0.0, 203)
    assert outcomes[203, 203] == (2233.0, 0.0, 203)
    outcomes = drawn(filled(3), Ending(), "episode", 2000)
    # Under another goal, the episode only happened to end there.
    assert outcomes[203, 201] == (2213.0, 0.5, 203)


def test_an_episode_in_progress_has_the_goals_reached_so_far():
    outcomes = drawn(filled(1, steps=3), Milestones(), "future")
    assert {*outcomes} == {
        (101, 101), (101, 102), (101, 103),
        (102, 102), (102, 103),
        (103, 103),
    }  # fmt: skip
    outcomes = drawn(filled(3, steps=4), Milestones(), "final")
    # The last two windows are open, but what they reached is known.
    assert {*outcomes} == {(101, 104), (102, 104)}


def test_overwritten_steps_are_no_goals():
    outcomes = drawn(filled(1, capacity=4, steps=5), Milestones(), "episode")
    goals = range(102, 106)
    assert {*outcomes} == {(step, goal) for step in goals for goal in goals}


def test_the_share_of_relabelled_transitions():
    buffer, env = filled(1), Milestones()
    for share in (0.0, 0.25, 1.0):
        transform = rl.Hindsight("final", relabelled=share).transform(env)
        batch = transform(buffer.sample(4000), buffer)
        own = batch["observation"]["desired_goal"][:, 0] == -1.0
        assert own.mean() == pytest.approx(1.0 - share, abs=0.03)
        np.testing.assert_array_equal(
            batch["reward"][own],
            batch["next_observation"]["achieved_goal"][own, 0] - 10.0,
        )


class OneAtATime(Ending):
    """Takes one goal, as mazes of Gymnasium-Robotics do."""

    def compute_reward(self, achieved_goal, desired_goal, info):
        assert info in ({}, [{}] * len(achieved_goal))
        return float(np.sum(10.0 * desired_goal + achieved_goal))

    def compute_terminated(self, achieved_goal, desired_goal, info):
        return bool(np.linalg.norm(achieved_goal - desired_goal) == 0.0)


def test_functions_of_one_goal_are_called_for_each():
    outcomes = drawn(filled(3), OneAtATime(), "future")
    assert of_first_steps(outcomes) == ENDING[3]


class Doubled(gymnasium.Wrapper):
    """Doubles rewards, those of goals too."""

    def compute_reward(self, *goals):
        return 2.0 * self.unwrapped.compute_reward(*goals)


def test_rewards_are_those_of_the_outermost_wrapper_that_has_them():
    env = gymnasium.wrappers.TimeLimit(Doubled(Milestones()), 100)
    outcomes = drawn(filled(1), env, "final")
    assert outcomes[101, 105] == (2302.0, 0.5, 101)


@pytest.mark.parametrize("mode", MODES)
def test_goals_are_of_the_same_episode_in_environments_of_each_kind(mode):
    """The hundreds are the episode, in two environments that take turns."""
    offsets = iter((0, 10_000) * 9)

    def make():
        env = Milestones()
        env.achieved = next(offsets)
        return env

    env = vector(make, mode)
    replay = make_replay(env, capacity=64, hindsight=rl.Hindsight())
    agent = make_eager_agent(OFF_POLICY_KINDS["DQN"], env)
    replay.bind(agent)
    for _ in range(6):
        replay.collect()
        batch = replay.sample(300)
        here = batch["observation"]["achieved_goal"][:, 0]
        goal = batch["observation"]["desired_goal"][:, 0]
        relabelled = goal > 0
        assert 0.6 < relabelled.mean() < 0.95
        assert (goal // 100 == here // 100)[relabelled].all()
        assert (goal > here)[relabelled].all()
        after = batch["next_observation"]["achieved_goal"][:, 0]
        np.testing.assert_array_equal(after, here + 1)
        np.testing.assert_array_equal(batch["reward"], 10 * goal + after)


@pytest.mark.parametrize(
    ("name", "prioritized"),
    [
        ("DQN", True),
        ("SAC", False),
        pytest.param("TD3", False, marks=pytest.mark.slow),
    ],
)
def test_each_kind_of_agent_learns_with_hindsight(name, prioritized):
    case = OFF_POLICY_KINDS[name]
    env = rl.envs.as_vector_env(Ending(case.action_space))
    agent = make_eager_agent(case, env, normalize_observations=True)
    replay = make_replay(
        env, prioritized=prioritized, n_step=2, hindsight=rl.Hindsight()
    )
    agent.fit(replay, epochs=3, verbose=0)
    assert int(agent.updates) == 6
    # The statistics are of the goals that were observed.
    found = {layer.key: layer.mean for layer in agent.normalizing.layers}
    np.testing.assert_array_equal(found["desired_goal"], [-1.0])


def replay_of_bits(**settings):
    """Returns the replay of an agent that is not trained, of 200 steps."""
    make = functools.partial(BitFlipping, 4)
    settings = {"hindsight": rl.Hindsight(), "n_step": 2, **settings}
    replay = rl.ReplayDataset(make, 200, 8, seed=0, **settings)
    replay.bind(rl.DQN.for_env(make, hidden=(4,), seed=0))
    replay.fill(200)
    return replay


def test_draws_go_on_where_a_state_was_taken():
    replay = replay_of_bits()
    replay.sample(7)
    state = replay.get_state()
    expected = replay.sample(50)
    other = replay_of_bits()
    other.set_state(state)
    found = other.sample(50)
    for key in ("reward", "discount"):
        np.testing.assert_array_equal(found[key], expected[key])
    np.testing.assert_array_equal(
        found["observation"]["desired_goal"],
        expected["observation"]["desired_goal"],
    )


def test_environments_of_workers_and_processes_have_rewards_here():
    replay = replay_of_bits(workers=WorkersHere(2))
    reward = replay.sample(200)["reward"]
    assert {*reward} <= {0.0, -1.0, np.float32(-1.99)}
    assert (reward == 0.0).mean() > 0.1
    replay.close()


@pytest.mark.slow
def test_environments_of_an_async_vector_have_rewards_here():
    env = vector(BitFlipping, AutoresetMode.SAME_STEP, asynchronous=True)
    replay = rl.ReplayDataset(env, 64, 8, hindsight=rl.Hindsight())
    assert len(replay.transform) == 1
    replay.close()


def recorded_goals(*without, **arrays):
    """Returns an episode of 5 steps, which achieves 1 to 6, and relabels it."""
    count = np.arange(1, 6, dtype=np.float32)
    names = ("observation", "achieved_goal", "desired_goal")
    goals = dict.fromkeys(names, count[:, None])
    arrays = {
        "observations": goals,
        "next_observations": {k: each + 1 for k, each in goals.items()},
        "actions": np.zeros(5, int),
        "rewards": np.zeros(5),
        "terminations": np.zeros(5, bool),
        "truncations": count == 5,
        **arrays,
    }
    offline = rl.OfflineDataset(
        {k: each for k, each in arrays.items() if k not in without},
        transform=[
            rl.Hindsight("final", relabelled=1.0).transform(Milestones())
        ],
    )
    offline.bind(make_eager_agent(OFF_POLICY_KINDS["DQN"], Milestones()))
    return offline


def test_a_goal_that_is_not_recorded_is_not_made_up():
    ends = np.arange(5) == 4
    offline = recorded_goals(
        "next_observations", terminations=ends, truncations=~ends & ends
    )
    with raises("`next_observations` in", "none of them"):
        offline.sample(4)


def test_recorded_episodes_get_goals_too():
    offline = recorded_goals()
    batch = offline.sample(40)
    assert (batch["observation"]["desired_goal"] == 6.0).all()
    assert {*batch["reward"]} == {62.0, 63.0, 64.0, 65.0, 66.0}
    assert (
        offline.recorded.observation["desired_goal"] == np.arange(1, 7)[:, None]
    ).all()


def test_settings_are_plain_data_of_a_preset():
    hindsight = rl.Hindsight("episode", relabelled=0.5)
    data = json.loads(
        json.dumps(keras.saving.serialize_keras_object(hindsight))
    )
    restored = keras.saving.deserialize_keras_object(data)
    assert vars(restored) == vars(hindsight)
    preset = rl.presets.Preset(
        "DQN", "support.goal_envs:BitFlipping", 2000,
        dataset={"hindsight": hindsight.get_config()},
    )  # fmt: skip
    preset = rl.presets.Preset.from_dict(
        json.loads(json.dumps(preset.to_dict()))
    )
    training = rl.Training.from_preset(preset, seed=0)
    assert vars(training.dataset.hindsight) == vars(hindsight)
    preset = preset.with_settings({"dataset.hindsight": None})
    assert rl.Training.from_preset(preset).dataset.hindsight is None


def test_what_has_no_goals_is_refused():
    with raises("compute_reward", "CartPole-v1"):
        rl.ReplayDataset("CartPole-v1", hindsight=rl.Hindsight())
    with raises("achieved_goal", "Box"):
        env = gymnasium.wrappers.FlattenObservation(Milestones())
        rl.ReplayDataset(env, hindsight=rl.Hindsight())
    with raises("`strategy`", "'last'"):
        rl.Hindsight("last")
    with raises("`hindsight`", "'future'"):
        rl.ReplayDataset(Milestones(), hindsight="future")
    with raises("`relabelled`", "1.5"):
        rl.Hindsight(relabelled=1.5)
    agent = rl.DQN.for_env(
        Milestones(), hidden=(4,), memory=keras.layers.GRUCell(4)
    )
    with raises("hindsight=None", "future"):
        make_replay(Milestones(), hindsight=rl.Hindsight()).bind(agent)
