"""One loss, loop and batch: expect 0.95 or more, the best arm's share, in both.

Then what only looks like the batch form, refused. See README.md. 15 seconds.
"""

import keras_rl2 as rl
import keras
import numpy as np
import tensorflow as tf

SEED, EPOCHS, SAMPLES = 0, 300, 100


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


for form, other in ((loop_form, batch_form), (batch_form, loop_form)):
    keras.utils.set_random_seed(SEED)  # the same weights and random numbers
    rng = np.random.default_rng(SEED)
    x = keras.Input((2,))
    model = keras.Model(x, [keras.layers.Dense(2)(x), keras.layers.Dense(1)(x)])
    adam, history = keras.optimizers.Adam(0.1), []
    for _ in range(EPOCHS):
        pays = rng.normal((10.0, 0.0), (15.0, 1.0), (SAMPLES, 2))
        seen = tf.constant(pays, tf.float32)
        action = tf.random.categorical(model(seen)[0], 1)[:, 0]
        samples = [seen, action, tf.cast(action == 0, tf.float32)]
        ours, theirs = (gradient(f, model, *samples) for f in (form, other))
        adam.apply(ours, model.trainable_weights)
        gap = [a - b for a, b in zip(ours, theirs, strict=True)]
        off = np.divide(*map(tf.linalg.global_norm, (gap, ours)))
        history.append((np.mean(samples[-1]), off))
    share, off = np.mean(history[-10:], axis=0)[0], np.max(history, axis=0)[1]
    print(f"{form.__name__}: share {share:.3f}, gradients differ by {off:.0e}")
try:
    batch_form(model, *samples, column=True)
except ValueError as error:
    print(f"[n, 1] times [n]: {error}")
