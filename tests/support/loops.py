"""Off-policy training without `fit`."""

import tensorflow as tf


def own_loop(agent, replay, rounds):
    """Trains in a loop of one's own, a call of TensorFlow for each update."""
    update = tf.function(agent.train_step)
    minibatches = iter(replay.as_dataset(agent))
    for _ in range(rounds):
        replay.refresh()
        for _ in range(replay.updates_per_round):
            update(next(minibatches))


def on_batches(agent, replay, rounds):
    """Trains by Keras' own verb for a single update."""
    minibatches = iter(replay.as_dataset(agent))
    for _ in range(rounds):
        replay.refresh()
        for _ in range(replay.updates_per_round):
            agent.train_on_batch(next(minibatches))
