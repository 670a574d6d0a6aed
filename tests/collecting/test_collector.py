"""The contents of a rollout are the same in each autoreset mode."""

import functools

import keras
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics

from keras_rl2.data import Trajectory
from keras_rl2.envs import as_vector_env
from support import vector_envs
from support.agents import AGENTS
from support.agents import assert_equal_weights
from support.agents import make_eager_agent
from support.agents import make_rollouts
from support.datasets import episodes_of
from support.probe_envs import ChainProbe
from support.probe_envs import CountingEnv

PPO = AGENTS["PPO"]
MODES = list(AutoresetMode)


def vector(makers, mode):
    return as_vector_env(SyncVectorEnv(makers, autoreset_mode=mode))


def chains(mode):
    return vector([ChainProbe] * 2, mode)


def counting(mode, num_envs=2):
    makers = [functools.partial(CountingEnv, i) for i in range(num_envs)]
    return vector(makers, mode)


def valid_samples(rollouts, env_index):
    """Returns prepared samples of one environment, resets left out."""
    count = rollouts.env.num_envs
    rows = [r for r in rollouts.valid_rows if r % count == env_index]
    return {key: value[rows] for key, value in rollouts.samples.items()}


def trainee(env):
    """Makes an agent for a few updates."""
    sgd = {"optimizer": keras.optimizers.SGD(0.01)}
    return make_eager_agent(PPO, env, compile_arguments=sgd)


def bound(env, **arguments):
    """Returns rollouts for an agent of their own."""
    rollouts = make_rollouts(env, **arguments)
    rollouts.bind(make_eager_agent(PPO, env, gamma=0.9, gae_lambda=0.8))
    return rollouts


def refreshed(env, horizon):
    rollouts = bound(env, horizon=horizon, batch_size=horizon)
    rollouts.refresh()
    return rollouts


# Probe 7.


@pytest.mark.parametrize("mode", MODES)
def test_final_observations_start_no_transition_and_are_not_learned_from(mode):
    rollouts = refreshed(chains(mode), 30)
    observations = rollouts.samples["observation"][rollouts.valid_rows]
    assert ChainProbe.FINAL not in observations
    # Of three steps under NEXT_STEP one is a reset.
    expected = 40 if mode == AutoresetMode.NEXT_STEP else 60
    assert len(observations) == expected
    assert rollouts.agent.env_steps == expected
    returns = rollouts.samples["returns"][rollouts.valid_rows]
    last = observations[:, 0] == 1.0
    # The reward alone, wherever the episode terminated.
    np.testing.assert_allclose(returns[last], 1.0, rtol=1e-5)
    one_round = rollouts.hand_over()
    trained = one_round["rows"][one_round["weight"] == 1]
    assert sorted(trained) == sorted(rollouts.valid_rows)


# The modes agree.


@pytest.fixture(scope="module")
def prepared():
    return refreshed(counting(AutoresetMode.SAME_STEP), 40)


@pytest.mark.parametrize("mode", [*MODES, None])
def test_samples_are_equal_in_all_autoreset_modes(mode, prepared):
    """The samples of whole episodes do not depend on the mode.

    Observations and rewards of this environment do not depend on the actions.
    """
    single = mode is None
    env = as_vector_env(CountingEnv(0)) if single else counting(mode)
    rollouts = refreshed(env, 40)
    for index in range(env.num_envs):
        ours = valid_samples(rollouts, index)
        theirs = valid_samples(prepared, index)
        # Episodes of 3, 1 and 5 steps: 18 are six of them.
        for key in ("observation", "value", "returns", "advantage"):
            np.testing.assert_allclose(
                ours[key][:18], theirs[key][:18], rtol=1e-5, err_msg=key
            )


# Episodes.


@pytest.mark.parametrize("mode", MODES)
def test_episode_statistics_equal_gymnasiums(mode):
    recorded = [RecordEpisodeStatistics(CountingEnv(i)) for i in range(2)]
    env = vector([lambda e=e: e for e in recorded], mode)
    rollouts = bound(env, horizon=7)
    for _ in range(6):
        rollouts.refresh()
    theirs = sorted(
        (float(r), int(n))
        for e in recorded
        for r, n in zip(e.return_queue, e.length_queue, strict=True)
    )
    ours = sorted(
        zip(
            episodes_of(rollouts)["episode_returns"],
            episodes_of(rollouts)["episode_lengths"],
            strict=True,
        )
    )
    assert len(ours) > 15
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    logs = rollouts.logs()
    assert logs["episode_return"] == pytest.approx(
        np.mean([r for r, _ in ours])
    )
    assert logs["episode_length"] == pytest.approx(
        np.mean([n for _, n in ours])
    )


@pytest.mark.parametrize("careless", vector_envs.CARELESS)
def test_rewards_of_mere_resets_are_not_counted(careless):
    logs, returns = [], []
    for make in (careless, functools.partial(vector_envs.sync, mode=MODES[0])):
        env = make(CountingEnv, num_envs=2)
        assert env.masks_reset_rows
        rollouts = bound(env, horizon=7)
        # Episodes that go on from one round to the next, too.
        for _ in range(3):
            rollouts.refresh()
        logs.append(rollouts.logs()["episode_return"])
        returns.append(episodes_of(rollouts)["episode_returns"])
    assert len(returns[0]) == 10
    assert returns[0] == returns[1]
    assert logs[0] == logs[1] < vector_envs.RESET_REWARD


def test_returns_are_of_the_last_100_episodes():
    rollouts = refreshed(as_vector_env(CountingEnv(lengths=(100,))), 8)
    assert np.isnan(rollouts.logs()["episode_return"])
    rollouts = refreshed(as_vector_env(CountingEnv(lengths=(1,))), 120)
    assert len(episodes_of(rollouts)["episode_returns"]) == 100
    # Episode k gives 10 k + 1; the last hundred are those from 20 on.
    expected = np.mean(10.0 * np.arange(20, 120) + 1)
    assert rollouts.logs()["episode_return"] == pytest.approx(expected)


# Bootstrapping, worked out by hand.


def a_trajectory(final_index, **flags):
    """Four steps of one environment; observations 0 to 4."""
    zeros = np.zeros((4, 1), bool)
    final = np.full((len(final_index), 1), 9.0, "float32")
    return Trajectory(
        observation=np.arange(5, dtype="float32")[:, None, None],
        action=np.zeros((4, 1), "int32"),
        reward=np.ones((4, 1), "float32"),
        **{"terminated": zeros, "truncated": zeros, **flags},
        valid=np.ones((4, 1), bool),
        final_observation=final,
        final_index=np.array(final_index, "int32"),
    )


@pytest.fixture(scope="module")
def counter():
    """An agent for which V(s) = s, with gamma 0.5 and lambda 0.5."""
    env = as_vector_env(ChainProbe())
    agent = make_eager_agent(PPO, env, hidden=(), gamma=0.5, gae_lambda=0.5)
    agent.critic.set_weights([np.ones((1, 1)), np.zeros(1)])
    return agent


def test_advantages_by_hand(counter):
    samples, _ = counter.prepare(a_trajectory([]))
    np.testing.assert_allclose(samples["value"], [0, 1, 2, 3])
    # delta = 1 + V(t+1) / 2 - V(t) = 1.5, 1, 0.5, 0; the trace is 1/4.
    np.testing.assert_allclose(
        samples["advantage"], [1.5 + 0.25 * 1.125, 1.125, 0.5, 0.0]
    )
    np.testing.assert_allclose(
        samples["returns"], samples["advantage"] + samples["value"]
    )
    for final_index, end, delta in (
        # At the truncation: 1 + V(9) / 2 - V(1), and no trace on.
        ([1], "truncated", 4.5),
        # Under NEXT_STEP the next row is the true final observation.
        ([], "truncated", 1.0),
        ([1], "terminated", 0.0),
        ([], "terminated", 0.0),
    ):
        flags = np.zeros((4, 1), bool)
        flags[1] = True
        samples, _ = counter.prepare(a_trajectory(final_index, **{end: flags}))
        np.testing.assert_allclose(
            samples["advantage"],
            [1.5 + 0.25 * delta, delta, 0.5, 0.0],
            atol=1e-6,
            err_msg=f"{end}, {final_index}",
        )


# Sharing an environment, and breaking off.


def is_continuous(trajectory):
    """Tells whether each observation follows from the one before."""
    step = trajectory.observation[..., 2]
    goes_on = np.where(trajectory.ended, 0.0, step[:-1] + 1)
    return (step[1:] == goes_on).all()


@pytest.mark.parametrize(
    "mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]
)
def test_evaluating_on_the_same_environment_starts_new_episodes(mode):
    env = counting(mode)
    rollouts = bound(env, horizon=6)
    assert is_continuous(rollouts.collect())
    rollouts.agent.evaluate(env.env, episodes=3)
    trajectory = rollouts.collect()
    assert (trajectory.observation[0, :, 2] == 0).all()
    assert is_continuous(trajectory)
    # Lengths are those of whole episodes.
    assert set(episodes_of(rollouts)["episode_lengths"]) <= {1, 3, 5}
    # Without a disturbance episodes go on from round to round.
    last = trajectory.observation[-1]
    np.testing.assert_array_equal(rollouts.collect().observation[0], last)


class InterruptedEnv(CountingEnv):
    """Raises Ctrl-C at one step, as a terminal would."""

    raise_at = 10
    calls = 0

    def step(self, action):
        self.calls += 1
        if self.calls == self.raise_at:
            raise KeyboardInterrupt
        return super().step(action)


def test_ctrl_c_leaves_fit_and_a_later_fit_works():
    env = as_vector_env(InterruptedEnv(lengths=(50,)))
    agent = trainee(env)
    rollouts = make_rollouts(env, horizon=8)
    with pytest.raises(KeyboardInterrupt):
        agent.fit(rollouts, epochs=3, verbose=0)
    assert agent.env_steps == 8
    assert agent.optimizer.iterations.numpy() == 1
    seen = []
    agent.observers.add(seen.append)
    agent.fit(rollouts, epochs=2, verbose=0)
    assert agent.env_steps == 24
    # The episode that was broken off is not taken up again.
    assert seen[0].observation[0, 0, 2] == 0
    assert all(map(is_continuous, seen))


def test_state_is_plain_and_repeats_noise_and_shuffling():
    env = counting(AutoresetMode.SAME_STEP)
    agent = make_eager_agent(PPO, env)
    rollouts = make_rollouts(env, scale_rewards=True)
    rollouts.bind(agent)
    before = [np.array(w) for w in agent.get_weights()]
    for _ in range(2):
        rollouts.refresh()
    assert_equal_weights(agent, before)
    state = rollouts.get_state()
    twin_env = counting(AutoresetMode.SAME_STEP)
    twin = make_rollouts(twin_env, scale_rewards=True, seed=9)
    twin.bind(agent)
    twin.set_state(state)
    assert twin.logs()["episode_return"] == rollouts.logs()["episode_return"]
    moments = [r.get_state()["scaler"]["moments"] for r in (rollouts, twin)]
    assert moments[0] == moments[1]
    for source in ("noise", "shuffle"):
        assert twin.get_state()[source] == state[source]
