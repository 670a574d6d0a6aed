"""Callbacks for `fit`; the callbacks of Keras work beside them."""

from keras_rl2.callbacks.checkpoint import Checkpoint
from keras_rl2.callbacks.diagnostics import Diagnostics
from keras_rl2.callbacks.diagnostics import TrainingWarning
from keras_rl2.callbacks.evaluation import Evaluation
from keras_rl2.callbacks.league import League
from keras_rl2.callbacks.optuna_pruning import OptunaPruning
from keras_rl2.callbacks.progress import Progress
from keras_rl2.callbacks.record_video import RecordVideo
from keras_rl2.callbacks.rollout_refresh import RolloutRefresh
from keras_rl2.callbacks.target_network_sync import TargetNetworkSync
from keras_rl2.callbacks.tensorboard import TensorBoard
from keras_rl2.callbacks.tracker import Tracker

__all__ = [
    "Checkpoint",
    "Diagnostics",
    "Evaluation",
    "League",
    "OptunaPruning",
    "Progress",
    "RecordVideo",
    "RolloutRefresh",
    "TargetNetworkSync",
    "TensorBoard",
    "Tracker",
    "TrainingWarning",
]
