"""What a minibatch says is a constant: only the forward pass is trained."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from support.agents import ACTOR_CRITICS
from support.agents import EITHER_KIND
from support.minibatches import small_agent
from support.tabular import make_published
from support.tabular import published_case
from support.tabular import terms_of


@pytest.mark.rotate(name=EITHER_KIND)
@pytest.mark.parametrize("settings", [{}, {"normalize_advantages": True}])
@pytest.mark.parametrize("name", ACTOR_CRITICS)
def test_no_gradient_through_what_was_prepared(name, settings):
    """Not through advantages, nor old log-probabilities, values, returns."""
    agent, batch = small_agent(ACTOR_CRITICS[name], **settings)
    held = ("advantage", "log_prob", "value", "returns")
    for key in held:
        assert np.any(batch[key]), key
    with tf.GradientTape() as tape:
        tape.watch([batch[key] for key in held])
        policy, value = agent.policy_and_value(
            batch["observation"], training=True
        )
        loss = agent.loss_terms(policy, value, batch)["policy_loss"]
    slopes = tape.gradient(loss, [batch[key] for key in held])
    assert [slope is None or not np.any(slope) for slope in slopes] == [
        True
    ] * len(held)


@pytest.mark.parametrize(("share", "stops"), [(1.45, False), (1.55, True)])
def test_updates_stop_at_one_and_a_half_times_the_target(share, stops):
    inputs, batch, _ = published_case()
    divergence = terms_of(make_published(inputs), batch)["approx_kl"]
    agent = make_published(inputs, target_kl=divergence / share)
    agent.compile(keras.optimizers.SGD(0.1), jit_compile=False)
    agent.optimizer.build(agent.trainable_variables)
    before = agent.get_weights()
    agent.train_step(batch)
    moved = any(
        np.any(new != old)
        for new, old in zip(agent.get_weights(), before, strict=True)
    )
    assert moved != stops
