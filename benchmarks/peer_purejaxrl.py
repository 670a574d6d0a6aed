r"""Runs PureJaxRL, or gymnax alone, on one case and prints one JSON line.

    python benchmarks/peer_purejaxrl.py ppo CartPole-v1 \
        --envs 2048 --steps 10000000 --purejaxrl CHECKOUT

Runs in a virtual environment of its own, never in this project's: the other
side of a ratio. Its packages, for Python 3.11:

    pip install jax==0.10.2 jaxlib==0.10.2 gymnax==1.0.1 flax==0.12.8 \
        optax==0.2.8 distrax==0.1.9 tfp-nightly==0.26.0.dev20261027 \
        flashbax==0.1.3 chex==0.1.92

CHECKOUT is a clone of https://github.com/luchris429/purejaxrl, measured at
commit 31756b1. Its agents run as they are, with the settings that it
publishes; see `adapt` for the newer packages below them. The cases:

- `ppo`: `ppo.py`; with `--seeds`, as many trainings in one program.
- `many`: the same, and `--seeds` must be given.
- `ppo_minatar`: `ppo.py` with the settings of `examples/brax_minatar.ipynb`.
  The repository has none for MinAtar besides (`ppo_minigrid.py` is for Navix,
  and stops in a debugger).
- `dqn`: `dqn.py`.
- `stepping`: environments of gymnax with random actions, without an agent.

Each run is a whole training of `--steps`, over which the learning rate decays.
`return` is the mean of the last finished episode of every environment, with
actions as they are explored, and of all runs; of `stepping`, of all episodes.
"""

import argparse
import importlib
import importlib.metadata
import json
import statistics
import sys
import time
import warnings
from pathlib import Path
from unittest.mock import MagicMock

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks.peer_sb3 import peak_rss_mib

PPO = {
    "ENV_NAME": "CartPole-v1",
    "LR": 2.5e-4,
    "NUM_ENVS": 4,
    "NUM_STEPS": 128,
    "UPDATE_EPOCHS": 4,
    "NUM_MINIBATCHES": 4,
    "GAMMA": 0.99,
    "GAE_LAMBDA": 0.95,
    "CLIP_EPS": 0.2,
    "ENT_COEF": 0.01,
    "VF_COEF": 0.5,
    "MAX_GRAD_NORM": 0.5,
    "ACTIVATION": "tanh",
    "ANNEAL_LR": True,
}
MINATAR = {
    **PPO,
    "ENV_NAME": "Breakout-MinAtar",
    "LR": 5e-3,
    "NUM_ENVS": 64,
    "NUM_MINIBATCHES": 8,
    "ACTIVATION": "relu",
}
DQN = {
    "ENV_NAME": "CartPole-v1",
    "NUM_ENVS": 10,
    "BUFFER_SIZE": 10_000,
    "BUFFER_BATCH_SIZE": 128,
    "EPSILON_START": 1.0,
    "EPSILON_FINISH": 0.05,
    "EPSILON_ANNEAL_TIME": 25e4,
    "TARGET_UPDATE_INTERVAL": 500,
    "LR": 2.5e-4,
    "LEARNING_STARTS": 10_000,
    "TRAINING_INTERVAL": 10,
    "LR_LINEAR_DECAY": False,
    "GAMMA": 0.99,
    "TAU": 1.0,
}
# The module of PureJaxRL, and its settings.
TRAININGS = {
    "ppo": ("ppo", PPO),
    "many": ("ppo", PPO),
    "ppo_minatar": ("ppo", MINATAR),
    "dqn": ("dqn", DQN),
}
PACKAGES = ("jax", "gymnax", "flax", "optax", "distrax", "flashbax")
# PureJaxRL imports them for environments and reports that are not run here.
UNUSED = ("brax", "brax.envs.wrappers.training", "navix", "wandb")


def main():
    arguments = parse()
    warnings.filterwarnings("ignore")
    make = make_stepping if arguments.case == "stepping" else make_training
    print(json.dumps(measure(*make(arguments), arguments)))


def parse():
    """Returns the arguments of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("case", choices=[*TRAININGS, "stepping"])
    parser.add_argument("env", nargs="?", help="the case's own by default")
    parser.add_argument("--purejaxrl", type=Path, metavar="CHECKOUT")
    parser.add_argument("--steps", type=int, required=True, help="of a seed")
    parser.add_argument("--envs", type=int, help="the case's own by default")
    parser.add_argument("--seeds", type=int, help="trainings side by side")
    parser.add_argument("--rate", type=float, help="the case's own by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.case == "many" and arguments.seeds is None:
        parser.error("Expected --seeds with many")
    if arguments.case == "stepping":
        arguments.env = arguments.env or "CartPole-v1"
        arguments.envs = arguments.envs or 1024
    elif arguments.purejaxrl is None:
        parser.error(f"Expected --purejaxrl with {arguments.case}")
    return arguments


def measure(function, steps, return_of, arguments):
    """Compiles a function of a key, runs it, and returns the figures."""
    import jax

    start = time.perf_counter()
    compiled = jax.jit(function).lower(jax.random.key(0)).compile()
    compile_seconds = time.perf_counter() - start
    speeds = []
    returns = []
    for run in range(arguments.runs):
        key = jax.random.key(arguments.seed + run)
        start = time.perf_counter()
        out = jax.block_until_ready(compiled(key))
        speeds.append(steps / (time.perf_counter() - start))
        returns.append(float(return_of(out)))
    return {
        "steps_per_second": statistics.median(speeds),
        "lowest": min(speeds),
        "highest": max(speeds),
        "compile_seconds": compile_seconds,
        "return": statistics.mean(returns),
        "peak_rss_mib": peak_rss_mib(),
        "steps": steps,
        "runs": arguments.runs,
        "device": jax.devices()[0].device_kind,
        "version": ", ".join(
            f"{name} {importlib.metadata.version(name)}" for name in PACKAGES
        ),
    }


def make_training(arguments):
    """Returns a training of PureJaxRL, its steps, and what reads its return."""
    import jax

    # Its modules import each other by their bare names.
    sys.path.insert(0, str(arguments.purejaxrl / "purejaxrl"))
    adapt()
    module, settings = TRAININGS[arguments.case]
    config = {**settings, "TOTAL_TIMESTEPS": arguments.steps}
    config["ENV_NAME"] = arguments.env or config["ENV_NAME"]
    config["NUM_ENVS"] = arguments.envs or config["NUM_ENVS"]
    config["LR"] = arguments.rate or config["LR"]
    train = importlib.import_module(module).make_train(config)
    # It has written how many updates there are into its settings.
    steps = config["NUM_UPDATES"] * config.get("NUM_STEPS", 1)
    steps *= config["NUM_ENVS"] * (arguments.seeds or 1)

    def train_seeds(key):
        return jax.vmap(train)(jax.random.split(key, arguments.seeds))

    def return_of(out):
        if module == "dqn":
            return out["metrics"]["returns"][..., -1].mean()
        return out["metrics"]["returned_episode_returns"][..., -1, -1, :].mean()

    return train if arguments.seeds is None else train_seeds, steps, return_of


def adapt():
    """Lets PureJaxRL of 2024 run with JAX 0.10 and gymnax 1.0.

    - `step` of gymnax returns five values again. Its `info` has but the
      discount, as in its time: what gymnax has added since would be kept in
      the rollouts and be a cost of PureJaxRL that it never had.
    - The wrappers that `dqn.py` takes from gymnax are those of PureJaxRL, from
      which they come: gymnax' own have six values by now.
    - `jax.tree_map` is `jax.tree.map`.
    - Modules for other environments and for reports need not be there.
    """
    import gymnax
    import jax
    from gymnax.wrappers import LegacyStepAPIWrapper
    from gymnax.wrappers import purerl

    class FormerSteps(LegacyStepAPIWrapper):
        def step(self, key, state, action, params=None):
            *values, info = super().step(key, state, action, params)
            return *values, {"discount": info["discount"]}

    def make(name):
        env, params = make_env(name)
        return FormerSteps(env), params

    make_env, gymnax.make = gymnax.make, make
    jax.tree_map = jax.tree.map
    for name in UNUSED:
        sys.modules[name] = MagicMock()
    wrappers = importlib.import_module("wrappers")
    purerl.LogWrapper = wrappers.LogWrapper
    purerl.FlattenObservationWrapper = wrappers.FlattenObservationWrapper


def make_stepping(arguments):
    """Returns what steps through gymnax, its steps, and its mean return."""
    import gymnax
    import jax

    env, params = gymnax.make(arguments.env)
    length = arguments.steps // arguments.envs

    def step(carry, key):
        _, state, reward_sum, episodes = carry
        keys, action_keys = jax.random.split(key, (2, arguments.envs))
        actions = jax.vmap(env.action_space(params).sample)(action_keys)
        observations, state, rewards, terminated, truncated, _ = jax.vmap(
            env.step, (0, 0, 0, None)
        )(keys, state, actions, params)
        over = terminated | truncated
        sums = reward_sum + rewards.sum(), episodes + over.sum()
        return (observations, state, *sums), None

    def run(key):
        reset_key, step_key = jax.random.split(key)
        keys = jax.random.split(reset_key, arguments.envs)
        start = *jax.vmap(env.reset, (0, None))(keys, params), 0.0, 0
        return jax.lax.scan(step, start, jax.random.split(step_key, length))[0]

    return run, length * arguments.envs, lambda out: out[2] / out[3]


if __name__ == "__main__":
    main()
