"""Players whose episodes end apart: what is data, and what is learnt from it.

Expected numbers are hand counts, or of a plain loop over one player at a time.
"""

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.players import INTERFACES
from support.players import LENGTHS
from support.players import NAMES
from support.players import TRUNCATED
from support.players import Apart
from support.players import ApartEnv

HORIZON = 16
# Steps of players 0, 1 and 2 in 16 steps of their row.
STEPS = {
    # Games of 5 steps; player 2 comes after one of them.
    "games": (7, 16, 9),
    "supersuit": (7, 16, 10),
    # Games of 5 steps and a reset.
    "own, next step": (6, 14, 9),
    "own, same step": (7, 16, 10),
    # Episodes of 2, 5 and 3 steps and a reset.
    "NextStep": (11, 14, 12),
    "SameStep": (16, 16, 16),
    "Disabled": (16, 16, 16),
}
AGENTS = {
    "PPO": (rl.PPO, {}),
    "A2C": (rl.A2C, {}),
    "memory": (rl.PPO, {"memory": keras.layers.GRUCell(3)}),
}


@pytest.fixture(params=STEPS)
def interface(request):
    if request.param == "supersuit":
        pytest.importorskip("supersuit")
    return request.param


def episodes_of(trajectory):
    """Yields the row and the steps of each episode, whole or begun."""
    for row in range(trajectory.reward.shape[1]):
        steps = []
        for t in np.flatnonzero(trajectory.valid[:, row]):
            steps.append(t)
            if trajectory.ended[t, row]:
                yield row, steps
                steps = []
        if steps:
            yield row, steps


def collected(interface, kind=rl.PPO, **settings):
    env = INTERFACES[interface]()
    agent = kind.for_env(env, hidden=(8,), seed=0, **settings)
    rollouts = rl.RolloutDataset(
        env, horizon=HORIZON, seed=0, scale_rewards=False
    )
    rollouts.bind(agent)
    return agent, rollouts, rollouts.collect()


def test_only_steps_of_players_count(interface):
    agent, _, trajectory = collected(interface)
    each = len(NAMES)
    copies = trajectory.reward.shape[1] // each
    expected = np.repeat(STEPS[interface], copies)
    np.testing.assert_array_equal(trajectory.valid.sum(axis=0), expected)
    assert agent.env_steps == expected.sum()
    for row, steps in episodes_of(trajectory):
        player = row // copies
        seen = trajectory.observation[steps, row]
        np.testing.assert_array_equal(seen[:, 0], player)
        np.testing.assert_array_equal(seen[:, 1], np.arange(len(steps)))
        np.testing.assert_array_equal(trajectory.reward[steps, row], 1 + player)
        if trajectory.ended[steps[-1], row]:
            assert len(steps) == LENGTHS[player]
            assert trajectory.truncated[steps[-1], row] == TRUNCATED[player]
    assert not trajectory.ended[~trajectory.valid].any()


def test_logs_have_the_return_of_each_player(interface):
    _, rollouts, _ = collected(interface)
    logs = rollouts.logs()
    of_players = {k: v for k, v in logs.items() if "/" in k}
    if rollouts.env.players:
        assert of_players == {
            "episode_return/p_0": 2.0,
            "episode_return/p_1": 10.0,
            "episode_return/p_2": 9.0,
        }
    else:
        assert of_players == {}


@pytest.mark.parametrize(
    "agent",
    ["PPO", "A2C", pytest.param("memory", marks=pytest.mark.slow)],
)
def test_targets_are_those_of_each_player_alone(interface, agent):
    kind, settings = AGENTS[agent]
    agent, rollouts, trajectory = collected(interface, kind, **settings)
    samples = rollouts.prepare(trajectory)["samples"]
    shape = trajectory.reward.shape
    if agent.policy.initial_state(1):
        # [B, T] -> [T, B]
        samples = {k: np.transpose(samples[k]) for k in ("advantage", "value")}
    advantage = np.reshape(samples["advantage"], shape)
    value = np.reshape(samples["value"], shape)
    for row, steps in episodes_of(trajectory):
        player, last = trajectory.observation[steps[0], row][0], steps[-1]
        seen = [[player, time] for time in range(len(steps) + 1)]
        values = values_alone(agent, np.array(seen, np.float32))
        np.testing.assert_allclose(value[steps, row], values[:-1], atol=1e-5)
        if trajectory.terminated[last, row]:
            values[-1] = 0.0
        expected, following = [], 0.0
        for i in reversed(range(len(steps))):
            surprise = 1 + player + agent.gamma * values[i + 1] - values[i]
            following = surprise + agent.gamma * agent.gae_lambda * following
            expected.insert(0, following)
        np.testing.assert_allclose(advantage[steps, row], expected, atol=1e-4)


def values_alone(agent, observation):
    """Returns the values of an episode of one player, from its beginning."""
    if not agent.policy.initial_state(1):
        value = agent.policy_and_value(observation, len(observation), False)[1]
    else:
        begins = np.eye(1, len(observation), dtype=np.float32)
        state = agent.policy.initial_state(1)
        value = agent.run_sequences(observation[None], begins, state, False)[1]
    return keras.ops.convert_to_numpy(value).reshape(-1).copy()


def test_minibatches_hold_every_step_and_no_other(interface):
    _, rollouts, trajectory = collected(interface)
    round_ = rollouts.prepare(trajectory)
    drawn = np.unique(round_["rows"][round_["weight"] > 0])
    np.testing.assert_array_equal(drawn, np.flatnonzero(trajectory.valid))


def test_whole_episodes_are_one_of_each_player(interface):
    agent, _, trajectory = collected(interface, rl.REINFORCE)
    copies = trajectory.reward.shape[1] // len(NAMES)
    np.testing.assert_array_equal(
        trajectory.valid.sum(axis=0), np.repeat(LENGTHS, copies)
    )
    assert agent.env_steps == copies * LENGTHS.sum()


@pytest.mark.parametrize(
    "prioritized", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_replay_holds_transitions_of_one_player_each(interface, prioritized):
    env = INTERFACES[interface]()
    agent = rl.DQN.for_env(env, hidden=(8,), seed=0)
    replay = rl.ReplayDataset(
        env, n_step=3, prioritized=prioritized, warm_up=1, seed=0
    )
    replay.bind(agent)
    replay.fill(200)
    batch = replay.buffer.sample(500)
    assert set(map(tuple, batch["observation"])) == {
        (p, t) for p in range(3) for t in range(LENGTHS[p])
    }
    for seen, after, reward, discount in zip(
        *(batch[k] for k in ("observation", "next_observation")),
        *(batch[k] for k in ("reward", "discount")),
        strict=True,
    ):
        player, time = map(int, seen)
        length = min(3, LENGTHS[player] - time)
        ended = time + length == LENGTHS[player] and not TRUNCATED[player]
        assert tuple(after) == (player, time + length)
        sums = sum(agent.gamma**i for i in range(length)) * (1 + player)
        assert reward == pytest.approx(sums)
        expected = 0.0 if ended else agent.gamma**length
        assert discount == pytest.approx(expected)


def test_sequences_in_replay_pass_over_rows_that_wait(interface):
    env = INTERFACES[interface]()
    cell = keras.layers.GRUCell(3)
    agent = rl.DQN.for_env(env, hidden=(8,), memory=cell, seed=0)
    replay = rl.ReplayDataset(
        env, sequence_length=8, burn_in=4, warm_up=1, seed=0
    )
    replay.bind(agent)
    replay.fill(400)
    batch = replay.buffer.sample(200)
    seen, learnt = batch["observation"][:, :8], batch["weight"] > 0
    player, time = seen[..., 0].astype(int), seen[..., 1].astype(int)
    found = set(zip(player[learnt], time[learnt], strict=True))
    for p in range(3):
        # The memory after the last step of a truncated episode is unknown where
        # the next one has begun within that step.
        resets_within = TRUNCATED[p] and not replay.env.masks_reset_rows
        expected = range(LENGTHS[p] - resets_within)
        assert {t for q, t in found if q == p} == set(expected)
    assert (batch["begins"][:, :8][learnt] == (time[learnt] == 0)).all()
    np.testing.assert_array_equal(batch["reward"][learnt], 1.0 + player[learnt])


def test_recorded_data_is_the_steps_of_players(interface):
    data = rl.record("random", INTERFACES[interface](), 60, seed=0)
    episodes = data.recorded
    start = np.cumsum(episodes.lengths + 1) - episodes.lengths - 1
    player = episodes.observation[start, 0].astype(int)
    assert episodes.lengths.sum() == 60
    np.testing.assert_array_equal(
        episodes.returns, episodes.lengths * (1 + player)
    )
    # Those that the recording cut off are truncated, too.
    whole = episodes.lengths == LENGTHS[player]
    np.testing.assert_array_equal(
        episodes.terminated[episodes.last], whole & ~TRUNCATED[player]
    )
    assert np.count_nonzero(~whole) <= len(player) // 3


def test_evaluation_counts_the_steps_of_players(interface):
    env = INTERFACES[interface]()
    agent = rl.PPO.for_env(env, hidden=(8,), seed=0)
    results = agent.evaluate(env, episodes=12)
    assert results["episode_return"] == pytest.approx((2 + 10 + 9) / 3)
    assert results["episode_length"] == pytest.approx(10 / 3)
    if rl.envs.as_vector_env(env).players:
        assert results["episode_return/p_1"] == 10.0


def test_each_player_of_a_game_plays_equally_many_episodes():
    agent = rl.PPO.for_env(rl.envs.parallel(Apart), hidden=(8,), seed=0)
    # One episode of each row at least, also if fewer are asked for.
    results = agent.evaluate(rl.envs.parallel(Apart, 2), episodes=2)
    assert results["episode_return"] == pytest.approx(7.0)


def test_scaled_rewards_do_not_see_rows_that_wait():
    env = ApartEnv(resets_within=True)
    agent = rl.PPO.for_env(env, hidden=(8,), seed=0)
    rollouts = rl.RolloutDataset(env, horizon=HORIZON, seed=0)
    rollouts.bind(agent)
    rollouts.prepare(rollouts.collect())
    scaler = rollouts.scaler
    # All players are in the first step of their fourth game.
    np.testing.assert_allclose(scaler.returns, [1.0, 2.0, 3.0])
    assert scaler.moments.count == pytest.approx(33, abs=0.01)


@pytest.mark.slow
def test_workers_hold_games():
    replay = rl.RolloutDataset(
        lambda: rl.envs.parallel(Apart, 2),
        horizon=HORIZON,
        workers=rl.LocalWorkers(2),
        seed=0,
    )
    agent = rl.PPO.for_env(replay.env, hidden=(8,), seed=0)
    replay.bind(agent)
    trajectory = replay.collect()
    replay.close()
    expected = np.tile(np.repeat(STEPS["games"], 2), 2)
    np.testing.assert_array_equal(trajectory.valid.sum(axis=0), expected)
    assert replay.logs()["episode_return/p_2"] == 9.0
