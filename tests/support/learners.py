"""Trainings by several learners, beside those by one on the same batches.

`python learners.py FOLDER` prints their outcomes with two devices as JSON. It
configures the devices before TensorFlow starts, which a test cannot do.
"""

import contextlib
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

from support.agents import KINDS
from support.agents import make_env
from support.agents import make_replay
from support.agents import make_rollouts
from support.agents import weights_of
from support.structured_envs import MASKED_ACTIONS
from support.structured_envs import MaskedEnv
from support.structured_envs import batch_of
from support.structured_envs import vector

UPDATES = 20

# Name: agent, pair of spaces, its settings, those of the dataset.
VARIANTS = {
    "PPO normalized": (
        "PPO",
        "act_box",
        {"normalize_observations": True, "target_kl": 0.02},
        {},
    ),
    "PPO masked": ("PPO", "masks", {}, {}),
    "PPO with memory": (
        "PPO",
        "act_discrete",
        {"memory": "gru"},
        {"horizon": 16, "sequence_length": 4, "batch_size": 16},
    ),
    "DQN prioritized": (
        "DQN",
        "act_discrete",
        {"double": True, "dueling": True},
        {"prioritized": True, "n_step": 3},
    ),
}
for name, case in KINDS.items():
    VARIANTS[name] = (name, case.pairs[0], {}, {})


def make(name, seed=0):
    """Makes an agent of `VARIANTS`, and its dataset with a seed."""
    kind, pair, settings, data = VARIANTS[name]
    case = KINDS[kind]
    env = environment(pair)
    settings = {"hidden": (8,), "seed": 0, **settings}
    if "memory" in settings:
        settings["memory"] = keras.layers.GRUCell(4)
    agent = case.make.for_env(env, **settings)
    # Of Adam, a gradient and twice that gradient are the same.
    optimizer = keras.optimizers.SGD(0.1)
    agent.compile(optimizer, jit_compile=False)
    if case.on_policy:
        # Of 22 samples, minibatches have seven or eight.
        dealt = {"horizon": 11, "passes": 4, "batch_size": 8}
        dataset = make_rollouts(env, **{**dealt, "seed": seed, **data})
    else:
        drawn = {"updates_per_round": 10, "seed": seed, **data}
        dataset = make_replay(env, **drawn)
    return agent, dataset


def environment(pair):
    """Makes an environment for a name of spaces."""
    if pair == "masks":
        return vector(lambda: MaskedEnv(MASKED_ACTIONS["discrete"]))
    return make_env(pair)


def epochs(dataset):
    return -(-UPDATES // dataset.updates_per_round)


def train(name, scope=None, seed=0):
    """Trains an agent that was made within a scope."""
    with scope or contextlib.nullcontext():
        agent, dataset = make(name, seed)
    before = weights_of(agent)
    history = agent.fit(dataset, epochs=epochs(dataset), verbose=0).history
    return agent, before, history


def difference(one, other):
    """Returns by how much the weights of two agents differ at most."""
    pairs = zip(one, other, strict=True)
    return max(float(np.max(np.abs(a - b), initial=0.0)) for a, b in pairs)


def of_two_devices(strategy, name, folder):
    """Trains by one and by two devices, and compares."""
    one, before, logs = train(name)
    two, _, logs_of_two = train(name, strategy.scope())
    each_device = [
        strategy.experimental_local_results(variable.value)
        for variable in (*two.variables, *two.optimizer.variables)
    ]
    path = str(folder / f"{name}.keras")
    two.save(path)
    loaded = keras.models.load_model(path)
    _, pair, _, _ = VARIANTS[name]
    observations = batch_of(environment(pair).observation_space, 8)
    acted = [
        agent.act(observations, deterministic=True) for agent in (two, loaded)
    ]
    trained = [
        index
        for index, weight in enumerate(two.weights)
        if any(weight is each for each in two.trainable_variables)
    ]
    return {
        "updates": int(two.optimizer.iterations.numpy()),
        "difference": difference(weights_of(one), weights_of(two)),
        "moved": difference(
            [before[i] for i in trained], [weights_of(two)[i] for i in trained]
        ),
        "optimizer": difference(
            [each.numpy() for each in one.optimizer.variables],
            [each.numpy() for each in two.optimizer.variables],
        ),
        "devices": difference(
            [copies[0].numpy() for copies in each_device],
            [copies[1].numpy() for copies in each_device],
        ),
        "logs": max(
            float(np.max(np.abs(np.subtract(logs[key], logs_of_two[key]))))
            for key in one.statistics.names
        ),
        "skipped": [
            sum(each["skipped_updates"]) for each in (logs, logs_of_two)
        ],
        "loaded acts alike": bool(np.array_equal(*acted)),
    }


def left_over(strategy):
    """Returns the message about minibatches that cannot be divided."""
    with strategy.scope():
        agent, _ = make("PPO")
    try:
        agent.fit(make_rollouts(make_env(), batch_size=5), verbose=0)
    except ValueError as error:
        return str(error)
    return ""


def main():
    folder = Path(sys.argv[1])
    [device] = tf.config.list_physical_devices("CPU")
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(device, two)
    # Only one: a second one's messages would be taken for the first one's.
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    results = {
        name: of_two_devices(strategy, name, folder) for name in VARIANTS
    }
    print(json.dumps({**results, "left over": left_over(strategy)}))


if __name__ == "__main__":
    main()
