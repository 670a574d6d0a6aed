"""A picture in a Dict, a mask, a memory and hybrid actions, on one PPO."""

import gymnasium as gym
import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl
from keras_rl2.spaces.trees import leaves
from support.remembering import stepwise
from support.vector_envs import MODES
from support.workshop import Workshop

LENGTH = 8
# That it is learned in.
STEPS = 150_000


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(mode, id=mode.name, marks=[pytest.mark.slow] * (k > 0))
        for k, mode in enumerate(MODES)
    ],
)
def trained(request):
    env = gym.vector.SyncVectorEnv([Workshop] * 2, autoreset_mode=request.param)
    rollouts = rl.RolloutDataset(
        env,
        horizon=2 * LENGTH,
        passes=1,
        batch_size=2 * LENGTH,
        rounds_per_epoch=1,
        sequence_length=LENGTH,
        seed=0,
    )
    agent = rl.PPO.for_env(env, memory=keras.layers.LSTMCell(8), seed=0)
    agent.compile(run_eagerly=True)
    before = agent.get_weights()
    # The environment sees to it that nothing forbidden is done.
    agent.fit(rollouts, epochs=1, verbose=0)
    return agent, rollouts, before


def test_every_weight_is_trained(trained):
    agent, _, before = trained
    for old, variable in zip(before, agent.weights, strict=True):
        new = variable.numpy()
        assert np.isfinite(new).all()
        assert (old != new).any() or not variable.trainable, variable.path


def test_sequences_equal_single_steps(trained):
    agent, rollouts, _ = trained
    trajectory = rollouts.collect()
    assert trajectory.ended.any()
    samples, _ = agent.prepare(trajectory)
    log_probs, values, _ = stepwise(agent, trajectory)
    for t in range(LENGTH):
        # Sequences of the first steps come first.
        counted = trajectory.valid[t]
        for name, ours in (("log_prob", log_probs), ("value", values)):
            theirs = samples[name][: len(counted), t]
            difference = np.abs(ours[t] - theirs)[counted]
            assert difference.max(initial=0.0) < 1e-5


def play(agent, count=6):
    """Returns observations, actions and states of a greedy game."""
    env, state, played = Workshop(), agent.initial_state(1), []
    observation, _ = env.reset(seed=3)
    for _ in range(count):
        batch = {key: each[None] for key, each in observation.items()}
        action, state = agent.act(batch, state, deterministic=True)
        played.append((batch, action, state))
        one = {key: each[0] for key, each in action.items()}
        observation, _, done, _, _ = env.step(one)
        if done:
            break
    return played


@pytest.mark.slow
def test_saved_recorded_and_exported_it_does_the_same(trained, tmp_path):
    agent, rollouts, _ = trained
    played = play(agent)
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    keras.tree.map_structure(
        np.testing.assert_array_equal, play(loaded), played
    )
    policy = agent.policy.litert()
    policy.begin()
    agent.export(tmp_path / "exported")
    exported = tf.saved_model.load(str(tmp_path / "exported"))
    state = map(tf.constant, agent.initial_state(1))
    for batch, action, after in played:
        one = policy({key: each[0] for key, each in batch.items()})
        served = exported.serve(*map(tf.constant, leaves(batch)), *state)
        state = [served[f"next_state_{k}"] for k in range(len(after))]
        for key, expected in action.items():
            np.testing.assert_allclose(one[key], expected[0], atol=1e-5)
            np.testing.assert_allclose(served[key], expected, atol=1e-5)
        np.testing.assert_allclose(state[0], after[0], atol=1e-5)
    agent.evaluate(Workshop(), episodes=3, seed=0)
    loaded.fit(rollouts, epochs=1, verbose=0)
    # Back to the agent that other tests know it with.
    rollouts.bind(agent)


@pytest.mark.learning
@pytest.mark.parametrize("seed", range(5))
def test_ppo_with_memory_learns_the_combined_task(seed):
    env = gym.vector.SyncVectorEnv([Workshop] * 16)
    rollouts = rl.RolloutDataset(
        env,
        horizon=64,
        passes=4,
        batch_size=256,
        sequence_length=LENGTH,
        seed=seed,
    )
    agent = rl.PPO.for_env(
        env,
        memory=keras.layers.LSTMCell(32),
        entropy_coefficient=0.01,
        seed=seed,
    )
    updates = STEPS // rollouts.steps_per_round * rollouts.updates_per_round
    rate = keras.optimizers.schedules.PolynomialDecay(2e-3, updates, 0.0)
    agent.compile(keras.optimizers.Adam(rate))
    agent.fit(rollouts, total_steps=STEPS, verbose=0)
    result = agent.evaluate(Workshop(), episodes=50, seed=seed)
    # Without a memory no more than a half: of the two that are not locked.
    assert result["episode_return"] >= 0.85
