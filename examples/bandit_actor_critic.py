"""One loss, loop and batch: expect 0.95 or more, the best arm's share, in both.

Equal gradients, equal learning; then the form that only looks like the batch,
refused. README.md in this folder says what is wrong with it. Takes 15 seconds.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # hides TensorFlow's notes

import gymnasium as gym
import keras
import numpy as np
import tensorflow as tf

import keras_rl2 as rl

SEED = 0
EPOCHS, SAMPLES = 300, 100
env = gym.make_vec("keras_rl2.envs:keras_rl2/GaussianBandit-v0", SAMPLES)


def batch_form(model, observation, action, reward, column=False):
    logits, value = model(observation)  # value is [n, 1]
    advantage = reward[:, None] - value if column else reward - value[:, 0]
    log_prob = rl.distributions.Categorical(logits).log_prob(action)  # [n]
    actor_loss = rl.losses.policy_gradient(log_prob, advantage)
    return tf.reduce_mean(actor_loss + advantage**2)


def loop_form(model, *samples):
    rows = [[x[i : i + 1] for x in samples] for i in range(SAMPLES)]
    return sum(batch_form(model, *row) for row in rows) / SAMPLES


@tf.function(autograph=False)
def gradient(form, model, *samples):
    with tf.GradientTape() as tape:
        loss = form(model, *samples)
    return tape.gradient(loss, model.trainable_weights)


for forms in ((loop_form, batch_form), (batch_form, loop_form)):
    keras.utils.set_random_seed(SEED)  # the same weights and random numbers
    x = keras.Input((2,))
    model = keras.Model(x, [keras.layers.Dense(2)(x), keras.layers.Dense(1)(x)])
    adam, norm = keras.optimizers.Adam(0.1), tf.linalg.global_norm
    env.reset(seed=SEED)
    shares, unequal = [], []
    for _ in range(EPOCHS):
        observation, _ = env.reset()
        best = tf.nn.softmax(model(observation)[0])[:, 0]
        action = np.int32(np.random.rand(SAMPLES) > best)
        reward = env.step(action)[1]
        samples = map(tf.constant, (observation, action, reward))
