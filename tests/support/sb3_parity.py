"""The differences of a migrated agent from Stable-Baselines3."""

import pathlib

import keras
import numpy as np
from gymnasium import spaces

import keras_rl2 as rl
from support.any_space_env import AnySpaceEnv

FOLDER = pathlib.Path(__file__).parents[1] / "migrate" / "sb3"
FOUR_NUMBERS = spaces.Box(-2.0, 2.0, (4,))
# Not symmetric, not the same in both dimensions.
ARM = spaces.Box(np.float32([-1.0, 0.0]), np.float32([0.3, 2.5]))
PICTURE = spaces.Box(0, 255, (44, 52, 3), "uint8")
#: Observations and actions of the files that are kept.
SPACES = {
    "ppo_discrete": (FOUR_NUMBERS, spaces.Discrete(3)),
    "ppo_box_relu": (spaces.Box(-1.0, 1.0, (2, 3)), ARM),
    "ppo_cnn": (PICTURE, spaces.Discrete(3)),
    "a2c_multi_binary_leaky_relu": (
        spaces.MultiDiscrete([3, 2]),
        spaces.MultiBinary(3),
    ),
    "dqn": (spaces.Discrete(5), spaces.Discrete(4)),
    "sac_elu": (FOUR_NUMBERS, ARM),
    "td3": (FOUR_NUMBERS, ARM),
}


def env_of(name):
    """Returns an environment for a file that is kept."""
    return AnySpaceEnv(*SPACES[name])


def expected(name):
    """Returns the outputs of the policy of a stored file, by their names."""
    with np.load(FOLDER / "expected.npz") as arrays:
        return {
            key.split("/")[1]: arrays[key]
            for key in arrays.files
            if key.startswith(f"{name}/")
        }


def answers(agent, given):
    """Returns the outputs of an agent for the same observations."""
    observation = given["observation"]
    found = {"greedy": agent.act(observation, deterministic=True)}
    if "value" in given:
        policy = agent.distribution(observation)
        found["value"] = agent.value(observation)
        found["log_prob"] = policy.log_prob(given["action"])
        found["entropy"] = policy.entropy()
    elif "unit_action" in given:
        action = keras.ops.convert_to_tensor(given["unit_action"])
        seen = agent.policy.encode(keras.ops.convert_to_tensor(observation))
        found["q_values"] = _beside(agent.values_of_taken(observation, action))
        found["target_q_values"] = _beside(
            critic([seen, action])[:, 0] for critic in agent.target_critics
        )
        if "log_prob" in given:
            policy = agent.distribution(observation)
            found["log_prob"] = policy.log_prob(action)
    else:
        found["q_values"] = agent(observation)
        encoded = agent.policy.encode(keras.ops.convert_to_tensor(observation))
        found["target_q_values"] = agent.target_network(encoded)
    return {name: np.asarray(value) for name, value in found.items()}


def _beside(columns):
    """Returns `[B]` of each critic as `[B, N]`."""
    return np.stack([np.asarray(column) for column in columns], -1)


def differences(agent, given):
    """Returns the largest difference of each answer.

    That of numbers above 1 is relative: they are float32 on both sides.
    """
    found = {}
    for name, ours in answers(agent, given).items():
        theirs = given[name].astype("float64")
        assert ours.shape == theirs.shape, name
        apart = np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs))
        found[name] = float(apart.max())
    return found


def load(name, path=None, **settings):
    """Returns the agent of a kept file, or of a changed copy of it."""
    path = path or FOLDER / f"{name}.zip"
    return rl.migrate.from_sb3(path, env_of(name), seed=0, **settings)
