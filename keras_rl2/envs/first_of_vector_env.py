"""Vector environments of one, and Atari's, as single environments."""

from typing import Any
from typing import TypeAlias

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import create_empty_array

from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.trees import map_leaves

# Observation, reward, terminated, truncated and info.
_Step: TypeAlias = tuple[Any, float, bool, bool, dict[str, Any]]

#: Vector entry point of the ids of ale-py for which `AtariEnv` is of use.
ATARI_ENTRY_POINT = "ale_py.vector_env:AtariVectorEnv"
_SCREEN = {
    "grayscale": False,
    "img_height": 210,
    "img_width": 160,
    "stack_num": 1,
}
# The console draws as many frames a second.
_FRAMES_PER_SECOND = 60
# Mnih et al., 2015, for training; Machado et al., 2018, for evaluation.
_TRAINING = {"episodic_life": True, "reward_clipping": True}
_EVALUATION = {"episodic_life": False, "reward_clipping": False}


class FirstOfVectorEnv(gymnasium.Env[Any, Any]):
    """A vector environment of one, behind the interface of a single one.

    An agent trained in a native vector environment is evaluated and recorded
    in that same one, not in a single environment of the same name.

    Args:
        vector: `gymnasium.vector.VectorEnv` of one environment.

    Example:

    >>> env = FirstOfVectorEnv(gymnasium.make_vec("CartPole-v1", num_envs=1))
    >>> env.reset(seed=0)[0].shape, env.action_space
    ((4,), Discrete(2))
    """

    def __init__(self, vector: VectorEnv[Any, Any, Any]) -> None:
        self.vector = vector
        self.observation_space = vector.single_observation_space
        self.action_space = vector.single_action_space
        self.metadata = dict(vector.metadata)
        self.render_mode = getattr(vector, "render_mode", None)
        self.spec = vector.spec and gymnasium.spec(vector.spec.id)
        self._mode = AutoresetMode(vector.metadata["autoreset_mode"])
        self._action_spec = action_spec(self.action_space)
        self._no_action = create_empty_array(self.action_space, 1)
        # First observation of the next episode, where it is known at once.
        self._start: Any = None
        self._ended = False

    @property
    def np_random(self) -> np.random.Generator:
        """Random generator of the vector environment and of its wrappers."""
        return self.vector.np_random

    @np_random.setter
    def np_random(self, value: np.random.Generator) -> None:
        self.vector.np_random = value

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode; after another one, the same as in training."""
        start, self._start = self._start, None
        ended, self._ended = self._ended, False
        if not ended or seed is not None or options is not None:
            observation, info = self.vector.reset(seed=seed, options=options)
            return _first(observation), info
        if start is not None:
            return start, {}
        if self._mode is AutoresetMode.NEXT_STEP:
            # This step is the reset, and ignores the action.
            observation, *_, info = self.vector.step(self._no_action)
        else:
            observation, info = self.vector.reset()
        return _first(observation), info

    def step(self, action: object) -> _Step:
        """Takes one step."""
        batch = map_leaves(_batch_of_one, self._action_spec, action)
        observation, reward, terminated, truncated, info = self.vector.step(
            batch
        )
        # A copy: vector environments may write to one array for ever.
        seen = _first(observation)
        self._ended = bool(terminated[0] or truncated[0])
        if self._ended and self._mode is AutoresetMode.SAME_STEP:
            self._start, seen = seen, _last(info["final_obs"])
        ends = bool(terminated[0]), bool(truncated[0])
        return seen, float(reward[0]), *ends, info

    def render(self) -> Any:
        """Returns the picture of the environment."""
        pictures = self.vector.render()
        return None if pictures is None else pictures[0]

    def close(self) -> None:
        """Closes the vector environment."""
        self.vector.close()


class AtariEnv(FirstOfVectorEnv):
    """A game of ale-py's vector environment, which cannot render.

    The pictures are the screen of a second console that receives the same seeds
    and actions, so that both are always in the same state. Its frames are in
    colour, of full size and unstacked.

    Args:
        env_id: str. Id of a game, e.g. `"ALE/Pong-v5"`.
        render_mode: str or None. `"rgb_array"` for pictures. Defaults to
            `None`.
        **kwargs: Arguments of ale-py's `AtariVectorEnv`.

    Raises:
        ValueError: If `render_mode` is another one.
    """

    def __init__(
        self, env_id: str, render_mode: str | None = None, **kwargs: Any
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(
                "Expected render_mode='rgb_array' or None. "
                f"Received: render_mode={render_mode!r}"
            )
        super().__init__(gymnasium.make_vec(env_id, num_envs=1, **kwargs))
        made: Any = self.vector.spec
        skipped = made.kwargs.get("frameskip", 4)
        self.metadata["render_modes"] = ["rgb_array"]
        self.metadata["render_fps"] = _FRAMES_PER_SECOND / skipped
        self.render_mode = render_mode
        self._screen: FirstOfVectorEnv | None = None
        self._picture: Any = None
        if render_mode is not None:
            self._screen = FirstOfVectorEnv(
                gymnasium.make_vec(env_id, num_envs=1, **kwargs | _SCREEN)
            )

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode, the same one on both consoles."""
        if self._screen is not None:
            if seed is None and self._picture is None:
                # Each console would draw its own, once and for all.
                seed = int(self.np_random.integers(2**31 - 1))
            self._picture = self._screen.reset(seed=seed, options=options)[0]
        return super().reset(seed=seed, options=options)

    def step(self, action: object) -> _Step:
        """Takes one step on both consoles."""
        if self._screen is not None:
            self._picture = self._screen.step(action)[0]
        return super().step(action)

    def render(self) -> Any:
        """Returns the screen `[210, 160, 3]` uint8."""
        return None if self._picture is None else self._picture[0]

    def close(self) -> None:
        """Closes both consoles."""
        if self._screen is not None:
            self._screen.close()
        super().close()


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
    import ale_py

    gymnasium.register_envs(ale_py)
    settings = _TRAINING if training else _EVALUATION
    return gymnasium.make_vec(env_id, num_envs=num_envs, **settings | kwargs)


def _batch_of_one(spec: ArraySpec, array: np.ndarray) -> np.ndarray:
    """Returns one array of an action as a batch, `[1, ...]`."""
    return np.asarray(array, spec.dtype)[None]


def _first(batch: np.ndarray) -> Any:
    """Returns a copy of the first row of each array."""
    return map_leaves(lambda array: np.array(array[0]), batch)


def _last(final: Any) -> Any:
    """Returns a copy of the only last observation."""
    if isinstance(final, np.ndarray):
        return map_leaves(np.array, final[0])
    return _first(final)
