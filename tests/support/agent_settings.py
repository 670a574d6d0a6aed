"""Constructor arguments of each agent, none of them at its default."""

import inspect
import re

import keras

import keras_rl2 as rl
from keras_rl2.presets.kinds import NOISE

_COMMON = {
    "gamma": 0.9,
    "seed": 3,
    "name": "my_agent",
    "dtype": "mixed_bfloat16",
}


def _decay(start, end):
    return keras.optimizers.schedules.PolynomialDecay(start, 10, end)


_TARGETS = {"tau": 0.125, "target_every": 4}


def of(make, kinds):
    """Returns arguments of an agent, none at its default, by their kinds.

    Args:
        make: The class.
        kinds: dict from names of arguments to `keras_rl2.presets.kinds`.
    """
    settings = {}
    for name, taken in inspect.signature(make).parameters.items():
        if name in kinds:
            words, accepts = kinds[name]
            choices = [*_others(taken.default), *re.findall(r"'(\w+)'", words)]
            settings[name] = next(
                each
                for each in choices
                if accepts(each) and each != taken.default
            )
        if kinds.get(name) is NOISE:
            noise = rl.exploration.OrnsteinUhlenbeckNoise(_decay(0.4, 0.2))
            settings[name] = noise
    return {**settings, **_COMMON}


def _others(default):
    """Yields values near a default."""
    if isinstance(default, bool):
        yield not default
    elif isinstance(default, int):
        yield default + 1
    elif isinstance(default, float):
        yield 0.9 * default + 0.01
    else:
        yield from (0.5, 3)


def ppo():
    return {
        **_COMMON,
        "gae_lambda": 0.8,
        "entropy_coefficient": 0.01,
        "value_coefficient": 0.25,
        "max_gradient_norm": 1.5,
        "initial_log_std": -0.5,
        "clip_ratio": _decay(0.3, 0.1),
        "value_clip_range": 0.4,
        "normalize_advantages": False,
        "target_kl": 0.05,
    }


def appo():
    return {**ppo(), "max_lag": 40, "clip_rho": 2.0, "clip_c": 1.5}


def a2c():
    settings = ppo()
    for key in ("clip_ratio", "value_clip_range", "target_kl"):
        del settings[key]
    return {**settings, "normalize_advantages": True}


def reinforce():
    settings = a2c()
    del settings["gae_lambda"]
    return settings


def sac():
    return {
        **_COMMON,
        **_TARGETS,
        "max_gradient_norm": 1.5,
        "temperature": 0.5,
        "learn_temperature": False,
        "target_entropy": -0.75,
        "noise_color": "white",
        "exploration": rl.exploration.OrnsteinUhlenbeckNoise(_decay(0.4, 0.2)),
    }


def dqn():
    return {
        **_COMMON,
        **_TARGETS,
        "max_gradient_norm": 1.5,
        "double": False,
        "dueling": True,
        "distributional": "categorical",
        "atoms": 5,
        "support": (-2.0, 3.0),
        "loss": "mse",
        "epsilon": _decay(0.5, 0.1),
        "epsilon_spread": 7.0,
    }


def ddpg():
    return {
        **_COMMON,
        **_TARGETS,
        "max_gradient_norm": 1.5,
        "exploration": rl.exploration.OrnsteinUhlenbeckNoise(_decay(0.4, 0.2)),
    }


def td3():
    return {
        **ddpg(),
        "policy_delay": 3,
        "target_noise": 0.3,
        "target_noise_clip": 0.4,
    }


def td3bc():
    return {**td3(), "alpha": 1.5}


def behavior_cloning():
    return {**_COMMON, "max_gradient_norm": 1.5, "initial_log_std": -0.5}


def discrete_cql():
    return {**dqn(), "alpha": 0.5, "threshold": 2.0}


def box_cql():
    return {**sac(), "alpha": 0.5, "threshold": 2.0, "num_samples": 3}


def iql():
    return {
        **_COMMON,
        **_TARGETS,
        "max_gradient_norm": 1.5,
        "expectile": 0.9,
        "inverse_temperature": 1.5,
        "max_weight": 20.0,
        "initial_log_std": -0.5,
    }
