"""Each frame is stored once, and all observations are returned as they were."""

import dataclasses

import gymnasium
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.data import frame_stacks
from keras_rl2.data import memory
from keras_rl2.data import ring as ring_module
from keras_rl2.data.prioritized_replay_buffer import PrioritizedReplayBuffer
from keras_rl2.data.replay_buffer import ReplayBuffer
from keras_rl2.saving.checkpoint_folder import SegmentLog
from keras_rl2.spaces.array_spec import ArraySpec
from support.replay_reference import part
from support.replay_reference import stream

NUM_ENVS, SHAPE = 2, (4, 16, 16)
SPEC = ArraySpec(SHAPE, "uint8")


def make(kind=ReplayBuffer, capacity=40, **settings):
    return kind(
        capacity, NUM_ENVS, SPEC, (), np.int32, n_step=2, gamma=0.9, seed=0,
        **settings,
    )  # fmt: skip


def stacked(trajectory):
    """Returns the trajectory with stacks of random frames as observations."""
    generator = np.random.default_rng(5)
    steps = len(trajectory.reward)
    frames = generator.integers(0, 256, (steps + 1, NUM_ENVS, *SHAPE[1:]))
    final = generator.integers(0, 256, (*SHAPE[1:],))
    found = np.zeros((steps + 1, NUM_ENVS, *SHAPE), np.uint8)
    last = np.zeros((len(trajectory.final_index), *SHAPE), np.uint8)
    separate = {int(each): i for i, each in enumerate(trajectory.final_index)}
    for env in range(NUM_ENVS):
        found[0, env] = frames[0, env]
        for t in range(steps):
            number = t * NUM_ENVS + env
            moved = np.concatenate(
                [found[t, env, 1:], frames[t + 1, env][None]]
            )
            if number in separate:
                last[separate[number]] = [*found[t, env, 1:], final]
            reset = number in separate or not trajectory.valid[t, env]
            found[t + 1, env] = frames[t + 1, env] if reset else moved
    return dataclasses.replace(
        trajectory, observation=found, final_observation=last
    )


def pair(monkeypatch, kind=ReplayBuffer, **settings):
    """Returns a buffer of frames, and one of whole observations."""
    both = make(kind, **settings), make(kind, **settings)
    # No observation is large enough.
    monkeypatch.setattr(frame_stacks, "_MOST_FRAMES", 1)
    whole = make(kind, **settings)
    monkeypatch.undo()
    return both[0], whole


@pytest.mark.parametrize("next_step", [False, True])
@pytest.mark.parametrize("kind", [ReplayBuffer, PrioritizedReplayBuffer])
def test_minibatches_are_those_of_whole_observations(
    kind, next_step, tmp_path, monkeypatch
):
    """They are equal at any time: after saves, cuts and several turns."""
    monkeypatch.setattr(ring_module, "_PART_BYTES", 5000)
    generator = np.random.default_rng(1)
    trajectory = stacked(stream(generator, 200, NUM_ENVS, next_step)[0])
    frames, whole = pair(monkeypatch, kind)
    log, step = SegmentLog(tmp_path), 0
    while step < 200:
        stop = min(step + int(generator.integers(1, 30)), 200)
        chance, envs = generator.random(), generator.random(NUM_ENVS) < 0.5
        for buffer in (frames, whole):
            buffer.extend(part(trajectory, step, stop))
            if chance < 0.3:
                buffer.cut(envs)
        if chance > 0.7:
            state = frames.get_state(log)
            log.segments = log.write(f"{step:04d}")
            # Into a new buffer, and into one in use.
            for buffer in (make(kind), frames):
                buffer.set_state(state, SegmentLog(tmp_path, log.segments))
                frames = buffer
        elif chance > 0.5:
            again = make(kind)
            again.set_state(frames.get_state())
            frames = again
        step = stop
        if len(whole):
            batch = whole.sample(64)
            np.testing.assert_equal(frames.sample(64), batch)
            index = batch["index"]
            for each, other in zip(
                frames.episode_of(index), whole.episode_of(index), strict=True
            ):
                np.testing.assert_array_equal(each, other)
                np.testing.assert_array_equal(
                    frames.reached(each), whole.reached(each)
                )
    assert frames.nbytes < whole.nbytes


def images(shape, seed=2):
    """Returns random images."""
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def test_a_frame_of_a_long_episode_is_stored_once():
    steps = 400
    plain, _ = stream(np.random.default_rng(1), steps, NUM_ENVS, False)
    frames = images((NUM_ENVS, steps + 4, *SHAPE[1:]))
    never = np.zeros((steps, NUM_ENVS), np.bool_)
    windows = [frames[:, t : t + 4] for t in range(steps + 1)]
    trajectory = dataclasses.replace(
        plain,
        observation=np.array(windows),
        terminated=never,
        truncated=never,
        final_observation=np.zeros((0, *SHAPE), np.uint8),
        final_index=np.zeros(0, np.int64),
    )
    buffer = make(capacity=NUM_ENVS * steps)
    buffer.extend(trajectory)
    numbers = 64
    assert buffer.nbytes / buffer.capacity < np.prod(SHAPE[1:]) + numbers


def test_images_that_are_no_stacks_are_stored_whole(monkeypatch):
    plain, _ = stream(np.random.default_rng(1), 30, NUM_ENVS, False)
    observation = images((31, NUM_ENVS, *SHAPE))
    trajectory = dataclasses.replace(
        plain,
        observation=observation,
        final_observation=images((len(plain.final_index), *SHAPE)),
    )
    buffer = make(capacity=60)
    monkeypatch.setattr(memory, "available_memory", lambda: 50_000)
    with pytest.raises(MemoryError, match="observation of 60 transitions"):
        buffer.extend(trajectory)
    assert len(buffer) == buffer.steps == 0
    monkeypatch.undo()
    buffer.extend(trajectory)
    batch = buffer.sample(64)
    step, env = np.divmod(batch["index"], NUM_ENVS)
    np.testing.assert_equal(batch["observation"], observation[step, env])
    assert buffer.nbytes > 60 * np.prod(SHAPE)


def frames_env():
    """Returns an environment of images, stacked by Gymnasium."""
    env = gymnasium.make("CartPole-v1", render_mode=None)
    env = gymnasium.wrappers.TransformObservation(
        env,
        lambda each: (
            abs(each[0]) * 5000 + np.arange(256).reshape(16, 16)
        ).astype(np.uint8),
        gymnasium.spaces.Box(0, 255, (16, 16), np.uint8),
    )
    return gymnasium.wrappers.FrameStackObservation(env, 4)


def train(folder=None, epochs=2, **settings):
    """Trains on stacks of frames; returns weights and the dataset."""
    env = gymnasium.vector.SyncVectorEnv([frames_env] * 2)
    replay = rl.ReplayDataset(
        env, capacity=80, warm_up=32, batch_size=8, steps_per_round=16,
        rounds_per_epoch=4, seed=0, **settings,
    )  # fmt: skip
    agent = rl.DQN.for_env(env, hidden=(8,), seed=0)
    # DQN's own optimizer averages the weights at the end of the first run.
    agent.compile(keras.optimizers.Adam(1e-3))
    callbacks = [rl.callbacks.Checkpoint(folder)] if folder else []
    agent.fit(replay, epochs=epochs, callbacks=callbacks, verbose=0)
    return agent.get_weights(), replay


@pytest.mark.parametrize("prioritized", [False, True])
def test_training_and_resuming_are_those_of_whole_observations(
    prioritized, tmp_path, monkeypatch
):
    train(tmp_path, epochs=1, prioritized=prioritized)
    resumed, frames = train(tmp_path, prioritized=prioritized)
    monkeypatch.setattr(frame_stacks, "_MOST_FRAMES", 1)
    weights, whole = train(prioritized=prioritized)
    np.testing.assert_equal(resumed, weights)
    assert frames.buffer.nbytes < 0.5 * whole.buffer.nbytes
