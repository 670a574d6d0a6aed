"""Agents: each is a `keras.Model`, trained by `fit`."""

from typing import TYPE_CHECKING

from keras_rl2.agents.a2c import A2C
from keras_rl2.agents.agent import Agent
from keras_rl2.agents.appo import APPO
from keras_rl2.agents.behavior_cloning import BehaviorCloning
from keras_rl2.agents.cql import CQL
from keras_rl2.agents.cql import BoxCQL
from keras_rl2.agents.cql import DiscreteCQL
from keras_rl2.agents.crossq import CrossQ
from keras_rl2.agents.ddpg import DDPG
from keras_rl2.agents.dqn import DQN
from keras_rl2.agents.iql import IQL
from keras_rl2.agents.off_policy_agent import OffPolicyAgent
from keras_rl2.agents.on_policy_agent import OnPolicyAgent
from keras_rl2.agents.ppo import PPO
from keras_rl2.agents.pqn import PQN
from keras_rl2.agents.reinforce import REINFORCE
from keras_rl2.agents.sac import SAC
from keras_rl2.agents.td3 import TD3
from keras_rl2.agents.td3bc import TD3BC
from keras_rl2.agents.tqc import TQC
from keras_rl2.basics.lazy import lazy

if TYPE_CHECKING:
    from keras_rl2.export.export_check import ExportCheck
    from keras_rl2.offline.offline_evaluation import OfflineEvaluation

__all__ = [
    "A2C",
    "APPO",
    "CQL",
    "DDPG",
    "DQN",
    "IQL",
    "PPO",
    "PQN",
    "REINFORCE",
    "SAC",
    "TD3",
    "TD3BC",
    "TQC",
    "Agent",
    "BehaviorCloning",
    "BoxCQL",
    "CrossQ",
    "DiscreteCQL",
    "ExportCheck",
    "OffPolicyAgent",
    "OfflineEvaluation",
    "OnPolicyAgent",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "ExportCheck": "keras_rl2.export.export_check",
        "OfflineEvaluation": "keras_rl2.offline.offline_evaluation",
    },
)
