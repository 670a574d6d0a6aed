"""Arguments that cannot be meant, by what they are given to."""

from typing import Any

import keras
import numpy as np

from support import bad_values as bad

_OF_AGENT = {
    "gamma": bad.FRACTION,
    "seed": bad.SEED,
    "name": bad.NAME,
    "dtype": ("float7", 3),
    "observation_space": bad.SPACE,
    "action_space": bad.SPACE,
}
_OF_TARGETS = {
    "max_gradient_norm": (0.0, -1.0, bad.NAN, "1", True),
    "tau": (0.0, 1.5, bad.NAN, "x", True),
    "target_every": bad.COUNT,
}
_NETWORK = ("mlp", None, 3)
_EXPLORATION = (-1.0, bad.NAN, bad.INF, "loud", True)

AGENTS: dict[str, dict[str, tuple[Any, ...]]] = {
    "PPO": {
        **_OF_AGENT,
        "actor": _NETWORK,
        "critic": ("mlp", 3),
        "clip_ratio": (*bad.WEIGHT, len),
        "value_clip_range": bad.WEIGHT,
        "normalize_advantages": bad.FLAG,
        "target_kl": bad.WEIGHT,
        "gae_lambda": (2, *bad.FRACTION),
        "entropy_coefficient": bad.WEIGHT,
        "value_coefficient": bad.WEIGHT,
        "max_gradient_norm": (0.0, -1.0, bad.NAN, "1", True),
        "initial_log_std": (*bad.NUMBER, 100.0),
        "gama": (0.9,),
    },
    "APPO": {
        "max_lag": bad.NOT_NEGATIVE,
        "clip_rho": bad.WEIGHT,
        "clip_c": bad.WEIGHT,
    },
    "A2C": {"gae_lambda": bad.FRACTION},
    "DQN": {
        **_OF_AGENT,
        **_OF_TARGETS,
        "q_network": _NETWORK,
        "double": bad.FLAG,
        "dueling": bad.FLAG,
        "distributional": bad.CHOICE,
        "atoms": (0, -1, 2.5, "51", True),
        "support": (
            *((1.0, -1.0), (0.0, 0.0), (bad.NAN, 1.0), (-1.0, bad.INF)),
            *((1.0,), ("a", "b"), (False, True), "ab", 5),
        ),
        "loss": bad.CHOICE,
        "epsilon": bad.FRACTION,
        "epsilon_spread": bad.WEIGHT,
    },
    "SAC": {
        **_OF_AGENT,
        **_OF_TARGETS,
        "critic": _NETWORK,
        "temperature": bad.SCALE,
        "learn_temperature": bad.FLAG,
        "target_entropy": (*bad.NUMBER, "auto"),
        "exploration": _EXPLORATION,
    },
    "CrossQ": {
        **_OF_AGENT,
        "critic": _NETWORK,
        "policy_delay": bad.COUNT,
        "temperature": bad.SCALE,
        "learn_temperature": bad.FLAG,
        "target_entropy": (*bad.NUMBER, "auto"),
        "exploration": _EXPLORATION,
    },
    "TD3": {
        "policy_delay": bad.COUNT,
        "target_noise": bad.WEIGHT,
        "target_noise_clip": bad.WEIGHT,
        "exploration": _EXPLORATION,
        "target_every": bad.COUNT,
    },
    "DDPG": {"target_every": bad.COUNT, "exploration": _EXPLORATION},
    "TD3BC": {"alpha": bad.WEIGHT},
    "BoxCQL": {"alpha": bad.WEIGHT, "num_samples": bad.COUNT},
    "DiscreteCQL": {"alpha": bad.WEIGHT},
    "IQL": {
        "value_network": _NETWORK,
        "expectile": (0.0, 1.0, bad.NAN, "0.7", True),
        "inverse_temperature": bad.WEIGHT,
        "max_weight": bad.SCALE,
    },
    "BehaviorCloning": {"gamma": bad.FRACTION, "actor": _NETWORK},
}
FOR_ENV = {
    "env": (None, 3, [1]),
    "hidden": bad.SIZES,
    "activation": ("loud", 3, True),
    "normalize_observations": bad.FLAG,
    "initialization": bad.CHOICE,
    "memory": ("lstm", 3, True, keras.layers.Dense(2)),
    "seed": bad.SEED,
    "clip_ratio": (-1,),
}
COMPILE = {
    "optimizer": ("adm", 3, True, None, 0.1),
    "critic_optimizer": ("adm", 3, True),
    "steps_per_execution": (*bad.COUNT, "all"),
    "max_skipped_updates": bad.COUNT,
    "jit_compile": ("yes", 3, bad.NAN),
    "run_eagerly": bad.FLAG,
    "auto_scale_loss": bad.FLAG,
    "lr": (0.1,),
}
FIT = {
    "x": (None, 3, [1], "CartPole-v1"),
    "epochs": bad.COUNT,
    "total_steps": bad.COUNT,
    "initial_epoch": bad.NOT_NEGATIVE,
    "verbose": ("x", 3, -1, 0.5, None, bad.NAN),
    "callbacks": ("x", 3, [3], ["x"], [keras.callbacks.History]),
    "validation_data": (3, [1]),
    "validation_freq": bad.COUNT,
    "shuffle": ("x",),
    "epoch": (3,),
}
EVALUATE = {
    "x": (None, 3, [1]),
    "episodes": bad.COUNT,
    "deterministic": bad.FLAG,
    "num_envs": bad.COUNT,
    "seed": bad.SEED,
    "step_timeout": bad.TIMEOUT,
    "env_kwargs": bad.MAPPING,
    "wrappers": bad.WRAPPERS,
    "verbose": ("x", 3, -1),
    "episode": (3,),
}
ACT = {
    "observation": ("x", None, [["a", "b", "c"]], {"a": 1.0}),
    "state": ("x", 3),
    "deterministic": bad.FLAG,
    "return_log_prob": bad.FLAG,
}
OF_ENVS = {
    "env": (None, 3, [1]),
    "num_envs": bad.COUNT,
    "seed": bad.SEED,
    "env_kwargs": bad.MAPPING,
    "wrappers": bad.WRAPPERS,
    "step_timeout": bad.TIMEOUT,
}
ROLLOUTS = {
    **OF_ENVS,
    "horizon": bad.COUNT,
    "passes": bad.COUNT,
    "batch_size": (*bad.COUNT, "all"),
    "rounds_per_epoch": bad.COUNT,
    "scale_rewards": bad.FLAG,
    "on_env_error": bad.CHOICE,
    "workers": ("x", 3, True),
    "sequence_length": bad.COUNT,
}
REPLAY = {
    **OF_ENVS,
    "capacity": bad.COUNT,
    "batch_size": (*bad.COUNT, "all"),
    "steps_per_round": bad.COUNT,
    "updates_per_round": bad.COUNT,
    "warm_up": bad.NOT_NEGATIVE,
    "n_step": bad.COUNT,
    "prioritized": bad.FLAG,
    "rounds_per_epoch": bad.COUNT,
    "on_env_error": bad.CHOICE,
    "workers": ("x", 3, True),
    "rounds_ahead": bad.NOT_NEGATIVE,
    "sequence_length": bad.COUNT,
    "burn_in": bad.NOT_NEGATIVE,
}
PRIORITIES = {"alpha": bad.WEIGHT, "beta": (2.0, *bad.FRACTION)}
OFFLINE = {
    "source": (None, 3),
    "batch_size": bad.COUNT,
    "n_step": bad.COUNT,
    "seed": bad.SEED,
    "updates_per_epoch": bad.COUNT,
    "best": (0.0, 1.5, bad.NAN, "x", True),
    "min_return": (bad.NAN, "x", True),
    "observation_space": bad.SPACE,
    "action_space": bad.SPACE,
    "memory_limit": bad.COUNT,
}
RECORD = {
    "policy": ("x", 3),
    "env": (None, 3),
    "steps": bad.COUNT,
    "path": (3, True),
    "seed": bad.SEED,
    "deterministic": bad.FLAG,
    "num_envs": bad.COUNT,
    "env_kwargs": bad.MAPPING,
    "wrappers": bad.WRAPPERS,
    "step": (3,),
}
WORKERS = {
    "count": bad.COUNT,
    "envs_per_worker": bad.COUNT,
    "min_workers": bad.COUNT,
    "timeout": bad.TIMEOUT,
    "start_timeout": bad.TIMEOUT,
}
BUFFER = {
    "capacity": bad.COUNT,
    "num_envs": bad.COUNT,
    "n_step": bad.COUNT,
    "gamma": bad.FRACTION,
    "seed": bad.SEED,
}
SEQUENCES = {
    "sequence_length": bad.COUNT,
    "burn_in": bad.NOT_NEGATIVE,
    "stride": bad.COUNT,
}
CALLBACKS = {
    "Checkpoint": {
        "directory": bad.PATH,
        "every_steps": bad.COUNT,
        "every_seconds": (-1, bad.NAN, "1", True),
        "keep": bad.COUNT,
        "after_save": ("x", 3),
        "clock": ("x", 3),
    },
    "Diagnostics": {
        "log_dir": (3, True),
        "every": bad.COUNT,
        "warn": bad.FLAG,
    },
    "Evaluation": {"episodes": (None, 3, "x"), "frequency": bad.COUNT},
    "OptunaPruning": {"trial": (None, 3, "x"), "monitor": (3, None)},
    "Progress": {
        "total_steps": bad.COUNT,
        "stream": ("x", 3),
        "seconds": (0, -1, bad.NAN, "1", True),
        "clock": ("x", 3),
    },
    "RecordVideo": {
        "env": (None, 3),
        "directory": bad.PATH,
        "every": bad.COUNT,
        "episodes": bad.COUNT,
        "log_dir": (3, True),
        "fps": (0, -1, bad.NAN, bad.INF, "30", True),
        "seed": bad.SEED,
        "format": bad.CHOICE,
        "max_steps": bad.COUNT,
        "env_kwargs": bad.MAPPING,
        "wrappers": bad.WRAPPERS,
    },
    "RolloutRefresh": {"rollouts": (None, 3, "x")},
    "TargetNetworkSync": {
        "tau": (0.0, -0.1, 1.5, bad.NAN, "x", True),
        "every": bad.COUNT,
        "target": (3, ["x"]),
        "source": (3, ["x"]),
    },
    "TensorBoard": {
        "log_dir": bad.PATH,
        "histogram_freq": bad.NOT_NEGATIVE,
        "write_hyper_parameters": bad.FLAG,
        "write_graph": bad.FLAG,
        "hyper_parameters": (
            *bad.MAPPING,
            *({"gamma": each} for each in ([0.9], {}, np.zeros(2))),
            {3: 0.9},
        ),
    },
    "Tracker": {
        "log": (None, 3, "x"),
        "log_settings": (3, "x", True),
    },
}
_OF_NETWORK = {
    "units": (0, -1, 2.5, "8", True, (0,), ()),
    "hidden": bad.SIZES,
    "output_gain": bad.WEIGHT,
    "initialization": bad.CHOICE,
    "seed": bad.SEED,
    "name": bad.NAME,
}
NETWORKS = {
    "mlp": {
        **_OF_NETWORK,
        "input_shape": ("x", 3.5, (0,), (-1,), (2.5,)),
        "activation": ("loud", 3, True),
        "normalize_observations": bad.FLAG,
        "scale": bad.NUMBER,
    },
    "nature_cnn": {**_OF_NETWORK, "dtype": ("uint7", 3), "scale": bad.NUMBER},
    "impala_cnn": {**_OF_NETWORK, "filters": bad.SIZES},
}

_SCALE = (-1.0, bad.NAN, bad.INF, "x", True)
ENVIRONMENTS = {
    "RewardScaler": {
        "gamma": bad.FRACTION,
        "num_envs": bad.COUNT,
        "clip": bad.SCALE,
        "epsilon": bad.SCALE,
        "max_deviations": bad.SCALE,
    },
    "RunningMoments": {"epsilon": bad.SCALE, "shape": ("x", (-1,), (1.5,))},
    "GaussianBanditEnv": {
        "means": ("x", (bad.NAN, 1.0), (), 3),
        "deviations": ("x", (-1.0, 1.0), (bad.NAN, 1.0), 3),
        "contextual": bad.FLAG,
        "reward": bad.CHOICE,
    },
    "GaussianBanditVectorEnv": {"num_envs": bad.COUNT},
    "as_vector_env": {
        "env": (None, 3),
        "num_envs": bad.COUNT,
        "env_kwargs": bad.MAPPING,
        "wrappers": bad.WRAPPERS,
    },
    "make_env": {
        "env_id": (None, 3),
        "env_kwargs": bad.MAPPING,
        "wrappers": bad.WRAPPERS,
        "render_mode": (3, True),
    },
}
EXPLORATION = {
    "GaussianNoise": {"scale": _SCALE},
    "OrnsteinUhlenbeckNoise": {
        "scale": _SCALE,
        "theta": _SCALE,
        "dt": (0.0, *_SCALE),
    },
    "exploration_noise": {"x": _EXPLORATION},
}
PRESETS = {
    "find": {"algorithm": ("PPPO", 3), "environment": ("Cart", 3)},
    "default": {"algorithm": ("PPPO", 3), "environment": (3,)},
    "available": {"environment": (3,)},
    "read": {"path": bad.PATH},
    "find_space": {"algorithm": ("PPPO", 3)},
    "read_space": {"path": bad.PATH},
    "Preset": {
        "algorithm": ("PPPO", 3),
        "environment": ("", 3),
        "total_steps": bad.NOT_NEGATIVE,
        "num_envs": bad.COUNT,
        "agent": (3, {"gama": 1}, {"gamma": "x"}, {"gamma": bad.NAN}),
        "laptop": bad.FLAG,
        "updates": bad.NOT_NEGATIVE,
    },
}
TRAINING = {
    "preset": ("CartPole-v1", None, 3),
    "env": (3,),
    "num_envs": bad.COUNT,
    "seed": bad.SEED,
}
LOAD = {"path": (None, 3, True), "custom_objects": ("x", 3)}
