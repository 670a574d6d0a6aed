"""Sequences in replay: the drawn steps, and the weights of steps."""

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.data import Trajectory
from keras_rl2.data.prioritized_sequence_replay_buffer import (
    PrioritizedSequenceReplayBuffer,
)
from keras_rl2.data.sequence_replay_buffer import SequenceReplayBuffer
from keras_rl2.losses.statistics import sequence_priority
from keras_rl2.spaces.array_spec import ArraySpec
from support.agents import make_env

ENVS, STRIDE, HORIZON, BURN_IN, LENGTH, N = 2, 2, 8, 3, 4, 2
GAMMA = 0.5


def buffer(capacity=200, seed=0, kind=SequenceReplayBuffer, **kwargs):
    settings = {
        "sequence_length": LENGTH,
        "burn_in": BURN_IN,
        "stride": STRIDE,
        "n_step": N,
        "gamma": GAMMA,
        **kwargs,
    }
    return kind(
        capacity,
        ENVS,
        ArraySpec((), "float32"),
        (),
        np.int32,
        state=(ArraySpec((1,), "float32"),),
        seed=seed,
        **settings,
    )


class World:
    """Steps that can be told from their numbers, episodes of some lengths.

    Observation, action and state of step t of environment b are t + 1000 b.
    An episode ends after every step t with t % 7 == 4 + b, and is truncated
    where t is even.
    """

    def __init__(self, reset_within):
        self.reset_within = reset_within
        self.step = 0

    def ends(self, step):
        return (step[:, None] % 7) == 4 + np.arange(ENVS)

    def trajectory(self):
        step = np.arange(self.step, self.step + HORIZON + 1)
        self.step += HORIZON
        number = (step[:, None] + 1000 * np.arange(ENVS)).astype(np.float32)
        ended = self.ends(step)[:-1]
        even = (step[:-1, None] % 2 == 0) & np.ones(ENVS, bool)
        before = self.ends(step - 1)
        valid = np.ones_like(ended)
        if not self.reset_within:
            # The step after the end is the reset, and then one begins.
            valid = ~before[:-1] | (step[:-1, None] == 0)
            before = self.ends(step - 2)
        index = np.flatnonzero(ended) if self.reset_within else np.zeros(0, int)
        return Trajectory(
            observation=number,
            action=number[:-1].astype(np.int32),
            reward=number[:-1] % 1000,
            terminated=ended & ~even,
            truncated=ended & even,
            valid=valid,
            final_observation=-number[:-1].reshape(-1)[index],
            final_index=index,
            begins=(before | (step[:, None] == 0)).astype(np.float32),
            state=(number[:-1:STRIDE, :, None],),
            final_state=(np.zeros((len(index), 1), np.float32),),
        )


def filled(reset_within, rounds=4, **kwargs):
    made, world = buffer(**kwargs), World(reset_within)
    trajectories = [world.trajectory() for _ in range(rounds)]
    for each in trajectories:
        made.extend(each)
    return made, trajectories


def joined(trajectories, name):
    """Returns [steps, B] of all trajectories, the last observation too."""
    parts = [getattr(each, name)[:HORIZON] for each in trajectories]
    return np.concatenate([*parts, getattr(trajectories[-1], name)[HORIZON:]])


@pytest.mark.parametrize("reset_within", [True, False])
def test_sampled_sequences_equal_the_collected_steps(reset_within):
    made, trajectories = filled(reset_within)
    ended = joined(trajectories, "terminated") | joined(
        trajectories, "truncated"
    )
    terminated = joined(trajectories, "terminated")
    valid = joined(trajectories, "valid")
    begins = joined(trajectories, "begins")
    batch = made.sample(200)
    starts = set()
    for row, index in enumerate(batch["index"]):
        start, env = divmod(int(index), ENVS)
        starts.add(start)
        steps = np.arange(start + BURN_IN, start + BURN_IN + LENGTH + N)
        number = steps + 1000 * env
        np.testing.assert_array_equal(batch["observation"][row], number)
        np.testing.assert_array_equal(batch["begins"][row], begins[steps, env])
        before = np.arange(start, start + BURN_IN)
        np.testing.assert_array_equal(
            batch["burn_in"]["observation"][row], before + 1000 * env
        )
        np.testing.assert_array_equal(
            batch["burn_in"]["begins"][row], begins[before, env]
        )
        assert batch["state"][0][row, 0] == start + 1000 * env
        for k, step in enumerate(steps[:LENGTH]):
            assert batch["action"][row, k] == step + 1000 * env
            if not valid[step, env]:
                assert batch["weight"][row, k] == 0
                continue
            span = 1 if ended[step, env] else 2
            last = step + span - 1
            # What follows a truncation was reset away within the step.
            lost = (
                ended[last, env] and not terminated[last, env] and reset_within
            )
            assert batch["weight"][row, k] == float(not lost)
            assert batch["span"][row, k] == span
            reward = step + GAMMA * (step + 1) * (span == 2)
            assert batch["reward"][row, k] == reward
            discount = GAMMA**span * (not terminated[last, env])
            assert batch["discount"][row, k] == discount
    # All that begin at a state, and whose last observation is there.
    assert starts == set(range(0, 4 * HORIZON - 8 + 1, STRIDE))


@pytest.mark.parametrize(("kept", "oldest"), [(20, 52), (21, 52), (22, 50)])
def test_the_oldest_are_overwritten(kept, oldest):
    made, _ = filled(kept != 21, rounds=9, capacity=kept * ENVS)
    starts = {int(i) // ENVS for i in made.sample(300)["index"]}
    newest = 9 * HORIZON - (BURN_IN + LENGTH + N) + 1
    # Of 72 steps; no sequence begins at step 51, which has no state.
    assert starts == set(range(oldest, newest + 1, STRIDE))
    assert len(made) == ENVS * len(starts)


def test_a_restored_buffer_draws_the_same_sequences():
    made, _ = filled(True)
    other = buffer(seed=5)
    other.set_state(made.get_state())
    first, second = made.sample(20), other.sample(20)
    keras.tree.map_structure(np.testing.assert_array_equal, first, second)
    with pytest.raises(ValueError, match=r"burn_in=1.*burn_in=3"):
        buffer(burn_in=1).set_state(made.get_state())


def test_refusals():
    with pytest.raises(ValueError, match="capacity of at least 22"):
        buffer(capacity=21)
    empty = buffer()
    assert len(empty) == 0
    with pytest.raises(ValueError, match="from at least one"):
        empty.sample(1)
    trajectory = World(True).trajectory()
    with pytest.raises(ValueError, match="state of its policy every 2 steps"):
        empty.extend(
            Trajectory(**{**vars(trajectory), "begins": None, "state": ()})
        )
    assert empty.steps == 0


@pytest.fixture(scope="module")
def recurrent():
    return rl.DQN.for_env("CartPole-v1", memory=keras.layers.GRUCell(3), seed=0)


def replay(**kwargs):
    settings = {"capacity": 1000, "warm_up": 64, "seed": 0, **kwargs}
    return rl.ReplayDataset("CartPole-v1", **settings)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("capacity of at least", {"capacity": 50, "batch_size": 4}),
    ],
)
def test_arguments_that_a_recurrent_agent_cannot_use_are_refused(
    recurrent, said, asked
):
    with pytest.raises(ValueError, match=said):
        replay(**asked).bind(recurrent)


def test_sequences_are_for_agents_that_remember(recurrent):
    plain = rl.DQN.for_env("CartPole-v1", seed=0)
    for asked in ({"sequence_length": 4}, {"burn_in": 0}):
        with pytest.raises(ValueError, match="not recurrent"):
            replay(**asked).bind(plain)
    for asked in ("burn_in=-1", "sequence_length=0"):
        name, value = asked.split("=")
        with pytest.raises(ValueError, match=asked):
            replay(**{name: int(value)})
    data = replay()
    data.bind(plain)
    with pytest.raises(ValueError, match="the stored recurrent state"):
        data.bind(recurrent)


def test_pictures_are_stored_once():
    env = make_env("observe_image")
    agent = rl.DQN.for_env(env, memory=keras.layers.GRUCell(8), seed=0)
    data = rl.ReplayDataset(env, capacity=1000, warm_up=64, seed=0)
    data.bind(agent)
    assert data.buffer.nbytes < 1.1 * 1000 * 36 * 36


# Priorities.


def prioritized(rounds=4, capacity=200, seed=0):
    """Returns a buffer that draws by priority, with the steps of rounds."""
    kind = PrioritizedSequenceReplayBuffer
    settings = {"kind": kind, "alpha": 1.0, "beta": 1.0}
    made, world = buffer(capacity, seed, **settings), World(True)
    for _ in range(rounds):
        made.extend(world.trajectory())
    return made


def every_start(oldest, steps):
    """Returns the numbers of all sequences that can be drawn."""
    starts = np.arange(oldest, steps - (BURN_IN + LENGTH + N) + 2, STRIDE)
    return {int(s) * ENVS + b for s in starts for b in range(ENVS)}


@pytest.mark.parametrize(
    ("rounds", "capacity", "oldest"), [(4, 200, 0), (9, 20 * ENVS, 52)]
)
def test_new_sequences_are_all_drawn_alike(rounds, capacity, oldest):
    made = prioritized(rounds, capacity)
    expected = every_start(oldest, rounds * HORIZON)
    assert len(made) == len(expected)
    # A stratified draw of as many has each of equal priorities once.
    batch = made.sample(len(expected))
    assert sorted(batch["index"]) == sorted(expected)
    np.testing.assert_array_equal(np.isin(batch["weight"], [0, 1]), True)


def test_sequences_are_drawn_and_weighted_by_priority():
    made = prioritized()
    index = np.array(sorted(every_start(0, 4 * HORIZON)))
    priority = np.full(index.size, 1.0)
    priority[3] = 2.0
    made.update_priorities(index, priority)
    total = index.size + 1
    batch = made.sample(total)
    drawn, counts = np.unique(batch["index"], return_counts=True)
    np.testing.assert_array_equal(drawn, index)
    assert counts[3] == 2
    assert counts.sum() == total
    # (N P)^-1, the largest being 1: a half where the priority is 2.
    for row, weight in zip(batch["index"], batch["weight"], strict=True):
        factor = 0.5 if row == index[3] else 1.0
        np.testing.assert_allclose(weight[weight > 0], factor, rtol=1e-5)
    # It is the same sequence that is drawn without priorities.
    row = [*batch["index"]].index(index[3])
    start, env = divmod(int(index[3]), ENVS)
    first = start + BURN_IN + 1000 * env
    assert batch["observation"][row, 0] == first
    assert batch["state"][0][row, 0] == start + 1000 * env


def test_overwritten_sequences_keep_no_priority_and_take_none():
    made = prioritized(9, 20 * ENVS)
    old, world = sorted(every_start(52, 72))[:2], World(True)
    made.update_priorities(old, [5.0, 5.0])
    world.step = 9 * HORIZON
    made.extend(world.trajectory())
    made.update_priorities(old, [100.0, 100.0])
    assert made.largest_priority == pytest.approx(5.0, rel=1e-5)
    expected = every_start(60, 80)
    drawn = made.sample(400)["index"]
    assert set(drawn.tolist()) == expected
    # The new ones have the largest priority so far, those before still 1.
    new = sorted(expected - every_start(60, 72))
    share = np.isin(drawn, new).mean()
    wanted = 5.0 * len(new) / (5.0 * len(new) + len(expected) - len(new))
    assert share == pytest.approx(wanted, abs=0.01)


def test_a_restored_buffer_has_the_priorities():
    made, other = prioritized(), prioritized(0, seed=3)
    index = sorted(every_start(0, 4 * HORIZON))
    made.update_priorities(index, np.arange(len(index)) + 1.0)
    other.set_state(made.get_state())
    keras.tree.map_structure(
        np.testing.assert_array_equal, made.sample(30), other.sample(30)
    )


def test_the_priority_of_a_sequence_is_by_hand():
    error = np.array([[1.0, -3.0, 2.0], [4.0, 8.0, -5.0], [1.0, 1.0, 1.0]])
    counts = np.array([[1, 1, 1], [1, 0, 1], [0, 0, 0]], bool)
    expected = [0.9 * 3.0 + 0.1 * 2.0, 0.9 * 5.0 + 0.1 * 4.5, 0.0]
    np.testing.assert_allclose(
        sequence_priority(error, counts), expected, rtol=1e-6
    )


@pytest.mark.parametrize(
    ("kind", "env"), [(rl.DQN, "CartPole-v1"), (rl.SAC, "Pendulum-v1")]
)
def test_a_training_feeds_the_errors_of_sequences_back(kind, env):
    agent = kind.for_env(
        env, memory=keras.layers.GRUCell(4), hidden=(4,), seed=0
    )
    agent.compile(run_eagerly=True)
    replay = rl.ReplayDataset(
        env,
        capacity=1000,
        batch_size=3,
        warm_up=64,
        steps_per_round=16,
        updates_per_round=1,
        rounds_per_epoch=1,
        sequence_length=4,
        burn_in=2,
        prioritized=True,
        seed=0,
    )
    fed, found = [], []
    replay.bind(agent)
    replay.update_priorities = lambda *given: fed.append(given)
    after = agent.after_update
    agent.after_update = lambda batch, terms: (
        found.append((batch, terms)),
        after(batch, terms),
    )
    agent.fit(replay, epochs=2, verbose=0)
    replay.get_state()
    assert len(fed) == len(found) == 2
    for (index, errors), (batch, terms) in zip(fed, found, strict=True):
        np.testing.assert_array_equal(index, batch["index"])
        for row in range(3):
            each = np.abs(np.reshape(terms["td_error"], (3, 4))[row])
            each = each[np.array(batch["weight"][row]) > 0]
            expected = 0.9 * each.max() + 0.1 * each.mean()
            assert errors[row] == pytest.approx(expected, rel=1e-5)
