"""Atari games with the preprocessing of the literature."""

from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

# Mnih et al., 2015, for training; Machado et al., 2018, for evaluation.
_TRAINING = {"episodic_life": True, "reward_clipping": True}
_EVALUATION = {"episodic_life": False, "reward_clipping": False}


def atari(
    env_id: str,
    num_envs: int = 8,
    *,
    training: bool = True,
    **kwargs: Any,
) -> VectorEnv[Any, Any, Any]:
    """Makes Atari games with the preprocessing of the literature.

    Grey frames of 84 x 84, the last four of them, every fourth frame of the
    console and the brightest of two, up to 30 idle steps at the start. For
    training, a lost life ends the episode and rewards are clipped to their
    sign; for evaluation, neither. ale-py's own vector environment does all of
    it in threads and in C++, a little faster than EnvPool. Datasets accept
    EnvPool's environments as well.

    Args:
        env_id: str. Id of a game, e.g. `"ALE/Pong-v5"`.
        num_envs: int. Number of games. Defaults to `8`.
        training: bool. Whether lives end episodes and rewards are clipped.
            Defaults to `True`.
        **kwargs: Arguments of ale-py's `AtariVectorEnv`, which take precedence,
            e.g. `repeat_action_probability=0.25` for sticky actions.

    Returns:
        `gymnasium.vector.VectorEnv`, of observations `[4, 84, 84]` uint8.

    Raises:
        ImportError: If ale-py is not installed.
        gymnasium.error.Error: If there is no such game.

    Example:

    >>> import pytest
    >>> _ = pytest.importorskip("ale_py")
    >>> games = atari("ALE/Pong-v5", num_envs=2)
    >>> games.observation_space.shape
    (2, 4, 84, 84)
    >>> games.close()

    Reference:
        - [Mnih et al., 2015](https://doi.org/10.1038/nature14236).
        - [Machado et al., 2018](https://arxiv.org/abs/1709.06009).
    """
    try:
        import ale_py
    except ImportError as error:
        raise ImportError(
            "Expected ale-py, which Atari games need: "
            "pip install ale-py. Received: " + str(error)
        ) from error
    gymnasium.register_envs(ale_py)
    settings = _TRAINING if training else _EVALUATION
    made: VectorEnv[Any, Any, Any] = gymnasium.make_vec(
        env_id, num_envs=num_envs, **{**settings, **kwargs}
    )
    return made
