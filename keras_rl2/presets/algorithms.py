"""All algorithms, as plain data.

One entry for each: the settings of its presets, their kinds, its defaults, and
what it can do. All lists of algorithms are made from it: those of the command
line, the tests and the site. It is written out, since the classes would import
TensorFlow; tests compare the two.

Example:

>>> ALGORITHMS["SAC"].on_policy, ALGORITHMS["SAC"].actions
(False, ('Box', 'Discrete'))
"""

import dataclasses
from collections.abc import Container
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
_UNITS = one_of("half_range", "environment")


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
        memory: Tuple of names of classes of action spaces in which it learns
            with a recurrent network. None for all that it acts in. Defaults
            to `()`.
        search: Mapping from settings to ranges. The settings that
            `keras-rl2 tune` varies. Defaults to learning rate, discount
            factor and networks.
        note: str. A few words for the list of agents. Defaults to `""`.
        page: str. Name of its page in `docs/`. Defaults to the name of the
            algorithm, in lower case.
    """

    on_policy: bool
    settings: Mapping[str, Kind]
    optimizer: Mapping[str, Any]
    offline: bool = False
    actions: tuple[str, ...] | None = None
    memory: tuple[str, ...] | None = ()
    search: Mapping[str, Any] = dataclasses.field(
        default_factory=lambda: {**_RATES, **_NETWORKS}
    )
    note: str = ""
    page: str = ""

    def learns_with_memory(self, kinds: Container[str]) -> bool:
        """Returns whether it learns with memory in a space that it acts in.

        Args:
            kinds: Container of str. Names of the classes of the action space.
        """
        return self.memory is None or any(each in kinds for each in self.memory)


_ON_POLICY = {
    "gamma": NUMBER,
    "entropy_coefficient": NUMBER,
    "value_coefficient": NUMBER,
    "normalize_advantages": FLAG,
    "max_gradient_norm": _OPTIONAL_NUMBER,
    "initial_log_std": NUMBER,
    "action_units": _UNITS,
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
_TEMPERATURE = {
    "temperature": NUMBER,
    "learn_temperature": FLAG,
    "target_entropy": _OPTIONAL_NUMBER,
    "noise_color": one_of("pink", "white"),
    "exploration": NOISE,
}
_SAC = {**_OFF_POLICY, **_TEMPERATURE}
_TD3 = {
    **_OFF_POLICY,
    "policy_delay": COUNT,
    "target_noise": NUMBER,
    "target_noise_clip": NUMBER,
    "exploration": NOISE,
}
_RATES: Mapping[str, Any] = {
    "optimizer.learning_rate": {"low": 1e-5, "high": 1e-2, "log": True},
    "agent.gamma": [0.9, 0.95, 0.98, 0.99, 0.995, 0.999],
}
_NETWORKS: Mapping[str, Any] = {
    "networks.hidden": [[64, 64], [128, 128], [256, 256]],
}
_ACTIVATION: Mapping[str, Any] = {"networks.activation": ["tanh", "relu"]}
_GAE_LAMBDA: Mapping[str, Any] = {
    "agent.gae_lambda": [0.8, 0.9, 0.92, 0.95, 0.98, 0.99, 1.0],
}
_ENTROPY: Mapping[str, Any] = {
    "agent.entropy_coefficient": {"low": 1e-8, "high": 0.1, "log": True},
}
_NORMS: Mapping[str, Any] = {
    "agent.max_gradient_norm": [0.3, 0.5, 1.0, 2.0, 5.0],
}
_SEARCH_OF_PPO: Mapping[str, Any] = {
    **_RATES,
    **_GAE_LAMBDA,
    "agent.clip_ratio": [0.1, 0.2, 0.3, 0.4],
    **_ENTROPY,
    **_NORMS,
    "dataset.horizon": [32, 64, 128, 256, 512, 1024, 2048],
    "dataset.passes": {"low": 1, "high": 20, "log": True},
    "dataset.batch_size": [32, 64, 128, 256, 512],
    **_NETWORKS,
    **_ACTIVATION,
}
_CRITICS: Mapping[str, Any] = {
    "dataset.batch_size": [64, 128, 256, 512],
    "networks.hidden": [[64, 64], [256, 256], [400, 300]],
}
_TAU: Mapping[str, Any] = {"agent.tau": [0.001, 0.005, 0.01, 0.02, 0.05]}
_NOISES: Mapping[str, Any] = {"agent.exploration": [0.05, 0.1, 0.2, 0.3, 0.5]}
_ADAM = {"name": "Adam", "learning_rate": 3e-4}
_DQN_ADAM = {"name": "Adam", "learning_rate": 5e-4}
_FAST_ADAM = {"name": "Adam", "learning_rate": 1e-3}

ALGORITHMS: Mapping[str, Algorithm] = {
    "A2C": Algorithm(
        on_policy=True,
        settings={**_ON_POLICY, "gae_lambda": NUMBER},
        optimizer=_FAST_ADAM,
        memory=None,
        search={
            **_RATES,
            **_GAE_LAMBDA,
            **_ENTROPY,
            "agent.value_coefficient": {"low": 0.1, "high": 1.0},
            **_NORMS,
            "agent.normalize_advantages": [False, True],
            "dataset.horizon": [5, 8, 16, 32, 64, 128],
            **_NETWORKS,
            **_ACTIVATION,
        },
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
        memory=None,
        search=_SEARCH_OF_PPO,
        note="for workers",
    ),
    "BehaviorCloning": Algorithm(
        on_policy=False,
        settings={
            **_WITHOUT_TARGETS,
            "initial_log_std": NUMBER,
            "action_units": _UNITS,
        },
        optimizer=_FAST_ADAM,
        offline=True,
        page="bc",
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
        memory=("Discrete",),
        note="on DQN or SAC",
    ),
    "CrossQ": Algorithm(
        on_policy=False,
        settings={**_WITHOUT_TARGETS, **_TEMPERATURE, "policy_delay": COUNT},
        optimizer={**_FAST_ADAM, "beta_1": 0.5},
        actions=("Box",),
        search={
            **_RATES,
            "agent.policy_delay": [1, 2, 3, 4],
            "dataset.batch_size": [64, 128, 256, 512],
            "networks.hidden": [[64, 64], [256, 256], [512, 512]],
        },
    ),
    "DDPG": Algorithm(
        on_policy=False,
        settings={**_OFF_POLICY, "exploration": NOISE},
        optimizer=_FAST_ADAM,
        actions=("Box",),
        search={**_RATES, **_TAU, **_NOISES, **_CRITICS},
    ),
    "DQN": Algorithm(
        on_policy=False,
        settings=_DQN,
        optimizer=_DQN_ADAM,
        actions=("Discrete",),
        memory=("Discrete",),
        search={
            **_RATES,
            "agent.double": [False, True],
            "agent.dueling": [False, True],
            "agent.max_gradient_norm": [1.0, 10.0, 100.0],
            "dataset.batch_size": [32, 64, 128, 256],
            "dataset.n_step": [1, 2, 3, 5],
            **_NETWORKS,
        },
        note="double, dueling, C51, quantile, Rainbow, R2D2",
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
        memory=None,
        search=_SEARCH_OF_PPO,
    ),
    "PQN": Algorithm(
        on_policy=True,
        settings={
            "gamma": NUMBER,
            "q_lambda": NUMBER,
            "epsilon": either(NUMBER, SCHEDULE, NONE),
            "max_gradient_norm": _OPTIONAL_NUMBER,
        },
        optimizer=_DQN_ADAM,
        actions=("Discrete",),
    ),
    "REINFORCE": Algorithm(
        on_policy=True,
        settings=_ON_POLICY,
        optimizer=_FAST_ADAM,
        memory=None,
        search={
            **_RATES,
            **_ENTROPY,
            "agent.normalize_advantages": [False, True],
            "agent.max_gradient_norm": [0.5, 1.0, 5.0],
            **_NETWORKS,
            **_ACTIVATION,
        },
    ),
    "SAC": Algorithm(
        on_policy=False,
        settings=_SAC,
        optimizer=_ADAM,
        actions=("Box", "Discrete"),
        search={**_RATES, **_TAU, **_CRITICS},
    ),
    "TD3": Algorithm(
        on_policy=False,
        settings=_TD3,
        optimizer=_FAST_ADAM,
        actions=("Box",),
        search={
            **_RATES,
            **_TAU,
            **_NOISES,
            "agent.policy_delay": [1, 2, 4],
            **_CRITICS,
        },
    ),
    "TD3BC": Algorithm(
        on_policy=False,
        settings={**_TD3, "alpha": NUMBER},
        optimizer=_ADAM,
        offline=True,
        actions=("Box",),
    ),
}
