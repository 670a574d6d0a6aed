"""Sequences in replay: the drawn steps, and the weights of steps."""

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.data import Trajectory
from keras_rl2.data.sequence_replay_buffer import SequenceReplayBuffer
from keras_rl2.spaces.array_spec import ArraySpec
from support.agents import make_env

ENVS, STRIDE, HORIZON, BURN_IN, LENGTH, N = 2, 2, 8, 3, 4, 2
GAMMA = 0.5


def buffer(capacity=200, seed=0, **kwargs):
    settings = {
        "sequence_length": LENGTH,
        "burn_in": BURN_IN,
        "stride": STRIDE,
        "n_step": N,
        "gamma": GAMMA,
        **kwargs,
    }
    return SequenceReplayBuffer(
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
        ("prioritized=False", {"prioritized": True}),
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
