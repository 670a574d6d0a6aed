"""Agents whose logits and values are weights, to work out by hand."""

import keras
import numpy as np
import tensorflow as tf
from gymnasium import spaces

import keras_rl2 as rl
from support import golden


class Table(keras.layers.Layer):
    """One row of numbers for each observation: its weights are the outputs."""

    def __init__(self, rows, **kwargs):
        super().__init__(**kwargs)
        self.rows = np.array(rows, "float32")

    def build(self, input_shape):
        self.table = self.add_weight(shape=self.rows.shape, name="table")
        self.table.assign(self.rows)

    def call(self, inputs):
        return inputs @ self.table


def tabular(logits, values, make=rl.PPO, **settings):
    """Makes an agent whose logits and values are its weights."""
    count, actions = np.shape(logits)
    agent = make(
        keras.Sequential([Table(logits)]),
        keras.Sequential([Table(np.array(values)[:, None])]),
        observation_space=spaces.Discrete(count),
        action_space=spaces.Discrete(actions),
        **{
            "normalize_advantages": False,
            "max_gradient_norm": None,
            **settings,
        },
    )
    agent.compile(keras.optimizers.SGD(1.0), jit_compile=False)
    agent.optimizer.build(agent.trainable_variables)
    return agent


def a_batch(**arrays):
    batch = {
        "observation": np.arange(len(arrays["action"]), dtype="int32"),
        "weight": np.ones(len(arrays["action"]), "float32"),
        **arrays,
    }
    return {
        key: tf.constant(
            value, "int32" if key in ("observation", "action") else "float32"
        )
        for key, value in batch.items()
    }


def published_case():
    """Returns inputs, minibatch and results of Stable-Baselines3's own PPO."""
    (case,) = (
        case
        for case in golden.load_cases()
        if case["id"] == "ppo_losses/sb3_clipvf_none_norm_false"
    )
    inputs = case["inputs"]
    batch = a_batch(
        action=inputs["actions"],
        log_prob=inputs["old_log_probs"],
        advantage=inputs["advantages"],
        returns=inputs["returns"],
        value=inputs["old_values"],
    )
    return inputs, batch, case["expected"]


def make_published(inputs, **settings):
    return tabular(
        inputs["logits"],
        inputs["values"],
        clip_ratio=inputs["clip"],
        entropy_coefficient=inputs["ent_coef"],
        value_coefficient=inputs["vf_coef"],
        **settings,
    )


def terms_of(agent, batch):
    """Returns the parts of the loss of a minibatch, as floats."""
    policy, value = agent.policy_and_value(batch["observation"])
    terms = agent.loss_terms(policy, value, batch)
    return {key: float(term) for key, term in terms.items()}
