"""Stepping environments with a policy, and recording the trajectories.

Nothing here imports TensorFlow or Keras: processes that only step environments
need only this package and `keras_rl2.envs`.
"""

from typing import TYPE_CHECKING

from keras_rl2.basics.lazy import lazy

if TYPE_CHECKING:
    from keras_rl2.collecting.broken_episodes import BrokenEpisodes
    from keras_rl2.collecting.collector import Collector
    from keras_rl2.collecting.episode_collector import EpisodeCollector
    from keras_rl2.collecting.policy_actor import Actions
    from keras_rl2.collecting.policy_actor import Actor
    from keras_rl2.collecting.policy_actor import PolicyActor
    from keras_rl2.collecting.sent_policy import SendingActor
    from keras_rl2.collecting.sent_policy import SentPolicy
    from keras_rl2.collecting.trajectory import Trajectory

__all__ = [
    "Actions",
    "Actor",
    "BrokenEpisodes",
    "Collector",
    "EpisodeCollector",
    "PolicyActor",
    "SendingActor",
    "SentPolicy",
    "Trajectory",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "BrokenEpisodes": "keras_rl2.collecting.broken_episodes",
        "Collector": "keras_rl2.collecting.collector",
        "EpisodeCollector": "keras_rl2.collecting.episode_collector",
        "Actions": "keras_rl2.collecting.policy_actor",
        "Actor": "keras_rl2.collecting.policy_actor",
        "PolicyActor": "keras_rl2.collecting.policy_actor",
        "SendingActor": "keras_rl2.collecting.sent_policy",
        "SentPolicy": "keras_rl2.collecting.sent_policy",
        "Trajectory": "keras_rl2.collecting.trajectory",
    },
)
