"""Agents: each is a `keras.Model`, trained by `fit`."""

import importlib
from typing import TYPE_CHECKING

from keras_rl2.agents.agent import Agent
from keras_rl2.agents.cql import BoxCQL
from keras_rl2.agents.cql import DiscreteCQL
from keras_rl2.agents.off_policy_agent import CriticAgent
from keras_rl2.agents.off_policy_agent import OffPolicyAgent
from keras_rl2.agents.on_policy_agent import OnPolicyAgent
from keras_rl2.agents.stochastic_policy import StochasticPolicy
from keras_rl2.agents.team import Team
from keras_rl2.agents.value_policy import ValuePolicy
from keras_rl2.basics.lazy import lazy
from keras_rl2.presets.algorithms import ALGORITHMS
from keras_rl2.updates.updater import Objective

if TYPE_CHECKING:
    from keras_rl2.export.export_check import ExportCheck
    from keras_rl2.offline.offline_evaluation import OfflineEvaluation
    from keras_rl2.presets.algorithms import *  # noqa: F403

for _name, _algorithm in ALGORITHMS.items():
    # Keras finds the class of a saved agent once its module is imported.
    _module = importlib.import_module(
        f"{__name__}.{_algorithm.module or _name.lower()}"
    )
    globals()[_name] = getattr(_module, _name)

__all__ = [
    *ALGORITHMS,
    "Agent",
    "BoxCQL",
    "CriticAgent",
    "DiscreteCQL",
    "ExportCheck",
    "Objective",
    "OffPolicyAgent",
    "OfflineEvaluation",
    "OnPolicyAgent",
    "StochasticPolicy",
    "Team",
    "ValuePolicy",
]

__getattr__, __dir__ = lazy(
    __name__,
    __all__,
    {
        "keras_rl2.export.export_check": "ExportCheck",
        "keras_rl2.offline.offline_evaluation": "OfflineEvaluation",
    },
)
