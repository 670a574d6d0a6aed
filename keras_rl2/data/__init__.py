"""Data: from environments to the batches of `fit`."""

from typing import TYPE_CHECKING

from keras_rl2.basics.lazy import lazy

if TYPE_CHECKING:
    from keras_rl2.collecting.trajectory import Trajectory
    from keras_rl2.collecting.trajectory import unpack
    from keras_rl2.data.evaluation import EvaluationDataset
    from keras_rl2.data.hindsight import Hindsight
    from keras_rl2.data.prioritized_replay_buffer import PrioritizedReplayBuffer
    from keras_rl2.data.prioritized_replay_buffer import SumTree
    from keras_rl2.data.replay import ReplayDataset
    from keras_rl2.data.replay_buffer import ReplayBuffer
    from keras_rl2.data.rollouts import RolloutDataset
    from keras_rl2.data.round_dataset import RoundDataset
    from keras_rl2.data.sequence_replay_buffer import SequenceReplayBuffer
    from keras_rl2.data.team_dataset import TeamDataset
    from keras_rl2.data.team_evaluation import TeamEvaluation
    from keras_rl2.offline.mixed import MixedDataset
    from keras_rl2.offline.offline import OfflineDataset
    from keras_rl2.policies.actors import ActorSnapshot
    from keras_rl2.policies.agent_protocols import OwnRollout

__all__ = [
    "ActorSnapshot",
    "EvaluationDataset",
    "Hindsight",
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
    "TeamDataset",
    "TeamEvaluation",
    "Trajectory",
    "unpack",
]

__getattr__, __dir__ = lazy(
    __name__,
    __all__,
    {
        "keras_rl2.collecting.trajectory": "Trajectory unpack",
        "keras_rl2.data.evaluation": "EvaluationDataset",
        "keras_rl2.data.prioritized_replay_buffer": "SumTree",
        "keras_rl2.data.replay": "ReplayDataset",
        "keras_rl2.data.rollouts": "RolloutDataset",
        "keras_rl2.offline.mixed": "MixedDataset",
        "keras_rl2.offline.offline": "OfflineDataset",
        "keras_rl2.policies.actors": "ActorSnapshot",
        "keras_rl2.policies.agent_protocols": "OwnRollout",
    },
)
