"""EnvPool's environments."""

import warnings
from typing import Any

from keras_rl2.envs.gymnasium_vector_env import NextStepEnv


class EnvPoolEnv(NextStepEnv):
    """An EnvPool environment, made with `env_type="gymnasium"`.

    Its seed is an argument of `envpool.make`. The seed of `reset` is not passed
    on, since EnvPool ignores it with a warning. An episode that reaches its
    time limit and a terminal state in one step is truncated only: EnvPool does
    not report both.

    Args:
        env: EnvPool environment in synchronous mode with one player.

    Raises:
        ValueError: If it is asynchronous or has several players.
    """

    def __init__(self, env: Any) -> None:
        config = env.unwrapped.config
        if env.unwrapped.is_async:
            raise ValueError(
                "Expected an EnvPool environment in synchronous mode, whose "
                "batch_size is num_envs. Received: "
                f"batch_size={config['batch_size']}, "
                f"num_envs={config['num_envs']}"
            )
        if config.get("max_num_players", 1) != 1:
            raise ValueError(
                "Expected an EnvPool environment with one player. Received: "
                f"max_num_players={config['max_num_players']}"
            )
        with warnings.catch_warnings():
            # EnvPool makes its spaces when they are first read, with bounds
            # that Gymnasium warns about; a user cannot change them.
            warnings.filterwarnings("ignore", ".*precision lowered by casting")
            super().__init__(env)

    def _reset(self, seed: int | None) -> Any:
        """Resets all environments without a seed."""
        del seed
        return super()._reset(None)
