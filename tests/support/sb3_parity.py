"""How far a migrated agent is from what Stable-Baselines3 says."""

import pathlib

import gymnasium
import keras
import numpy as np

import keras_rl2 as rl
from support.any_space_env import AnySpaceEnv

FOLDER = pathlib.Path(__file__).parents[1] / "migrate" / "sb3"


def saved_names():
    """Returns the names of the files that are kept."""
    return sorted(path.stem for path in FOLDER.glob("*.zip"))


def expected(name):
    """Returns what the policy of a kept file answers, by what was asked."""
    with np.load(FOLDER / "expected.npz") as arrays:
        return {
            key.split("/")[1]: arrays[key]
            for key in arrays.files
            if key.startswith(f"{name}/")
        }


def answers(agent, given):
    """Returns what an agent says, for the same questions."""
    observation = given["observation"]
    found = {"greedy": agent.act(observation, deterministic=True)}
    if "value" in given:
        policy = agent.distribution(observation)
        found["value"] = agent.value(observation)
        found["log_prob"] = policy.log_prob(given["action"])
        found["entropy"] = policy.entropy()
    elif "unit_action" in given:
        action = keras.ops.convert_to_tensor(given["unit_action"])
        seen = agent.task.encode(keras.ops.convert_to_tensor(observation))
        found["q_values"] = _beside(agent.values_of_taken(observation, action))
        found["target_q_values"] = _beside(
            critic([seen, action])[:, 0] for critic in agent.target_critics
        )
        if "log_prob" in given:
            policy = agent.distribution(observation)
            found["log_prob"] = policy.log_prob(action)
    else:
        found["q_values"] = agent(observation)
        encoded = agent.task.encode(keras.ops.convert_to_tensor(observation))
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


def load(name):
    """Returns the agent of a kept file; see `load_from`."""
    return load_from(FOLDER / f"{name}.zip", expected(name))


def load_from(path, given):
    """Returns the agent of a file, for what its environment shows.

    Stable-Baselines3 turns pictures, so that their channels come first.
    """
    agent = rl.migrate.from_sb3(path, seed=0)
    shown = given["observation"].shape[1:]
    if shown in ((), agent.observation_space.shape):
        return agent
    space = gymnasium.spaces.Box(0, 255, shown, "uint8")
    env = AnySpaceEnv(space, agent.action_space)
    return rl.migrate.from_sb3(path, env, seed=0)
