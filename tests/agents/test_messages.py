"""Wrong calls of public callables are answered in one line that helps."""

import gymnasium as gym
import numpy as np
import pytest

import keras_rl2 as rl


@pytest.fixture(scope="module")
def agent():
    return rl.PPO.for_env("CartPole-v1", hidden=(4,), seed=0)


class Unbounded(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)


SEEN = np.zeros(4, np.float32)
CALLS = {
    "fit(x, y)": (lambda agent: agent.fit(SEEN, SEEN), "one dataset"),
    "Checkpoint": (
        lambda agent: rl.callbacks.Checkpoint("x", every_step=1000),
        "perhaps `every_steps`",
    ),
    "TensorBoard": (
        lambda agent: rl.callbacks.TensorBoard(logdir="x"),
        "perhaps `log_dir`",
    ),
    "RecordVideo": (
        lambda agent: rl.callbacks.RecordVideo("CartPole-v1", "x", episode=1),
        "perhaps `episodes`",
    ),
    "LocalWorkers": (lambda agent: rl.LocalWorkers(counts=2), "`count`"),
    "act": (
        lambda agent: agent.act(SEEN, determinstic=True),
        "perhaps `deterministic`",
    ),
    "load": (lambda agent: rl.load("a.keras", custom_object={}), "perhaps"),
    "act((observation, info))": (
        lambda agent: agent.act((SEEN, {"lives": 3})),
        r"of the form an array. Received: \(an array",
    ),
    "act(NaN)": (
        lambda agent: agent.act(SEEN * np.nan),
        "observations that are finite",
    ),
    "no bounds": (
        lambda agent: rl.SAC.for_env(Unbounded()),
        "that SAC can act in, Box with finite bounds",
    ),
    "float actions": (
        lambda agent: rl.OfflineDataset(
            {
                "observations": np.zeros((9, 4), np.float32),
                "actions": np.full(9, 1.0),
                "rewards": np.zeros(9),
                "terminations": np.zeros(9, bool),
                "truncations": np.zeros(9, bool),
            },
            observation_space=agent.observation_space,
            action_space=agent.action_space,
        ),
        "Expected numbers of the kind of Discrete",
    ),
    "for_env(learning_rate)": (
        lambda agent: rl.PPO.for_env("CartPole-v1", learning_rate=1e-3),
        "learning rate in `agent.compile",
    ),
    "save": (lambda agent: agent.save("agent.h5"), "ends in `.keras`"),
}


@pytest.mark.parametrize("call", CALLS)
def test_messages_name_the_expected_and_the_received(agent, call):
    wrong, words = CALLS[call]
    with pytest.raises((TypeError, ValueError), match=words) as raised:
        wrong(agent)
    assert "Expected" in str(raised.value)
    assert "Received" in str(raised.value)


def test_an_agent_that_keras_quantized_is_loaded(tmp_path):
    agent = rl.PPO.for_env("CartPole-v1", hidden=(4,), seed=0)
    agent.quantize("int8")
    agent.save(tmp_path / "int8.keras")
    loaded = rl.load(tmp_path / "int8.keras")
    np.testing.assert_array_equal(
        loaded.act(SEEN, deterministic=True),
        agent.act(SEEN, deterministic=True),
    )
