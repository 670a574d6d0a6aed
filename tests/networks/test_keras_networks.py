"""Networks and gradients of plain Keras, as users bring them to agents."""

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl


class FirstNumber(gymnasium.Env):
    """Four numbers are observed; the sign of the first is the right action.

    One step an episode; 1 for action 1 where it is positive, or 0 where it
    is not; else -1.
    """

    observation_space = gymnasium.spaces.Box(-9.0, 9.0, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seen = self.np_random.standard_normal(4).astype("float32")
        return self.seen, {}

    def step(self, action):
        right = action == (self.seen[0] > 0.0)
        return self.seen, 1.0 if right else -1.0, True, False, {}


def states(count, seed):
    """Draws states, and the right action in each."""
    drawn = np.random.default_rng(seed).standard_normal((count, 4))
    return drawn.astype("float32"), (drawn[:, 0] > 0.0).astype("int32")


class ActionValues(tf.keras.Model):
    """Two layers and a number for each action, as a first subclass looks.

    No `**kwargs`, no `get_config`, and `call` without `training`.
    """

    def __init__(self, n_actions=2):
        super().__init__()
        self.first = tf.keras.layers.Dense(32, activation="relu")
        self.second = tf.keras.layers.Dense(32, activation="relu")
        self.values = tf.keras.layers.Dense(n_actions)

    def call(self, observation):
        return self.values(self.second(self.first(observation)))


def share_right(agent):
    """Share of states in which the greedy action is the right one."""
    seen, right = states(500, seed=99)
    return np.mean(agent.act(seen, deterministic=True) == right)


@pytest.mark.slow
def test_a_subclassed_model_learns_in_dqn():
    keras.utils.set_random_seed(0)
    agent = rl.DQN(ActionValues(), epsilon=0.2, seed=0)
    agent.compile(keras.optimizers.Adam(3e-3), jit_compile=False)
    replay = rl.ReplayDataset(
        gymnasium.vector.SyncVectorEnv([FirstNumber] * 8),
        capacity=4000,
        warm_up=256,
        updates_per_round=16,
        seed=0,
    )
    agent.fit(replay, total_steps=1280, verbose=0)
    assert share_right(agent) > 0.9
    # The target network is one of its own, and has followed.
    apart = [
        np.abs(ours - theirs).max()
        for ours, theirs in zip(
            agent.target_network.get_weights(),
            agent.q_network.get_weights(),
            strict=True,
        )
    ]
    assert 0.0 < max(apart) < 0.5


def test_a_softmax_policy_learns_by_reinforce_in_a_loop():
    keras.utils.set_random_seed(0)
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dense(2, activation="softmax"),
        ]
    )
    adam = keras.optimizers.Adam(1e-2)
    model.build((None, 4))
    adam.build(model.trainable_variables)

    @tf.function(autograph=False)
    def update(seen, right):
        # The tape is made here, the model and the optimizer are not.
        with tf.GradientTape() as tape:
            # Probabilities add up to 1: their logarithms are logits.
            policy = rl.distributions.Categorical(tf.math.log(model(seen)))
            action = tf.random.categorical(policy.log_probs, 1)[:, 0]
            hit = tf.cast(action == tf.cast(right, "int64"), "float32")
            loss = tf.reduce_mean(
                rl.losses.policy_gradient(
                    policy.log_prob(action), 2.0 * hit - 1.0
                )
            )
        gradients = tape.gradient(loss, model.trainable_variables)
        adam.apply(gradients, model.trainable_variables)
        return tf.reduce_mean(hit)

    hits = [
        float(update(*map(tf.constant, states(64, seed=step))))
        for step in range(100)
    ]
    assert np.mean(hits[:5]) < 0.75
    assert np.mean(hits[-10:]) > 0.85
