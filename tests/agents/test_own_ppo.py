"""A PPO written by hand around `GradientTape`, and its move to an agent.

`docs/from_your_ppo.md` is the answer. Its code is run by `tests/docs`; here its
loop learns, and its batches and `fit` train one agent.
"""

import ast
import re
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_rl2 as rl

PAGE = Path(__file__).parents[2] / "docs" / "from_your_ppo.md"


@pytest.mark.slow
def test_the_loop_of_the_page_learns():
    """Episodes grow from about 20 steps to more than 100 in ten rounds."""
    blocks = re.findall(r"(?ms)^```python\n(.*?)^```", PAGE.read_text("utf-8"))
    steps = [node for block in blocks[:4] for node in ast.parse(block).body]
    # What is made once; the rollout, its targets and its passes are a round.
    once = (ast.Import, ast.FunctionDef, ast.Expr)
    again = [
        node
        for node in steps
        if re.search(r"= play\(|generalized_advantage|train_step\(", code(node))
        and not isinstance(node, once)
    ]
    assert len(again) == 3
    names = {}
    run([node for node in steps if node not in again], names)
    lengths = []
    for _ in range(10):
        run(again, names)
        ends = names["terminated"] + names["truncated"]
        lengths.append(len(ends) / (1 + ends.sum()))
    assert lengths[0] < 40
    assert max(lengths[-3:]) > 100


def code(node):
    return ast.unparse(node).replace("\n", " ")


def run(nodes, names):
    exec(compile(ast.Module(nodes, []), str(PAGE), "exec"), names)


@pytest.mark.usefixtures("eagerly")
def test_fit_and_own_batches_take_turns():
    agents = [
        rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0) for _ in range(2)
    ]
    for agent in agents:
        agent.compile(
            keras.optimizers.Adam(3e-3),
            critic_optimizer=keras.optimizers.Adam(3e-3),
        )
    minibatch = {
        "observation": np.ones((4, 4)),
        "action": np.array([0, 1, 1, 0]),
        "log_prob": np.full(4, np.log(0.5)),
        "advantage": np.array([1.0, -1.0, 0.5, 2.0]),
        "returns": np.array([3.0, 1.0, 2.0, 0.0]),
    }
    # Numbers of NumPy are as good as those of Keras.
    for agent, kind in zip(agents, (np.float64, np.float32), strict=True):
        agent.train_on_batch(
            {
                key: each if key == "action" else each.astype(kind)
                for key, each in minibatch.items()
            }
        )
    for one, other in zip(
        *(agent.get_weights() for agent in agents), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    rollouts = rl.RolloutDataset("CartPole-v1", horizon=32, passes=1, seed=0)
    for count in (3, 5):
        agent.fit(rollouts, epochs=1, verbose=0)
        logs = agent.train_on_batch(minibatch, return_dict=True)
        assert np.isfinite(logs["loss"])
        assert int(agent.optimizer.iterations) == count


class Counting(keras.layers.Layer):
    """Counts the passes that are recorded for training, as they are traced."""

    def __init__(self):
        super().__init__()
        self.recorded = 0

    def call(self, inputs, training=False):
        self.recorded += bool(training)
        return inputs


@pytest.mark.slow
def test_our_updates_record_one_pass():
    counting = Counting()
    cell = keras.Input((4,))
    trunk = keras.layers.Dense(8, activation="tanh")(counting(cell))
    outputs = [keras.layers.Dense(units)(trunk) for units in (2, 1)]
    agent = rl.PPO(keras.Model(cell, outputs))
    agent.compile(jit_compile=False)
    rollouts = rl.RolloutDataset(
        "CartPole-v1", horizon=8, passes=1, batch_size=None, seed=0
    )
    agent.fit(rollouts, epochs=2, verbose=0)
    # Policy and value: traced once, and never again.
    assert counting.recorded == 1
