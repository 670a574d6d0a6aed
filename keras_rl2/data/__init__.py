"""Data: from environments to the batches of `fit`."""

from keras_rl2.data.actors import ActorSnapshot
from keras_rl2.data.collector import Collector
from keras_rl2.data.evaluation import EvaluationDataset
from keras_rl2.data.rollouts import RolloutDataset
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.data.round_dataset import minibatch
from keras_rl2.data.trajectory import Trajectory
from keras_rl2.data.trajectory import unpack

__all__ = [
    "ActorSnapshot",
    "Collector",
    "EvaluationDataset",
    "RolloutDataset",
    "RoundDataset",
    "Trajectory",
    "minibatch",
    "unpack",
]
