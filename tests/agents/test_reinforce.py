"""REINFORCE: whole episodes, and returns worked out by hand."""

import functools

import keras
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv

import keras_rl2 as rl
from keras_rl2.envs import as_vector_env
from support.agents import AGENTS
from support.agents import assert_equal_weights
from support.agents import differ
from support.agents import make_agent
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_rollouts
from support.agents import slow
from support.agents import weights_of
from support.datasets import episodes_of
from support.probe_envs import CountingEnv
from support.tabular import a_batch
from support.tabular import tabular

CASE = AGENTS["REINFORCE"]
MODES = list(AutoresetMode)
LENGTHS = (3, 1, 5)


def unequal_env(mode=AutoresetMode.SAME_STEP, lengths=LENGTHS, **arguments):
    """Environment i has episodes of `lengths[i]` steps, which terminate.

    Of the i-th environment's e-th episode the rewards are 100 i + 10 e + 1,
    + 2, and so on; observed are i, e, the number of the step, and chance.
    """
    arguments = {"truncates": (False,), **arguments}
    makers = [
        functools.partial(CountingEnv, i, (length,), **arguments)
        for i, length in enumerate(lengths)
    ]
    return as_vector_env(SyncVectorEnv(makers, autoreset_mode=mode))


def without_critic(env, units=3, **settings):
    """Makes an agent that has a policy only, for a few updates."""
    inputs = keras.Input(env.observation_space.shape)
    agent = rl.REINFORCE(
        keras.Model(inputs, keras.layers.Dense(units)(inputs)), **settings
    )
    agent.compile(keras.optimizers.SGD(1e-3), run_eagerly=True)
    return agent


def collected(agent, env, **arguments):
    rollouts = make_rollouts(env, **{"batch_size": None, **arguments})
    rollouts.bind(agent)
    rollouts.refresh()
    return rollouts


def of_env(rollouts, index):
    """Returns the valid samples of one environment."""
    count = rollouts.env.num_envs
    rows = [row for row in rollouts.valid_rows if row % count == index]
    return {key: value[rows] for key, value in rollouts.samples.items()}


# With gamma 0.9, from the last step of an episode to its first.
RETURNS = {
    0: [1 + 0.9 * (2 + 0.9 * 3), 2 + 0.9 * 3, 3],
    1: [101],
    2: [
        201 + 0.9 * 202 + 0.81 * 203 + 0.729 * 204 + 0.6561 * 205,
        202 + 0.9 * 203 + 0.81 * 204 + 0.729 * 205,
        203 + 0.9 * 204 + 0.81 * 205,
        204 + 0.9 * 205,
        205,
    ],
}


def valuing(env, baseline):
    """Makes an agent whose baseline is the number of the step, or is 0."""
    if not baseline:
        return without_critic(env, gamma=0.9)
    agent = make_agent(CASE, env, hidden=(), gamma=0.9)
    agent.critic.set_weights([np.float32([[0], [0], [1], [0]]), np.zeros(1)])
    return agent


over_baselines = pytest.mark.parametrize("baseline", [True, *slow(False)])


@over_baselines
@pytest.mark.parametrize("mode", MODES)
def test_returns_are_those_of_whole_episodes(baseline, mode):
    env = unequal_env(mode)
    agent = valuing(env, baseline)
    rollouts = collected(agent, env)
    assert agent.env_steps == len(rollouts.valid_rows) == sum(LENGTHS)
    for index, expected in RETURNS.items():
        samples = of_env(rollouts, index)
        np.testing.assert_allclose(samples["returns"], expected, rtol=1e-6)
        values = np.arange(len(expected)) * float(baseline)
        np.testing.assert_allclose(samples["value"], values)
        np.testing.assert_allclose(
            samples["advantage"], expected - values, rtol=1e-6
        )


@over_baselines
@pytest.mark.parametrize("mode", MODES)
def test_returns_of_truncated_episodes_continue_with_the_baseline(
    baseline, mode
):
    """A time limit truncates after 2 steps, or the horizon after 4."""
    env = unequal_env(mode, lengths=(2, 100), truncates=(True,))
    rollouts = collected(valuing(env, baseline), env, horizon=4)
    # The baseline of an observation made after so many steps.
    rest = [2.0, 4.0] if baseline else [0.0, 0.0]
    limited = [1 + 0.9 * (2 + 0.9 * rest[0]), 2 + 0.9 * rest[0]]
    cut = [104 + 0.9 * rest[1]]
    for reward in (103, 102, 101):
        cut.insert(0, reward + 0.9 * cut[0])
    for index, expected in enumerate((limited, cut)):
        np.testing.assert_allclose(
            of_env(rollouts, index)["returns"], expected, rtol=1e-6
        )
    # Both count as episodes.
    assert rollouts.logs()["episode_length"] == 3.0


# Episodes.


def test_every_episode_begins_at_a_reset_and_goes_to_its_end():
    env = unequal_env(AutoresetMode.NEXT_STEP)
    agent = make_agent(CASE, env)
    trajectories = []
    agent.observers.add(trajectories.append)
    rollouts = collected(agent, env)
    for _ in range(4):
        trajectory = trajectories[-1]
        for index, length in enumerate(LENGTHS):
            np.testing.assert_array_equal(
                trajectory.valid[:, index], np.arange(8) < length
            )
            observed = trajectory.observation[: length + 1, index]
            np.testing.assert_array_equal(observed[:, 2], range(length + 1))
            assert len(np.unique(observed[:, 1])) == 1
            np.testing.assert_array_equal(
                np.flatnonzero(trajectory.terminated[:, index]), [length - 1]
            )
        assert not trajectory.truncated.any()
        rollouts.refresh()
    assert agent.env_steps == 5 * sum(LENGTHS)
    assert sorted(episodes_of(rollouts)["episode_lengths"]) == sorted(
        5 * LENGTHS
    )


def test_only_steps_of_the_episodes_are_trained_on():
    env = unequal_env()
    agent = make_agent(CASE, env)
    rollouts = collected(agent, env, passes=3, batch_size=5)
    one_round = rollouts.hand_over()
    rows = one_round["rows"].reshape(3, -1)
    counted = one_round["weight"].reshape(3, -1) == 1
    expected = [
        step * 3 + index
        for index, length in enumerate(LENGTHS)
        for step in range(length)
    ]
    for one_pass, counts in zip(rows, counted, strict=True):
        assert sorted(one_pass[counts]) == sorted(expected)


class PoisonedAfterwards(CountingEnv):
    """Gives nothing but `poison` once its first episode has ended."""

    def __init__(self, *arguments, poison=0.0, **kwargs):
        super().__init__(*arguments, **kwargs)
        self._poison = poison

    def reset(self, **kwargs):
        observation, info = super().reset(**kwargs)
        return self._with_poison(observation), info

    def step(self, action):
        observation, reward, *rest = super().step(action)
        reward = self._with_poison(reward)
        return self._with_poison(observation), reward, *rest

    def _with_poison(self, array):
        return array + self._poison if self._episode > 0 else array


@pytest.mark.parametrize(
    "mode",
    [
        AutoresetMode.NEXT_STEP,
        *slow(AutoresetMode.SAME_STEP, AutoresetMode.DISABLED),
    ],
)
def test_steps_after_an_episode_have_no_effect(mode):
    """Non-finite values after an episode are allowed, but not within one."""
    weights = []
    for poison in (0.0, np.inf):
        makers = [
            functools.partial(
                PoisonedAfterwards, i, (n,), (i == 0,), poison=poison
            )
            for i, n in enumerate((2, 1, 7))
        ]
        env = as_vector_env(SyncVectorEnv(makers, autoreset_mode=mode))
        agent = make_eager_agent(CASE, env, normalize_observations=True)
        start = weights_of(agent)
        agent.fit(make_rollouts(env, batch_size=None), verbose=0)
        assert differ(agent.get_weights(), start)
        weights.append(agent.get_weights())
    assert_equal_weights(*weights)
    with pytest.raises(ValueError, match=r"observation=inf.* at step 0 "):
        agent.fit(make_rollouts(env), verbose=0)


def test_total_steps_end_with_the_epoch_that_reaches_them():
    """Far more rounds than there would be if each had horizon x B steps."""
    env = unequal_env()
    agent = make_eager_agent(CASE, env)
    rollouts = make_rollouts(
        env, horizon=100, batch_size=None, rounds_per_epoch=2
    )
    steps = 2 * sum(LENGTHS)
    for call in (1, 2):
        history = agent.fit(rollouts, total_steps=steps + 1, verbose=0)
        assert len(history.epoch) == 2
        assert agent.env_steps == call * 2 * steps


def test_rollouts_of_another_kind_of_agent():
    """The same dataset gives fixed steps to A2C, whole episodes to this."""
    env = unequal_env(lengths=(3, 5))
    a2c, reinforce = (
        make_eager_agent(AGENTS[name], env) for name in ("A2C", "REINFORCE")
    )
    rollouts = make_rollouts(env)
    for agent, steps in ((a2c, 16), (reinforce, 8)):
        agent.fit(rollouts, verbose=0)
        assert agent.env_steps == steps


# The update.


def test_an_update_is_the_gradient_worked_out_by_hand():
    logits = np.array([[0.0, 0.5, 1.0], [0.0, 1.0, -1.0]])
    values = np.array([0.5, -1.0])
    returns = np.array([2.0, -0.5])
    agent = tabular(logits, values, make=rl.REINFORCE, value_coefficient=0.25)
    advantage = returns - values
    agent.train_step(
        a_batch(
            action=[2, 0], advantage=advantage, returns=returns, value=values
        )
    )
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    taken = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    new_logits, new_values = agent.get_weights()
    np.testing.assert_allclose(
        new_logits, logits + advantage[:, None] * (taken - p) / 2, rtol=1e-5
    )
    np.testing.assert_allclose(
        new_values[:, 0], values + 0.25 * 2 * advantage / 2, rtol=1e-5
    )


@pytest.mark.parametrize("action", ["box", *slow("discrete")])
def test_without_a_critic(action, tmp_path):
    """The agent learns, is saved and loaded, and its baseline is 0."""
    env = make_env(f"act_{action}")
    agent = without_critic(env, {"discrete": 3, "box": 1}[action])
    history = agent.fit(make_rollouts(env), epochs=2, verbose=0).history
    assert len(agent.trainable_variables) == {"discrete": 2, "box": 3}[action]
    for key in agent.statistics_names:
        assert np.isfinite(history[key]).all()
    observation = np.ones((4, 3), "float32")
    np.testing.assert_array_equal(agent.value(observation), np.zeros(4))
    with pytest.raises(ValueError, match="separate critic"):
        agent.compile("sgd", critic_optimizer="sgd")
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert loaded.critic is None
    assert_equal_weights(loaded, agent)
    np.testing.assert_array_equal(
        *(a.act(observation, deterministic=True) for a in (agent, loaded))
    )
