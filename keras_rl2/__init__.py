"""keras_rl2: deep reinforcement learning as a Keras model.

Names are imported on first use, so that a worker process or a command that only
needs an environment does not import TensorFlow. (To load a saved agent with
`keras.models.load_model` instead of `load`, import Keras first, or access the
agent's class once: Keras must have registered it.)
"""

import importlib
import sys
from typing import TYPE_CHECKING

from keras_rl2.basics.lazy import lazy
from keras_rl2.presets.algorithms import ALGORITHMS
from keras_rl2.version import __version__

if TYPE_CHECKING:
    from keras_rl2 import agents
    from keras_rl2 import callbacks
    from keras_rl2 import data
    from keras_rl2 import distributions
    from keras_rl2 import envs
    from keras_rl2 import exploration
    from keras_rl2 import layers
    from keras_rl2 import losses
    from keras_rl2 import migrate
    from keras_rl2 import networks
    from keras_rl2 import presets
    from keras_rl2 import returns
    from keras_rl2.agents import Agent
    from keras_rl2.agents.loader import load
    from keras_rl2.agents.team import Team
    from keras_rl2.cli.training import Training
    from keras_rl2.data import EvaluationDataset
    from keras_rl2.data import Hindsight
    from keras_rl2.data import MixedDataset
    from keras_rl2.data import OfflineDataset
    from keras_rl2.data import ReplayDataset
    from keras_rl2.data import RolloutDataset
    from keras_rl2.data import TeamDataset
    from keras_rl2.data import TeamEvaluation
    from keras_rl2.export.policy_file import PolicyFile
    from keras_rl2.export.policy_file import read_manifest
    from keras_rl2.offline.recorder import record
    from keras_rl2.presets.algorithms import *  # noqa: F403
    from keras_rl2.training.many_seeds import train_seeds
    from keras_rl2.workers.local_workers import LocalWorkers
    from keras_rl2.workers.ray_workers import RayWorkers

_HOMES = {
    "keras_rl2.agents": f"Agent Team {' '.join(ALGORITHMS)}",
    "keras_rl2.agents.loader": "load",
    "keras_rl2.cli.training": "Training",
    "keras_rl2.data": "EvaluationDataset Hindsight MixedDataset OfflineDataset "
    "ReplayDataset RolloutDataset TeamDataset TeamEvaluation",
    "keras_rl2.export.policy_file": "PolicyFile read_manifest",
    "keras_rl2.offline.recorder": "record",
    "keras_rl2.training.many_seeds": "train_seeds",
    "keras_rl2.workers.local_workers": "LocalWorkers",
    "keras_rl2.workers.ray_workers": "RayWorkers",
}

__all__ = [
    *ALGORITHMS,
    "Agent",
    "EvaluationDataset",
    "Hindsight",
    "LocalWorkers",
    "MixedDataset",
    "OfflineDataset",
    "PolicyFile",
    "RayWorkers",
    "ReplayDataset",
    "RolloutDataset",
    "Team",
    "TeamDataset",
    "TeamEvaluation",
    "Training",
    "__version__",
    "agents",
    "callbacks",
    "data",
    "distributions",
    "envs",
    "exploration",
    "layers",
    "load",
    "losses",
    "migrate",
    "networks",
    "presets",
    "read_manifest",
    "record",
    "returns",
    "train_seeds",
]

__getattr__, __dir__ = lazy(__name__, __all__, _HOMES)

if "keras" in sys.modules:
    # Keras finds a saved agent's class only if it has been registered. If Keras
    # has been imported, registering it costs no import of TensorFlow.
    importlib.import_module("keras_rl2.agents")
