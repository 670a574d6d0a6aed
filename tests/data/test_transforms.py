"""Functions that change drawn minibatches, as users write them."""

import keras
import numpy as np
import pytest
from gymnasium.spaces import Box

import keras_rl2 as rl
from keras_rl2.spaces.array_spec import ArraySpec
from support.agents import OFF_POLICY_KINDS
from support.agents import make_eager_agent
from support.agents import make_replay
from support.any_space_env import AnySpaceEnv
from support.errors import raises
from support.replay_reference import part
from support.replay_reference import stream
from support.workers_here import WorkersHere

CAPACITY = 24


def with_noise(batch, steps):
    """Moves observations by noise, as an augmentation of data does."""
    noise = steps.generator.normal(size=batch["observation"].shape)
    return {**batch, "observation": batch["observation"] + np.float32(noise)}


def by_the_end(batch, steps):
    """Rewards each step by the last observation of its episode."""
    _, last = steps.episode_of(batch["index"])
    return {**batch, "reward": steps.reached(last)[:, 0]}


def in_place(batch, steps):
    """Writes to the arrays themselves, and to those that steps reached."""
    steps.reached(batch["index"])[:] = 7.0
    for array in batch.values():
        array[:] = 7
    return batch


def episodes(truth, oldest):
    """Returns the first and the last number of each stored step's episode."""
    bounds = {}
    for steps in truth:
        episode = []
        for step in steps:
            episode.append(step.index)
            stored = [each for each in episode if each >= oldest]
            bounds |= dict.fromkeys(stored, (*stored[:1], *stored[-1:]))
            episode = [] if step.ended else episode
    return bounds


@pytest.mark.parametrize("next_step", [False, True])
def test_steps_know_their_episode_and_what_they_reached(next_step):
    """Not yet full, full, and around several times."""
    generator = np.random.default_rng(2)
    trajectory, _ = stream(generator, 60, 3, next_step)
    buffer = rl.data.ReplayBuffer(
        CAPACITY, 3, ArraySpec((2,), "float32"), (), np.int32, seed=0
    )
    start = 0
    for stop in (1, 5, 8, 9, 20, 60):
        buffer.extend(part(trajectory, start, stop))
        start = stop
        truth = stream(np.random.default_rng(2), 60, 3, next_step)[1]
        truth = [[s for s in each if s.index < 3 * stop] for each in truth]
        known = {step.index: step for each in truth for step in each}
        bounds = episodes(truth, 3 * stop - CAPACITY)
        index = np.array([*bounds])
        np.testing.assert_array_equal(
            np.stack(buffer.episode_of(index), axis=1), [*bounds.values()]
        )
        np.testing.assert_array_equal(
            buffer.reached(index), [known[i].next_observation for i in index]
        )


def test_a_cut_ends_the_episode_with_the_observation_after_it():
    buffer = rl.data.ReplayBuffer(
        8, 1, ArraySpec((), "float32"), (), np.int32, seed=0
    )
    flags = [False], [False], [True]
    buffer.add([0.0], [0], [1.0], *flags, [1.0])
    buffer.cut()
    buffer.add([5.0], [0], [1.0], *flags, [6.0])
    first, last = buffer.episode_of(np.arange(2))
    assert first.tolist() == last.tolist() == [0, 1]
    assert buffer.reached(np.arange(2)).tolist() == [1.0, 6.0]


@pytest.mark.parametrize(
    ("name", "prioritized"), [("DQN", True), ("SAC", False)]
)
def test_agents_learn_from_changed_minibatches(name, prioritized):
    case = OFF_POLICY_KINDS[name]
    env = AnySpaceEnv(Box(-1.0, 1.0, (3,)), case.action_space)
    agent = make_eager_agent(case, env)
    seen = []

    def keep(batch, steps):
        seen.append({key: len(array) for key, array in batch.items()})
        return batch

    transform = [with_noise, by_the_end, keep]
    replay = make_replay(env, transform=transform, prioritized=prioritized)
    agent.fit(replay, epochs=2, verbose=0)
    # Two updates a round: prioritized minibatches are drawn one by one.
    assert len(seen) == (4 if prioritized else 2)
    assert {*seen[0]} == {*replay.sample(2), "index"}
    assert int(agent.updates) == 4


def pole(**settings):
    """Returns an agent that is not trained and a replay of its steps."""
    replay = rl.ReplayDataset("CartPole-v1", CAPACITY, 8, seed=0, **settings)
    agent = rl.DQN.for_env("CartPole-v1", hidden=(4,), seed=0)
    replay.bind(agent)
    return agent, replay


def test_what_is_stored_never_changes():
    _, replay = pole(transform=[with_noise, by_the_end, in_place])
    replay.fill(CAPACITY)
    before = replay.buffer.record()
    assert (replay.sample(64)["reward"] == 7.0).all()
    for key, array in replay.buffer.record().items():
        np.testing.assert_array_equal(array, before[key])
    # The largest return of the stored rewards is not that of the drawn ones.
    assert replay.largest_return() == np.inf


def test_draws_go_on_where_a_state_was_taken():
    _, replay = pole(transform=[with_noise])
    replay.fill(CAPACITY)
    replay.sample(5)
    state = replay.get_state()
    expected = replay.sample(5)
    _, other = pole(transform=[with_noise])
    other.set_state(state)
    for key, array in other.sample(5).items():
        np.testing.assert_array_equal(array, expected[key])


@pytest.mark.usefixtures("eagerly")
def test_workers_fill_the_replay_that_is_changed():
    agent, replay = pole(transform=[by_the_end], workers=WorkersHere(2))
    agent.fit(replay, total_steps=1100, verbose=0)
    index = np.arange(replay.buffer.steps - CAPACITY, replay.buffer.steps)
    expected = by_the_end({"index": index}, replay.buffer)["reward"]
    assert {*replay.sample(100)["reward"]} <= {*expected}


def test_a_recurrent_agent_gets_changed_sequences():
    shapes = []

    def halved(batch, steps):
        shapes.append(batch["reward"].shape)
        return {**batch, "reward": batch["reward"] / 2}

    replay = rl.ReplayDataset(
        "CartPole-v1", 200, 4, steps_per_round=16, warm_up=64, seed=0,
        sequence_length=6, burn_in=2, transform=[halved],
    )  # fmt: skip
    agent = rl.DQN.for_env(
        "CartPole-v1", hidden=(4,), memory=keras.layers.GRUCell(4), seed=0
    )
    replay.bind(agent)
    replay.fill(64)
    batch = replay.sample(3)
    assert shapes == [(3, 6)]
    assert {*batch["reward"].ravel()} <= {0.0, 0.5}


def test_rounds_of_the_graph_are_made_in_python_then():
    env = rl.envs.GraphVectorEnv("CartPole-v1", num_envs=2)
    agent = rl.DQN.for_env(env, hidden=(4,), seed=0)
    for transform in ((), [with_noise]):
        replay = rl.ReplayDataset(env, 64, 8, seed=0, transform=transform)
        replay.bind(agent)
        assert (replay.graph_rounds() is None) == bool(transform)


@pytest.mark.parametrize(
    "change",
    [
        lambda batch: None,
        lambda batch: {**batch, "reward": batch["reward"][:, None]},
        lambda batch: {**batch, "reward": batch["reward"].astype("float64")},
        lambda batch: {key: batch[key] for key in ("reward", "index")},
        lambda batch: {**batch, "own": batch["reward"]},
    ],
)
def test_a_minibatch_of_another_form_is_refused(change):
    _, replay = pole(transform=[lambda batch, steps: change(batch)])
    replay.fill(CAPACITY)
    with raises("transform to return a minibatch of the form .*reward", ""):
        replay.sample(4)


def recorded(**settings):
    """Returns 4 episodes of 5 steps; each step's observation is its number."""
    number = np.arange(20, dtype=np.float32)
    observations = np.repeat(number[:, None], 4, axis=1)
    arrays = {
        "observations": observations,
        "next_observations": observations + 1.0,
        "actions": np.zeros(20, int),
        "rewards": np.zeros(20, np.float32),
        "terminations": number % 5 == 4,
        "truncations": np.zeros(20, bool),
    }
    return rl.OfflineDataset(arrays, batch_size=8, **settings)


def test_recorded_transitions_are_changed_and_the_record_is_not():
    offline = recorded(transform=[by_the_end, with_noise], seed=4)
    agent = rl.DQN.for_env("CartPole-v1", hidden=(4,), seed=0)
    offline.bind(agent)
    batch = offline.sample(200)
    # The true last observation of each of the four episodes.
    assert {*batch["reward"]} == {5.0, 10.0, 15.0, 20.0}
    assert "index" not in batch
    other = recorded(transform=[in_place])
    other.bind(agent)
    other.sample(50)
    assert other.recorded.observation.max() == 20.0
    assert other.recorded.reward.max() == 0.0
    assert offline.largest_return() == np.inf
    mixed = rl.MixedDataset(offline, pole(transform=[in_place])[1], 0.5)
    mixed.bind(agent)
    mixed.replay.fill(CAPACITY)
    # Each part has the transforms of its own dataset.
    assert (mixed.sample(8)["reward"] == 7.0).tolist() == 4 * [0] + 4 * [1]
