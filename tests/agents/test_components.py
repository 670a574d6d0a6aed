"""PPO with a probability ratio for each component of an action.

The agent is written as a user would, by public names alone.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

import keras_rl2 as rl
from support.agents import make_env
from support.agents import make_rollouts

PAIR = "act_multi_discrete"


class ComponentPPO(rl.PPO):
    """PPO whose ratios are those of each number of a MultiDiscrete."""

    @property
    def sample_shapes(self):
        return {"log_prob": self.action_space.shape}

    def log_prob_of(self, policy, action):
        columns = zip(policy.parts, ops.unstack(action, axis=1), strict=True)
        each = [part.log_prob(column) for part, column in columns]
        return ops.stack(each, axis=1)


def make_uniform(**settings):
    """Makes an agent with equal probabilities and values of 0."""
    env = make_env(PAIR)
    observation = keras.Input((3,))
    networks = [
        keras.Model(
            observation,
            keras.layers.Dense(units, kernel_initializer="zeros")(observation),
        )
        for units in (5, 1)
    ]
    agent = ComponentPPO(
        *networks,
        observation_space=env.observation_space,
        action_space=env.action_space,
        normalize_advantages=False,
        max_gradient_norm=None,
        **settings,
    )
    agent.compile(keras.optimizers.SGD(1.0), run_eagerly=True)
    return agent


RATIOS = np.array([[1.5, 0.5], [1.1, 0.5]], "float32")
BATCH = {
    "observation": tf.zeros((2, 3)),
    "action": tf.constant([[0, 1], [1, 2]]),
    # Each has a probability of 1/2 and of 1/3.
    "log_prob": tf.constant(np.log([[1 / 2, 1 / 3]] / RATIOS), "float32"),
    "advantage": tf.constant([1.0, -1.0]),
    "returns": tf.zeros(2),
    "value": tf.zeros(2),
}


@pytest.mark.parametrize(
    ("weight", "loss", "clipped"),
    [
        # min(r A, clip(r) A): 1.2, 0.5 with A = 1; -1.1, -0.8 with A = -1
        ([1.0, 1.0], -(1.2 + 0.5 - 1.1 - 0.8) / 4, 3 / 4),
        ([1.0, 0.0], -(1.2 + 0.5) / 2, 1.0),
    ],
)
def test_each_component_is_clipped_on_its_own(weight, loss, clipped):
    logs = make_uniform().train_step({**BATCH, "weight": tf.constant(weight)})
    assert float(logs["policy_loss"]) == pytest.approx(loss, rel=1e-5)
    assert float(logs["clip_fraction"]) == clipped
    ratios = RATIOS[np.array(weight) > 0]
    kl = np.mean(ratios - 1 - np.log(ratios))
    assert float(logs["approx_kl"]) == pytest.approx(kl, rel=1e-5)


def test_a_component_that_is_clipped_has_no_gradient():
    agent = make_uniform()
    agent.train_step({**BATCH, "weight": tf.ones(2)})
    # Of the first number -A r / 4 (1 - p) is left in the second row: 1.1 / 4.
    # Of the second number, in the first row: 0.5 / 4, and p = 1/3.
    expected = np.array(
        [*(1.1 / 4 * 0.5, -1.1 / 4 * 0.5), *(-0.5 / 12, 0.5 / 6, -0.5 / 12)]
    )
    np.testing.assert_allclose(
        agent.actor.get_weights()[1], expected, rtol=1e-5
    )


@pytest.mark.parametrize("memory", [None, "lstm"])
def test_it_trains_from_samples_of_each_component(memory):
    cell = keras.layers.LSTMCell(6) if memory else None
    env = make_env(PAIR)
    agent = ComponentPPO.for_env(
        env, hidden=(8,), memory=cell, normalize_advantages=True, seed=0
    )
    agent.compile(jit_compile=False)
    trajectories = []
    agent.observers.add(trajectories.append)
    rollouts = make_rollouts(env, batch_size=None)
    history = agent.fit(rollouts, epochs=2, verbose=0).history
    # The policy is still the one that acted.
    assert history["approx_kl"] == pytest.approx([0.0, 0.0], abs=1e-6)
    assert history["clip_fraction"] == [0.0, 0.0]
    samples, _ = agent.prepare(trajectories[-1])
    spec = agent.sample_spec(8 if memory else None)
    for name, each in spec.items():
        if name not in ("observation", "state"):
            assert samples[name].shape[1:] == each.shape, name
    assert samples["log_prob"].shape == ((2, 8, 2) if memory else (16, 2))
    if not memory:
        whole = agent.distribution(samples["observation"]).log_prob(
            samples["action"]
        )
        np.testing.assert_allclose(
            samples["log_prob"].sum(axis=1), whole, rtol=1e-5
        )
        in_chunks, _ = agent.prepare(trajectories[-1], batch_size=5)
        for name in ("log_prob", "advantage"):
            np.testing.assert_allclose(
                in_chunks[name], samples[name], rtol=1e-5, atol=1e-6
            )
