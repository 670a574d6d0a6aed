"""Data: from environments to the batches of `fit`."""

from keras_rl2.collecting.collector import Collector
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.data.actors import ActorSnapshot
from keras_rl2.data.evaluation import EvaluationDataset
from keras_rl2.data.mixed import MixedDataset
from keras_rl2.data.offline import OfflineDataset
from keras_rl2.data.own_round import OwnRollout
from keras_rl2.data.packed_trajectory import unpack
from keras_rl2.data.policy_function import actions
from keras_rl2.data.policy_function import policy_function
from keras_rl2.data.prioritized_replay_buffer import PrioritizedReplayBuffer
from keras_rl2.data.replay import ReplayDataset
from keras_rl2.data.replay_buffer import ReplayBuffer
from keras_rl2.data.rollouts import RolloutDataset
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.data.round_dataset import minibatch
from keras_rl2.data.sequence_replay_buffer import SequenceReplayBuffer
from keras_rl2.data.sum_tree import SumTree

__all__ = [
    "ActorSnapshot",
    "Collector",
    "EvaluationDataset",
    "MixedDataset",
    "OfflineDataset",
    "OwnRollout",
    "PrioritizedReplayBuffer",
    "ReplayBuffer",
    "ReplayDataset",
    "RolloutDataset",
    "RoundDataset",
    "SequenceReplayBuffer",
    "SumTree",
    "Trajectory",
    "actions",
    "minibatch",
    "policy_function",
    "unpack",
]
