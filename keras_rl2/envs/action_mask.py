"""Action masks as part of the observation."""

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from keras_rl2.spaces.supported import ACTION_MASK
from keras_rl2.spaces.supported import network_shape

_METHOD = "action_masks"


class ActionMask(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Puts an environment's action mask into its observation.

    The mask comes from `info["action_mask"]` of `reset` and `step`, as
    in Gymnasium's Taxi, or from a method `action_masks()` of the environment.
    The environment's own observation becomes `"observation"` beside
    `"action_mask"`; a Dict keeps its keys.

    Args:
        env: `gymnasium.Env` whose actions are `Discrete` (a flag for each),
            `MultiDiscrete` (the flags of all choices, concatenated) or
            `MultiBinary` (1 where a switch may be on).

    Raises:
        ValueError: If there is no mask, or it is of another length.

    Example:

    >>> from gymnasium.envs.toy_text import TaxiEnv
    >>> env = ActionMask(TaxiEnv())
    >>> observation, _ = env.reset(seed=0)
    >>> sorted(observation), observation["action_mask"].shape
    (['action_mask', 'observation'], (6,))
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._size = math.prod(network_shape(env.action_space))
        mask = spaces.Box(0, 1, (self._size,), np.int8)
        seen: Any = env.observation_space
        self._is_dict = isinstance(seen, spaces.Dict)
        inner = dict(seen.spaces) if self._is_dict else {"observation": seen}
        self.observation_space = spaces.Dict({**inner, ACTION_MASK: mask})

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Begins an episode."""
        observation, info = self.env.reset(**kwargs)
        return self._with_mask(observation, info), info

    def step(
        self, action: object
    ) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Takes one step."""
        observation, *outcome, info = self.env.step(action)
        return self._with_mask(observation, info), *outcome, info

    def _with_mask(self, observation: Any, info: dict[str, Any]) -> Any:
        """Returns the observation with the present mask."""
        where = where_mask_is(self.env, info)
        if where is None:
            raise ValueError(
                "Expected an environment with a mask in "
                f"info[{ACTION_MASK!r}] or a method `{_METHOD}()`. "
                f"Received: {self.env} and info with the keys {sorted(info)}"
            )
        if where == _METHOD:
            given = self.env.get_wrapper_attr(_METHOD)()
        else:
            given = info[ACTION_MASK]
        mask = np.asarray(given).astype(np.int8)
        if mask.shape != (self._size,):
            raise ValueError(
                f"Expected an action mask of shape ({self._size},) for the "
                f"action space {self.env.action_space}. "
                f"Received: shape {mask.shape}"
            )
        inner = observation if self._is_dict else {"observation": observation}
        return {**inner, ACTION_MASK: mask}


def where_mask_is(
    env: gymnasium.Env[Any, Any], info: dict[str, Any]
) -> str | None:
    """Returns the source of an action mask outside the observation."""
    if ACTION_MASK in info:
        return "info"
    return _METHOD if env.has_wrapper_attr(_METHOD) else None
