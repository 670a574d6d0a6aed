"""Actions of several kinds at once."""

import functools

import keras
import numpy as np
import pytest
from gymnasium import spaces

import keras_rl2 as rl
from keras_rl2.distributions import CompositeHead
from keras_rl2.spaces.trees import map_leaves
from support.agents import ACTOR_CRITICS
from support.agents import AGENTS
from support.agents import EVERY_AGENT
from support.agents import AnySpaceEnv
from support.agents import assert_equal_weights
from support.agents import make_eager_agent
from support.agents import slow
from support.agents import weights_of
from support.errors import raises
from support.structured_envs import HYBRID_ACTIONS
from support.structured_envs import StructuredEnv
from support.structured_envs import assert_members
from support.structured_envs import assert_trees_equal
from support.structured_envs import batch_of
from support.structured_envs import row
from support.structured_envs import structured
from support.structured_envs import vector

SPACE = HYBRID_ACTIONS["dict"]


def trained_on(name, action):
    """Returns an agent after a round, and its weights before."""
    case, env = AGENTS[name], structured("tuple", action)
    agent = make_eager_agent(case, env)
    before = weights_of(agent)
    agent.fit(case.make_dataset(env, **case.one_update), verbose=0)
    return agent, before


@pytest.fixture(scope="module")
def trained():
    """Agents after a round, by agent and action; made once."""
    return functools.cache(trained_on)


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("PPO", "dict"),
        *slow(
            ("PPO", "tuple"),
            *((name, "dict") for name in ACTOR_CRITICS if name != "PPO"),
        ),
    ],
)
def test_trained_agents_act_and_are_saved(name, action, trained, tmp_path):
    agent, before = trained(name, action)
    for old, new in zip(before, agent.get_weights(), strict=True):
        assert np.isfinite(new).all()
        assert (old != new).any()
    batch = batch_of(agent.observation_space, 6)
    for deterministic in (False, True):
        actions = agent.act(batch, deterministic=deterministic)
        assert_members(agent.action_space, actions, (6,))
        one = agent.act(row(batch, 0), deterministic=deterministic)
        assert_members(agent.action_space, one)
        assert agent.action_space.contains(one)
    assert_trees_equal(one, row(actions, 0), rtol=1e-5, atol=1e-6)
    results = agent.evaluate(structured("tuple", action), episodes=4, seed=0)
    assert results["episode_length"] == 2.0
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert loaded.action_space == agent.action_space
    assert_equal_weights(loaded, agent)
    batch = batch_of(agent.observation_space, 20)
    assert_trees_equal(
        loaded.act(batch, deterministic=True),
        agent.act(batch, deterministic=True),
    )


def test_log_prob_of_act_is_the_sum_of_its_parts(trained):
    agent, _ = trained("PPO", "dict")
    batch = batch_of(agent.observation_space, 30)
    action, log_prob = agent.act(batch, return_log_prob=True)
    assert log_prob.shape == (30,)
    policy = agent.distribution(batch)
    gear, lights, wheel = policy.parts
    expected = (
        gear.log_prob(action["gear"] - 2)
        + lights.log_prob(action["lights"])
        # Of what was done: bounds may have clipped it.
        + wheel.log_prob(
            agent.policy.head.heads[2].from_environment(action["wheel"])
        )
    )
    np.testing.assert_allclose(log_prob, expected, rtol=1e-5)
    one, own = agent.act(row(batch, 0), return_log_prob=True)
    assert_members(agent.action_space, one)
    assert own.shape == ()
    # And those of samples.
    env = structured("multi_binary", "tuple")
    agent = make_eager_agent(AGENTS["PPO"], env)
    rollouts = AGENTS["PPO"].make_dataset(env)
    rollouts.bind(agent)
    rollouts.refresh()
    samples = rollouts.samples
    assert samples["action"].shape == (16, 3)
    assert samples["action"].dtype == np.float32
    policy, _ = agent.policy_and_value(samples["observation"])
    np.testing.assert_allclose(
        policy.log_prob(samples["action"]), samples["log_prob"], rtol=1e-5
    )


def test_the_log_std_is_of_the_numbers_only():
    env = structured("multi_binary", "dict")
    agent = make_eager_agent(AGENTS["PPO"], env, initial_log_std=-1.0)
    np.testing.assert_allclose(agent.log_std, [-1.0, -1.0])
    # gear, lights, and two means.
    assert agent.actor.output_shape == (None, 3 + 2 + 2)
    batch = batch_of(env.observation_space, 2)
    gear, lights, wheel = agent.distribution(batch).parts
    expected = (
        gear.entropy() + lights.entropy() + np.log(2 * np.pi * np.e) - 2.0
    )
    np.testing.assert_allclose(
        agent.distribution(batch).entropy(), expected, rtol=1e-5
    )
    assert wheel.mode().shape == (2, 2)

    # Or a network gives it.
    def network(units):
        return keras.Sequential(
            [
                keras.Input((2, 3)),
                keras.layers.Flatten(),
                keras.layers.Dense(units),
            ]
        )

    agent = rl.PPO(network(3 + 2 + 4), network(1), seed=0)
    agent.bind(env.observation_space, env.action_space)
    assert agent.log_std is None
    batch = batch_of(env.observation_space, 4)
    assert_members(SPACE, agent.act(batch), (4,))
    with raises("7 or 9 units", "8 units"):
        rl.PPO(network(8), network(1)).bind(
            env.observation_space, env.action_space
        )


def test_action_spaces_that_are_refused():
    for name in ("DQN", "SAC", "TD3"):
        for action, space in HYBRID_ACTIONS.items():
            with raises(
                f"an action space that {name} can act in", type(space).__name__
            ):
                EVERY_AGENT[name].make.for_env(structured("dict", action))
    for space, received in (
        (spaces.Dict({"say": spaces.Text(3)}), "say: Text"),
        (spaces.Dict({"at": spaces.Box(0, 9, (2,), np.uint8)}), "at: Box"),
        (spaces.Tuple([spaces.Dict({"x": spaces.Text(2)})]), "0.x: Text"),
        (spaces.Dict({1: spaces.Discrete(2)}), "Dict"),
        (spaces.Dict({}), "Dict"),
        (spaces.Tuple([]), "Tuple"),
    ):
        env = AnySpaceEnv(spaces.Discrete(2), space)
        with raises("an action space of Box .* Dict .* or Tuple", received):
            rl.PPO.for_env(env)


@pytest.mark.parametrize("space", HYBRID_ACTIONS.values())
def test_heads_of_trees_convert_actions_and_come_back_from_configs(space):
    head = rl.distributions.policy_head(space)
    again = CompositeHead.from_config(head.get_config())
    assert again.get_config() == head.get_config()
    assert again.parameter_sizes == head.parameter_sizes
    generator = np.random.default_rng(0)
    own = head.random_action(generator, (5,))
    assert_trees_equal(
        map_leaves(np.array, again.to_environment(own)),
        map_leaves(np.array, head.to_environment(own)),
    )
    batch = batch_of(space, 20)
    own = head.from_environment(batch)
    assert own.shape == (20, *head.action_shape)
    assert_trees_equal(
        map_leaves(np.array, head.to_environment(own)), batch, rtol=1e-6
    )


# Masks within.


class MaskedHybrid(StructuredEnv):
    """Some gears and lights are forbidden; the wheel cannot be."""

    def __init__(self):
        seen = {"at": spaces.Discrete(3), "action_mask": spaces.MultiBinary(5)}
        super().__init__(spaces.Dict(seen), SPACE)

    def reset(self, **kwargs):
        observation, info = super().reset(**kwargs)
        return self._masked(observation), info

    def step(self, action):
        assert self.mask[int(action["gear"]) - 2] == 1
        assert (action["lights"] <= self.mask[3:]).all()
        observation, *others = super().step(action)
        return self._masked(observation), *others

    def _masked(self, observation):
        # In the order of the keys: three gears, and two lights.
        self.mask = observation["action_mask"]
        self.mask[:3] = 0
        self.mask[self.np_random.integers(3)] = 1
        return observation


def test_parts_that_are_choices_can_be_forbidden():
    env = vector(MaskedHybrid)
    agent = make_eager_agent(AGENTS["PPO"], env)
    rollouts = AGENTS["PPO"].make_dataset(env)
    rollouts.bind(agent)
    for _ in range(2):
        rollouts.refresh()
    batch = batch_of(env.observation_space, 40)
    batch["action_mask"][:] = [[0, 1, 0, 0, 1]]
    for deterministic in (False, True):
        action = agent.act(batch, deterministic=deterministic)
        assert (action["gear"] == 3).all()
        assert not action["lights"][:, 0].any()
    batch["action_mask"][0, :3] = 0
    with raises("allows at least one action", "environment 0"):
        agent.act(batch)

    class Longer(MaskedHybrid):
        def __init__(self):
            super().__init__()
            # As if the wheel could be forbidden, too.
            self.observation_space["action_mask"] = spaces.MultiBinary(7)

    with raises("each of the 5 options", r"MultiBinary\(7\)"):
        rl.PPO.for_env(Longer())


# Learning.
