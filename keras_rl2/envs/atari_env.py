"""A single Atari game of the vector environment, with rendering."""

from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from keras_rl2.envs.first_of_vector_env import FirstOfVectorEnv

#: Vector entry point of the ids of ale-py for which the class is of use.
ATARI_ENTRY_POINT = "ale_py.vector_env:AtariVectorEnv"
_SCREEN = {
    "grayscale": False,
    "img_height": 210,
    "img_width": 160,
    "stack_num": 1,
}
# The console draws as many frames a second.
_FRAMES_PER_SECOND = 60


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
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode, the same one on both consoles."""
        if self._screen is not None:
            if seed is None and self._picture is None:
                # Each console would draw its own, once and for all.
                seed = int(self.np_random.integers(2**31 - 1))
            self._picture = self._screen.reset(seed=seed, options=options)[0]
        return super().reset(seed=seed, options=options)

    def step(
        self, action: object
    ) -> tuple[Any, float, bool, bool, dict[str, Any]]:
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
