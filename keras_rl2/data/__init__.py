"""Data: from environments to the batches of `fit`."""

from typing import TYPE_CHECKING

from keras_rl2.basics.lazy import lazy

if TYPE_CHECKING:
    from keras_rl2.collecting.collector import Collector
    from keras_rl2.collecting.trajectory import Trajectory
    from keras_rl2.collecting.trajectory import unpack
    from keras_rl2.data.evaluation import EvaluationDataset
    from keras_rl2.data.prioritized_replay_buffer import PrioritizedReplayBuffer
    from keras_rl2.data.replay import ReplayDataset
    from keras_rl2.data.replay_buffer import ReplayBuffer
    from keras_rl2.data.rollouts import RolloutDataset
    from keras_rl2.data.round_dataset import RoundDataset
    from keras_rl2.data.round_dataset import minibatch
    from keras_rl2.data.sequence_replay_buffer import SequenceReplayBuffer
    from keras_rl2.data.sum_tree import SumTree
    from keras_rl2.offline.mixed import MixedDataset
    from keras_rl2.offline.offline import OfflineDataset
    from keras_rl2.policies.actors import ActorSnapshot
    from keras_rl2.policies.own_round import OwnRollout
    from keras_rl2.policies.policy_function import actions
    from keras_rl2.policies.policy_function import policy_function

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

__getattr__, __dir__ = lazy(
    __name__,
    {
        "Collector": "keras_rl2.collecting.collector",
        "Trajectory": "keras_rl2.collecting.trajectory",
        "unpack": "keras_rl2.collecting.trajectory",
        "EvaluationDataset": "keras_rl2.data.evaluation",
        "ReplayDataset": "keras_rl2.data.replay",
        "RolloutDataset": "keras_rl2.data.rollouts",
        "RoundDataset": "keras_rl2.data.round_dataset",
        "minibatch": "keras_rl2.data.round_dataset",
        "MixedDataset": "keras_rl2.offline.mixed",
        "OfflineDataset": "keras_rl2.offline.offline",
        "ActorSnapshot": "keras_rl2.policies.actors",
        "OwnRollout": "keras_rl2.policies.own_round",
        "actions": "keras_rl2.policies.policy_function",
        "policy_function": "keras_rl2.policies.policy_function",
        "PrioritizedReplayBuffer": "keras_rl2.data.prioritized_replay_buffer",
        "ReplayBuffer": "keras_rl2.data.replay_buffer",
        "SequenceReplayBuffer": "keras_rl2.data.sequence_replay_buffer",
        "SumTree": "keras_rl2.data.sum_tree",
    },
)
