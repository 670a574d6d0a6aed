"""Agents on a device: the CPU for small networks, or as asked."""

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

from keras_rl2.training.devices import default_device
from support.processes import printed_by

VECTOR = gymnasium.spaces.Box(-1.0, 1.0, (4,), np.float32)
IMAGE = gymnasium.spaces.Box(0, 255, (36, 36, 4), np.uint8)


@pytest.mark.parametrize(
    ("space", "widths", "expected"),
    [
        (VECTOR, (256, 256), "cpu:0"),
        (VECTOR, (1024,), None),
        (gymnasium.spaces.Dict(vector=VECTOR, image=IMAGE), (64,), None),
    ],
)
def test_small_networks_stay_on_the_cpu(space, widths, expected, monkeypatch):
    assert default_device(space, widths) is None
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: ["GPU"])
    assert default_device(space, widths) == expected


@pytest.mark.slow
def test_all_of_an_agent_is_where_it_was_asked_to_be(tmp_path):
    """A second logical CPU stands for a GPU."""
    code = """
import tensorflow as tf
[cpu] = tf.config.list_physical_devices("CPU")
one = tf.config.LogicalDeviceConfiguration()
tf.config.set_logical_device_configuration(cpu, [one, one])
import keras_rl2 as rl
devices = set()
for make in (rl.PPO, rl.DQN):
    kind = rl.RolloutDataset if make.on_policy else rl.ReplayDataset
    data = kind("CartPole-v1", seed=0)
    agent = make.for_env(data.env, hidden=(8,), device="cpu:1", seed=0)
    agent.fit(data, epochs=1, verbose=0)
    agent.act(data.env.observation_space.sample())
    agent.evaluate("CartPole-v1", episodes=1)
    variables = [*agent.variables, *agent.optimizer.variables]
    devices |= {each.value.device.split(":", 4)[-1] for each in variables}
print(devices)
"""
    assert printed_by(code, tmp_path) == "{'CPU:1'}"
