"""All algorithms, as plain data.

One entry for each: the settings of its presets, their kinds, and its
defaults. All lists of algorithms are made from it. It is written out, since
the classes would import TensorFlow; tests compare the two.

Example:

>>> sorted(name for name, kind in ALGORITHMS.items() if kind.on_policy)
['A2C', 'APPO', 'PPO', 'REINFORCE']
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from keras_rl2.presets.kinds import COUNT
from keras_rl2.presets.kinds import FLAG
from keras_rl2.presets.kinds import NOISE
from keras_rl2.presets.kinds import NONE
from keras_rl2.presets.kinds import NUMBER
from keras_rl2.presets.kinds import NUMBERS
from keras_rl2.presets.kinds import SCHEDULE
from keras_rl2.presets.kinds import Kind
from keras_rl2.presets.kinds import either
from keras_rl2.presets.kinds import one_of

_OPTIONAL_NUMBER = either(NUMBER, NONE)
_SCHEDULED = either(NUMBER, SCHEDULE)


@dataclasses.dataclass(frozen=True)
class Algorithm:
    """The properties of an algorithm, without its class.

    Attributes:
        on_policy: bool. Whether it learns from rollouts of its present policy.
        settings: Mapping from arguments of its constructor, which a preset
            may set, to their kinds.
        optimizer: Mapping. Its own optimizer: `name` and arguments.
        offline: bool. Whether it is made for recorded data. All that is not
            on-policy learns from it too. Defaults to `False`.
        actions: Tuple of names of classes of action spaces that it acts in,
            where a Box has to have finite bounds. None for all that the
            library supports. Defaults to `None`.
    """

    on_policy: bool
    settings: Mapping[str, Kind]
    optimizer: Mapping[str, Any]
    offline: bool = False
    actions: tuple[str, ...] | None = None


_ON_POLICY = {
    "gamma": NUMBER,
    "entropy_coefficient": NUMBER,
    "value_coefficient": NUMBER,
    "normalize_advantages": FLAG,
    "max_gradient_norm": _OPTIONAL_NUMBER,
    "initial_log_std": NUMBER,
}
_PPO = {
    **_ON_POLICY,
    "gae_lambda": NUMBER,
    "clip_ratio": _SCHEDULED,
    "value_clip_range": _OPTIONAL_NUMBER,
    "target_kl": _OPTIONAL_NUMBER,
}
_WITHOUT_TARGETS = {
    "gamma": NUMBER,
    "max_gradient_norm": _OPTIONAL_NUMBER,
}
_OFF_POLICY = {
    **_WITHOUT_TARGETS,
    "tau": NUMBER,
    "target_every": COUNT,
}
_DQN = {
    **_OFF_POLICY,
    "double": FLAG,
    "dueling": FLAG,
    "distributional": either(one_of("categorical", "quantile"), NONE),
    "atoms": COUNT,
    "support": NUMBERS,
    "loss": one_of("huber", "mse"),
    "epsilon": either(NUMBER, SCHEDULE, NONE),
    "epsilon_spread": NUMBER,
}
_ENTROPY = {
    "temperature": NUMBER,
    "learn_temperature": FLAG,
    "target_entropy": _OPTIONAL_NUMBER,
    "noise_color": one_of("pink", "white"),
    "exploration": NOISE,
}
_SAC = {**_OFF_POLICY, **_ENTROPY}
_TD3 = {
    **_OFF_POLICY,
    "policy_delay": COUNT,
    "target_noise": NUMBER,
    "target_noise_clip": NUMBER,
    "exploration": NOISE,
}
_ADAM = {"name": "Adam", "learning_rate": 3e-4}
_FAST_ADAM = {"name": "Adam", "learning_rate": 1e-3}

ALGORITHMS: Mapping[str, Algorithm] = {
    "A2C": Algorithm(
        on_policy=True,
        settings={**_ON_POLICY, "gae_lambda": NUMBER},
        optimizer=_FAST_ADAM,
    ),
    "APPO": Algorithm(
        on_policy=True,
        settings={
            **_PPO,
            "max_lag": either(COUNT, NONE),
            "clip_rho": NUMBER,
            "clip_c": NUMBER,
        },
        optimizer={**_ADAM, "epsilon": 1e-5},
    ),
    "BehaviorCloning": Algorithm(
        on_policy=False,
        settings={**_WITHOUT_TARGETS, "initial_log_std": NUMBER},
        optimizer=_FAST_ADAM,
        offline=True,
    ),
    # Of Discrete actions those of DQN, of Box those of SAC.
    "CQL": Algorithm(
        on_policy=False,
        settings={
            **_DQN,
            **_SAC,
            "alpha": NUMBER,
            "threshold": _OPTIONAL_NUMBER,
            "num_samples": COUNT,
        },
        optimizer=_ADAM,
        offline=True,
        actions=("Box", "Discrete"),
    ),
    "CrossQ": Algorithm(
        on_policy=False,
        settings={**_WITHOUT_TARGETS, **_ENTROPY, "policy_delay": COUNT},
        optimizer={**_FAST_ADAM, "beta_1": 0.5},
        actions=("Box",),
    ),
    "DDPG": Algorithm(
        on_policy=False,
        settings={**_OFF_POLICY, "exploration": NOISE},
        optimizer=_FAST_ADAM,
        actions=("Box",),
    ),
    "DQN": Algorithm(
        on_policy=False,
        settings=_DQN,
        optimizer={"name": "Adam", "learning_rate": 5e-4},
        actions=("Discrete",),
    ),
    "IQL": Algorithm(
        on_policy=False,
        settings={
            **_OFF_POLICY,
            "expectile": NUMBER,
            "inverse_temperature": NUMBER,
            "max_weight": NUMBER,
            "initial_log_std": NUMBER,
        },
        optimizer=_ADAM,
        offline=True,
        actions=("Box", "Discrete"),
    ),
    "PPO": Algorithm(
        on_policy=True,
        settings=_PPO,
        optimizer={**_ADAM, "epsilon": 1e-5},
    ),
    "REINFORCE": Algorithm(
        on_policy=True,
        settings=_ON_POLICY,
        optimizer=_FAST_ADAM,
    ),
    "SAC": Algorithm(
        on_policy=False,
        settings=_SAC,
        optimizer=_ADAM,
        actions=("Box", "Discrete"),
    ),
    "TD3": Algorithm(
        on_policy=False,
        settings=_TD3,
        optimizer=_FAST_ADAM,
        actions=("Box",),
    ),
    "TD3BC": Algorithm(
        on_policy=False,
        settings={**_TD3, "alpha": NUMBER},
        optimizer=_ADAM,
        offline=True,
        actions=("Box",),
    ),
}
