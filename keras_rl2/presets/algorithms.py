"""All algorithms, as plain data.

One entry for each: its default optimizer, what it can do, and what a tuner
varies. All lists of algorithms are made from it: those of the command
line, the tests and the site. It is written out, since the classes would import
TensorFlow; tests compare the two.

Example:

>>> ALGORITHMS["SAC"].on_policy, ALGORITHMS["SAC"].actions
(False, ('Box', 'Discrete'))
"""

import dataclasses
from collections.abc import Container
from collections.abc import Mapping
from typing import TYPE_CHECKING
from typing import Any

if TYPE_CHECKING:
    # Type checkers read no tables: these are `rl.PPO` and `rl.agents.PPO`.
    from keras_rl2.agents.a2c import A2C as A2C
    from keras_rl2.agents.appo import APPO as APPO
    from keras_rl2.agents.behavior_cloning import (
        BehaviorCloning as BehaviorCloning,
    )
    from keras_rl2.agents.cql import CQL as CQL
    from keras_rl2.agents.crossq import CrossQ as CrossQ
    from keras_rl2.agents.ddpg import DDPG as DDPG
    from keras_rl2.agents.dqn import DQN as DQN
    from keras_rl2.agents.iql import IQL as IQL
    from keras_rl2.agents.ppo import PPO as PPO
    from keras_rl2.agents.pqn import PQN as PQN
    from keras_rl2.agents.reinforce import REINFORCE as REINFORCE
    from keras_rl2.agents.sac import SAC as SAC
    from keras_rl2.agents.td3 import TD3 as TD3
    from keras_rl2.agents.td3bc import TD3BC as TD3BC
    from keras_rl2.agents.tqc import TQC as TQC

_ADAM: Mapping[str, Any] = {"name": "Adam", "learning_rate": 3e-4}


@dataclasses.dataclass(frozen=True)
class Algorithm:
    """The properties of an algorithm, without its class.

    Attributes:
        on_policy: bool. Whether it learns from rollouts of its present policy.
            Defaults to `False`.
        optimizer: Mapping. Its default optimizer: `name` and arguments.
            Defaults to Adam with a learning rate of 3e-4.
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
        page: str. Name of its page in `docs/`. Defaults to the name of the
            algorithm, in lower case.
        module: str. Name of its module in `keras_rl2.agents`. Defaults to the
            name of the algorithm, in lower case.
    """

    on_policy: bool = False
    optimizer: Mapping[str, Any] = dataclasses.field(
        default_factory=lambda: _ADAM
    )
    offline: bool = False
    actions: tuple[str, ...] | None = None
    memory: tuple[str, ...] | None = ()
    search: Mapping[str, Any] = dataclasses.field(
        default_factory=lambda: {**_RATES, **_NETWORKS}
    )
    page: str = ""
    module: str = ""

    def learns_with_memory(self, kinds: Container[str]) -> bool:
        """Returns whether it learns with memory in spaces of these classes."""
        return self.memory is None or any(each in kinds for each in self.memory)


_RATES: Mapping[str, Any] = {
    "optimizer.learning_rate": {"low": 1e-5, "high": 1e-2, "log": True},
    "agent.gamma": [0.9, 0.95, 0.98, 0.99, 0.995, 0.999],
}
_NETWORKS: Mapping[str, Any] = {
    "networks.hidden": [[64, 64], [128, 128], [256, 256]],
}
_GAE_LAMBDA: Mapping[str, Any] = {
    "agent.gae_lambda": [0.8, 0.9, 0.92, 0.95, 0.98, 0.99, 1.0],
}
_SEARCH_ON_POLICY: Mapping[str, Any] = {
    **_RATES,
    **_NETWORKS,
    "networks.activation": ["tanh", "relu"],
    "agent.entropy_coefficient": {"low": 1e-8, "high": 0.1, "log": True},
    "agent.max_gradient_norm": [0.3, 0.5, 1.0, 2.0, 5.0],
}
_CRITICS: Mapping[str, Any] = {
    "dataset.batch_size": [64, 128, 256, 512],
    "networks.hidden": [[64, 64], [256, 256], [400, 300]],
}
_TAU: Mapping[str, Any] = {"agent.tau": [0.001, 0.005, 0.01, 0.02, 0.05]}
_NOISES: Mapping[str, Any] = {"agent.exploration": [0.05, 0.1, 0.2, 0.3, 0.5]}
_FAST_ADAM = {"name": "Adam", "learning_rate": 1e-3}
_PPO = Algorithm(
    on_policy=True,
    optimizer={**_ADAM, "epsilon": 1e-5},
    memory=None,
    search={
        **_SEARCH_ON_POLICY,
        **_GAE_LAMBDA,
        "agent.clip_ratio": [0.1, 0.2, 0.3, 0.4],
        "dataset.horizon": [32, 64, 128, 256, 512, 1024, 2048],
        "dataset.passes": {"low": 1, "high": 20, "log": True},
        "dataset.batch_size": [32, 64, 128, 256, 512],
    },
)

ALGORITHMS: Mapping[str, Algorithm] = {
    "A2C": Algorithm(
        on_policy=True,
        optimizer=_FAST_ADAM,
        memory=None,
        search={
            **_SEARCH_ON_POLICY,
            **_GAE_LAMBDA,
            "agent.value_coefficient": {"low": 0.1, "high": 1.0},
            "agent.normalize_advantages": [False, True],
            "dataset.horizon": [5, 8, 16, 32, 64, 128],
        },
    ),
    "APPO": _PPO,
    "BehaviorCloning": Algorithm(
        optimizer=_FAST_ADAM,
        offline=True,
        page="bc",
        module="behavior_cloning",
    ),
    # It extends DQN for Discrete actions, and SAC for Box.
    "CQL": Algorithm(
        offline=True, actions=("Box", "Discrete"), memory=("Discrete",)
    ),
    "CrossQ": Algorithm(
        optimizer={**_FAST_ADAM, "beta_1": 0.5},
        actions=("Box",),
        search={**_RATES, **_CRITICS, "agent.policy_delay": [1, 2, 3, 4]},
    ),
    "DDPG": Algorithm(
        optimizer=_FAST_ADAM,
        actions=("Box",),
        memory=None,
        search={**_RATES, **_TAU, **_NOISES, **_CRITICS},
    ),
    "DQN": Algorithm(
        optimizer={
            **{"name": "Adam", "learning_rate": 2e-4},
            **{"use_ema": True, "ema_momentum": 0.999},
        },
        actions=("Discrete",),
        memory=("Discrete",),
        search={
            **_RATES,
            "agent.double": [False, True],
            "agent.dueling": [False, True],
            "agent.noisy": [False, True],
            "agent.max_gradient_norm": [1.0, 10.0, 100.0],
            "dataset.batch_size": [32, 64, 128, 256],
            "dataset.n_step": [1, 2, 3, 5],
            **_NETWORKS,
        },
    ),
    "IQL": Algorithm(offline=True, actions=("Box", "Discrete")),
    "PPO": _PPO,
    "PQN": Algorithm(
        on_policy=True,
        optimizer={**_ADAM, "learning_rate": 5e-4},
        actions=("Discrete",),
    ),
    "REINFORCE": Algorithm(
        on_policy=True,
        optimizer=_FAST_ADAM,
        memory=None,
        search={
            **_SEARCH_ON_POLICY,
            "agent.normalize_advantages": [False, True],
        },
    ),
    "SAC": Algorithm(
        actions=("Box", "Discrete"),
        memory=None,
        search={**_RATES, **_TAU, **_CRITICS},
    ),
    "TD3": Algorithm(
        optimizer=_FAST_ADAM,
        actions=("Box",),
        memory=None,
        search={
            **_RATES,
            **_TAU,
            **_NOISES,
            "agent.policy_delay": [1, 2, 4],
            **_CRITICS,
        },
    ),
    "TD3BC": Algorithm(offline=True, actions=("Box",)),
    "TQC": Algorithm(
        actions=("Box",),
        memory=None,
        search={
            **_RATES,
            **_TAU,
            **_CRITICS,
            "agent.num_critics": [2, 3, 5],
            "agent.top_quantiles_to_drop": {"low": 0, "high": 5},
        },
    ),
}

# Names of classes by names in upper case, and by short ones.
NAMES = {name.upper(): name for name in ALGORITHMS} | {"BC": "BehaviorCloning"}


def algorithm_name(algorithm: str) -> str:
    """Returns the name of an algorithm as its class has it.

    Example:

    >>> algorithm_name("ppo"), algorithm_name("bc")
    ('PPO', 'BehaviorCloning')
    """
    name = NAMES.get(str(algorithm).upper())
    if name is None:
        raise ValueError(
            f"Expected an algorithm, one of {', '.join(ALGORITHMS)}. "
            f"Received: {algorithm!r}"
        )
    return name
