"""Trajectories of trees: each array equals that of a plain Gymnasium loop."""

import functools
from unittest import mock

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import keras_rl2 as rl
from keras_rl2.spaces.supported import observation_spec
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves
from support.agents import AGENTS
from support.agents import make_eager_agent
from support.errors import raises
from support.structured_envs import OBSERVATIONS
from support.structured_envs import MaskedEnv
from support.structured_envs import StructuredEnv
from support.structured_envs import assert_trees_equal
from support.structured_envs import batched
from support.structured_envs import row
from support.structured_envs import vector

MODES = list(AutoresetMode)
HORIZON = 20

by_mode = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)


def stored(space, observation):
    """Returns an observation as it is stored: arrays of its own dtypes."""
    return map_leaves(
        lambda spec, array: np.asarray(array, spec.dtype),
        observation_spec(space),
        observation,
    )


def plain_loop(env, actions, seed):
    """Returns the steps of Gymnasium for actions, without any adapter."""
    observation, _ = env.reset(seed=seed)
    steps = []
    for action in actions:
        following, reward, terminated, truncated, _ = env.step(action)
        steps.append((observation, reward, terminated, truncated, following))
        observation = following
        if terminated or truncated:
            observation, _ = env.reset()
    return steps


def collected(env, horizon=HORIZON, case=AGENTS["PPO"]):
    """Returns a trajectory, its dataset, and the seed of the environments."""
    agent = make_eager_agent(case, env)
    rollouts = rl.RolloutDataset(
        env, horizon=horizon, scale_rewards=False, seed=0
    )
    rollouts.bind(agent)
    with mock.patch.object(env, "reset", wraps=env.reset) as reset:
        trajectory = rollouts.collect()
    return trajectory, rollouts, reset.call_args_list[0].kwargs["seed"]


def following_of(trajectory, t, b):
    """Returns the true next observation of the step of an environment."""
    (where,) = np.nonzero(
        trajectory.final_index == t * trajectory.reward.shape[1] + b
    )
    if where.size:
        return row(trajectory.final_observation, where[0])
    return row(trajectory.observation, (t + 1, b))


def assert_as_plain(trajectory, make, seed, start=0):
    """Compares each environment of a trajectory with a plain loop."""
    space = make().observation_space
    horizon, num_envs = trajectory.reward.shape
    for b in range(num_envs):
        (steps,) = np.nonzero(trajectory.valid[:, b])
        actions = trajectory.action[steps, b] + start
        expected = plain_loop(make(), actions, seed + b)
        assert len(expected) > 0.6 * horizon
        for t, each in zip(steps, expected, strict=True):
            observation, reward, terminated, truncated, following = each
            assert_trees_equal(
                row(trajectory.observation, (t, b)), stored(space, observation)
            )
            assert_trees_equal(
                following_of(trajectory, t, b), stored(space, following)
            )
            assert trajectory.reward[t, b] == np.float32(reward)
            assert trajectory.terminated[t, b] == terminated
            assert trajectory.truncated[t, b] == truncated


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("dict", AutoresetMode.SAME_STEP),
        ("nested", AutoresetMode.NEXT_STEP),
        ("multi_discrete", "single"),
        *(
            pytest.param(name, form, marks=pytest.mark.slow)
            for name, form in (
                ("tuple", AutoresetMode.DISABLED),
                ("nested", "processes"),
            )
        ),
    ],
)
def test_every_array_equals_that_of_a_plain_loop(name, form):
    make = functools.partial(StructuredEnv, OBSERVATIONS[name])
    if form == "single":
        env = rl.envs.as_vector_env(make())
    elif form == "processes":
        env = vector(make, AutoresetMode.SAME_STEP, asynchronous=True)
    else:
        env = vector(make, form, num_envs=3)
    trajectory, _, seed = collected(env)
    assert_as_plain(trajectory, make, seed)
    assert_shapes_and_dtypes(trajectory, OBSERVATIONS[name])
    env.close()


def assert_shapes_and_dtypes(trajectory, space):
    """Asserts that arrays have the shapes and the dtypes of a space."""
    ended = len(trajectory.final_index)
    assert ended in (0, trajectory.ended.sum())
    expected = {"int64": "int32", "float64": "float32"}
    for tree, leading in (
        (trajectory.observation, (HORIZON + 1, trajectory.reward.shape[1])),
        (trajectory.final_observation, (ended,)),
    ):
        found = dict(named_leaves(tree))
        spaces = dict(named_leaves(space_tree(space)))
        assert set(found) == set(spaces)
        for path, leaf in spaces.items():
            assert found[path].shape == (*leading, *leaf.shape)
            dtype = str(leaf.dtype)
            assert found[path].dtype == expected.get(dtype, dtype)
            assert found[path].flags.c_contiguous


@by_mode
def test_masks_equal_those_of_a_plain_loop(mode):
    trajectory, _, seed = collected(vector(MaskedEnv, mode))
    assert_as_plain(trajectory, MaskedEnv, seed, start=1)
    masks = trajectory.observation["action_mask"]
    assert masks.dtype == np.int8
    # Nothing is allowed when the game is over, and only then.
    nothing = ~masks[:-1].any(axis=-1)
    np.testing.assert_array_equal(nothing, ~trajectory.valid)
    final = trajectory.final_observation["action_mask"]
    assert not final.any()
    assert len(final) == (
        0 if mode is AutoresetMode.NEXT_STEP else trajectory.ended.sum()
    )


def test_a_round_continues_at_the_last_observation_of_the_round_before():
    make = functools.partial(StructuredEnv, OBSERVATIONS["nested"])
    first, rollouts, _ = collected(vector(make), horizon=7)
    second = rollouts.collect()
    assert_trees_equal(row(second.observation, 0), row(first.observation, -1))
    # What was given away is not written to again.
    kept = map_leaves(np.array, first.observation)
    rollouts.collect()
    assert_trees_equal(first.observation, kept)


@pytest.mark.parametrize(
    "mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]
)
def test_whole_episodes(mode):
    make = functools.partial(StructuredEnv, OBSERVATIONS["dict"], lengths=(4,))
    trajectory, _, seed = collected(
        vector(make, mode), horizon=10, case=AGENTS["REINFORCE"]
    )
    assert trajectory.valid.sum() == 8
    for b in range(2):
        expected = plain_loop(make(), trajectory.action[:4, b], seed + b)
        seen = [each[0] for each in expected] + [expected[-1][-1]]
        assert_trees_equal(
            row(trajectory.observation, (slice(5), b)),
            batched([stored(make().observation_space, o) for o in seen]),
        )


def test_a_number_that_is_not_finite_is_named():
    class Broken(StructuredEnv):
        def step(self, action):
            observation, *others = super().step(action)
            if self._episode == 1:
                observation["arm"]["angle"][1] = np.nan
            return observation, *others

    make = functools.partial(Broken, OBSERVATIONS["nested"])
    env = vector(make)
    with raises(
        "finite observation arm.angle from every environment",
        "arm.angle=nan from environment 0 at step 5",
    ):
        collected(env)
    agent = make_eager_agent(AGENTS["PPO"], env)
    with raises(
        "finite observation arm.angle from every environment", "evaluation"
    ):
        agent.evaluate(vector(make), episodes=6)
