"""Environments: one interface over all of them, and reward scaling.

Nothing here imports TensorFlow or Keras, so that worker processes stay light.
"""

from typing import TYPE_CHECKING

from keras_rl2.basics.lazy import lazy

if TYPE_CHECKING:
    from keras_rl2.envs.action_mask import ActionMask
    from keras_rl2.envs.adapt import as_vector_env
    from keras_rl2.envs.errors import MismatchError
    from keras_rl2.envs.errors import WorkerError
    from keras_rl2.envs.games import Games
    from keras_rl2.envs.games import parallel
    from keras_rl2.envs.graph.graph_env import GraphEnv
    from keras_rl2.envs.making import EnvWrapper
    from keras_rl2.envs.making import atari
    from keras_rl2.envs.making import make_env
    from keras_rl2.envs.reward_scaler import RewardScaler
    from keras_rl2.envs.turn_games import TurnGames
    from keras_rl2.envs.turn_games import turn_based
    from keras_rl2.envs.vector_env import VectorEnvAdapter
    from keras_rl2.graph.graph_vector_env import GraphVectorEnv

__all__ = [
    "ActionMask",
    "EnvWrapper",
    "Games",
    "GraphEnv",
    "GraphVectorEnv",
    "MismatchError",
    "RewardScaler",
    "TurnGames",
    "VectorEnvAdapter",
    "WorkerError",
    "as_vector_env",
    "atari",
    "make_env",
    "parallel",
    "turn_based",
]

__getattr__, __dir__ = lazy(
    __name__,
    __all__,
    {
        "keras_rl2.envs.adapt": "as_vector_env",
        "keras_rl2.envs.errors": "MismatchError WorkerError",
        "keras_rl2.envs.games": "Games parallel",
        "keras_rl2.envs.graph.graph_env": "GraphEnv",
        "keras_rl2.envs.making": "EnvWrapper atari make_env",
        "keras_rl2.envs.turn_games": "TurnGames turn_based",
        "keras_rl2.envs.vector_env": "VectorEnvAdapter",
        "keras_rl2.graph.graph_vector_env": "GraphVectorEnv",
    },
)
