"""Writes what a release saves, for the tests that a later one loads it.

    python tests/saved/make.py FOLDER

with the release installed. The folder of a release is never written again.
"""

import json
import pathlib
import sys

import keras
import numpy as np

import keras_rl2 as rl


def observations(agent):
    """Returns a few observations of the agent's space, always the same."""
    space = agent.observation_space
    space.seed(0)
    return np.stack([space.sample() for _ in range(4)])


def shared_network():
    """Makes one network of two outputs, for CartPole."""
    inputs = keras.Input((4,))
    trunk = keras.layers.Dense(8, activation="tanh")(inputs)
    outputs = keras.layers.Dense(2)(trunk), keras.layers.Dense(1)(trunk)
    return keras.Model(inputs, outputs)


def agents():
    """Yields names, agents and the ids of their environments."""
    cart, pendulum = "CartPole-v1", "Pendulum-v1"
    small = {"hidden": (8,), "seed": 0}
    linear = keras.optimizers.schedules.PolynomialDecay
    yield "ppo", cart, rl.PPO.for_env(cart, target_kl=0.05, **small)
    normalized = {"normalize_observations": True, **small}
    box = rl.PPO.for_env(
        pendulum, clip_ratio=linear(0.2, 100, 0.1), **normalized
    )
    yield "ppo_box", pendulum, box
    shared = rl.PPO(shared_network(), seed=0)
    shared.compile(keras.optimizers.Adam(1e-3))
    yield "ppo_shared", cart, shared
    yield "a2c", cart, rl.A2C.for_env(cart, **small)
    two = rl.A2C.for_env(cart, **small)
    two.compile("sgd", critic_optimizer=keras.optimizers.Adam(1e-3))
    yield "a2c_two_optimizers", cart, two
    yield "reinforce", cart, rl.REINFORCE.for_env(cart, **small)
    yield "dqn", cart, rl.DQN.for_env(cart, double=True, **small)
    atoms = {"distributional": "categorical", "atoms": 5}
    rainbow = rl.DQN.for_env(cart, dueling=True, **atoms, **small)
    yield "dqn_rainbow", cart, rainbow
    yield "sac", pendulum, rl.SAC.for_env(pendulum, **small)
    yield "sac_discrete", cart, rl.SAC.for_env(cart, **small)
    noise = rl.exploration.OrnsteinUhlenbeckNoise(0.2)
    td3 = rl.TD3.for_env(pendulum, exploration=noise, **small)
    yield "td3", pendulum, td3
    yield "ddpg", pendulum, rl.DDPG.for_env(pendulum, **small)


def dataset(agent, env):
    """Makes a small dataset."""
    if agent.on_policy:
        return rl.RolloutDataset(
            env, horizon=16, passes=1, batch_size=8, num_envs=2, seed=0
        )
    sizes = {"capacity": 256, "warm_up": 16, "rounds_per_epoch": 2}
    rounds = {"steps_per_round": 8, "updates_per_round": 4, "batch_size": 8}
    return rl.ReplayDataset(env, **sizes, **rounds, seed=0)


def main():
    """Trains each agent a little, saves it and what it does."""
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True)
    known = {"version": rl.__version__, "agents": {}}
    for name, env, agent in agents():
        agent.fit(dataset(agent, env), epochs=2, verbose=0)
        agent.save(folder / f"{name}.keras")
        batch = observations(agent)
        known["agents"][name] = {
            "class": type(agent).__name__,
            "environment": env,
            "env_steps": agent.env_steps,
            "iterations": int(agent.optimizer.iterations),
            "observation": batch.tolist(),
            "action": agent.act(batch, deterministic=True).tolist(),
        }
    text = json.dumps(known, indent=1) + "\n"
    (folder / "agents.json").write_text(text)


if __name__ == "__main__":
    main()
