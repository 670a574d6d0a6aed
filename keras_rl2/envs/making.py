"""Creation of environments from ids: the one place where ids are looked up.

Example:

>>> wrapper: EnvWrapper = gymnasium.wrappers.FlattenObservation
>>> make_env("CartPole-v1", wrappers=[wrapper])
<FlattenObservation<...CartPole-v1>...>
"""

import copy
import functools
import importlib
import importlib.util
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import TypeAlias

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import create_empty_array

from keras_rl2.basics import arguments
from keras_rl2.envs import games
from keras_rl2.envs.gymnasium_vector_env import final_row
from keras_rl2.envs.turn_games import turn_based
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.trees import map_leaves

#: A function that wraps one environment in another.
EnvWrapper = Callable[[Any], gymnasium.Env[Any, Any]]

# Observation, reward, terminated, truncated and info.
_Step: TypeAlias = tuple[Any, float, bool, bool, dict[str, Any]]

# Vector entry point of the ids of ale-py for which `AtariEnv` is of use.
_ATARI_ENTRY_POINT = "ale_py.vector_env:AtariVectorEnv"
# The console draws as many frames a second.
_FRAMES_PER_SECOND = 60
# Mnih et al., 2015, for training; Machado et al., 2018, for evaluation.
_TRAINING = {"episodic_life": True, "reward_clipping": True}
_EVALUATION = {"episodic_life": False, "reward_clipping": False}


def make_env(
    env_id: str,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    wrappers: Sequence[EnvWrapper] = (),
    render_mode: str | None = None,
) -> Any:
    """Makes one environment, the same as training uses for the id.

    If training uses the native vector environment of an id, that one is made
    here, too: `"ALE/Pong-v5"` returns stacks of four small grey frames, where
    `gymnasium.make` would return the whole screen in colours. It can be
    rendered in either case.

    Args:
        env_id: str. Id of a registered environment; `module:id` imports the
            module first, and may name a class of it instead of an id, or a game
            of PettingZoo, such as `"mpe2:simple_spread_v3"`. Games whose
            players alternate have random opponents.
        env_kwargs: dict or None. Arguments of the environment, as for
            `gymnasium.make`. Defaults to `None`.
        wrappers: sequence of functions from an environment to another one,
            applied in this order. Defaults to `()`.
        render_mode: str or None. `"rgb_array"` for pictures. Defaults to
            `None`.

    Returns:
        `gymnasium.Env`, or `Games` of one game.

    Raises:
        ValueError: If the environment does not take the arguments, or cannot
            be rendered in the form that is used in training.
        gymnasium.error.Error: If there is no such id.

    Example:

    >>> env = make_env("Pendulum-v1", env_kwargs={"g": 9.81},
    ...                wrappers=[gymnasium.wrappers.ClipAction])
    >>> env.unwrapped.g, type(env).__name__
    (9.81, 'ClipAction')
    """
    arguments.check_text(env_id=env_id)
    kwargs = dict(env_kwargs or {})
    if render_mode is not None:
        kwargs["render_mode"] = render_mode
    if games.is_game(env_id):
        return make_vector_env(env_id, 1, env_kwargs=kwargs, wrappers=wrappers)
    native = _has_native_vector(env_id)
    make = _make_first_of_vector if native else _make_single
    env = _with_words(env_id, kwargs, make)
    for wrapper in wrappers:
        env = wrapper(env)
    return env


def make_vector_env(
    env: str | Callable[[], Any],
    num_envs: int,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    wrappers: Sequence[EnvWrapper] = (),
) -> gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any] | games.Games:
    """Makes environments to be stepped together.

    They are the native vector environment of the id, if it has one and
    nothing is to be wrapped; else one environment, or several in a
    `gymnasium.vector.SyncVectorEnv`; or so many games of several players.
    """
    arguments.check_positive(num_envs=num_envs)
    make: Any = env
    if not isinstance(env, str):
        refuse_arguments_of_function(env_kwargs, wrappers)
    elif games.is_game(env):
        return _make_games(env, num_envs, env_kwargs or {}, wrappers)
    elif not wrappers and _has_native_vector(env):
        make_vec = functools.partial(gymnasium.make_vec, num_envs=num_envs)
        return _with_words(env, dict(env_kwargs or {}), make_vec)
    else:
        make = functools.partial(
            make_env, env, env_kwargs=env_kwargs, wrappers=wrappers
        )
    if num_envs == 1:
        return make()
    # A class has attributes that Gymnasium would take for the environment's.
    vector_env = SyncVectorEnv(
        [functools.partial(make)] * num_envs,
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    if isinstance(env, str):
        vector_env.spec = find_spec(env)
    return vector_env


def refuse_arguments_of_function(
    env_kwargs: Mapping[str, Any] | None, wrappers: Sequence[EnvWrapper]
) -> None:
    """Raises an error for arguments of a function that makes environments."""
    if env_kwargs or wrappers:
        raise ValueError(
            "Expected no `env_kwargs` and no `wrappers` with a function. "
            f"Received: env_kwargs={env_kwargs}, wrappers={wrappers}"
        )


def registering(env_id: str, make: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that makes an environment wherever it is sent.

    The id is unknown in a process that has not run the user's script.
    """
    return functools.partial(_register_and_make, find_spec(env_id), make)


def _register_and_make(
    spec: EnvSpec | None, make: Callable[..., Any], *args: Any
) -> Any:
    """Registers an id, unless it is known, and makes its environment."""
    if spec is not None:
        gymnasium.registry.setdefault(spec.id, spec)
    return make(*args)


class SyncVectorEnv(gymnasium.vector.SyncVectorEnv):
    """Copies the last observation of an episode before the next one begins.

    An environment may return the same array from `step` and `reset`, so that
    the reset overwrites what Gymnasium keeps as `final_obs`.
    """

    def _add_info(
        self, vector_infos: dict[str, Any], env_info: Any, env_num: int
    ) -> dict[str, Any]:
        """Adds the information of one environment.

        Gymnasium's documented hook for vector environments, and the only one
        between the end of an episode and the reset.
        """
        if "final_obs" in env_info:
            last = copy.deepcopy(env_info["final_obs"])
            env_info = {**env_info, "final_obs": last}
        return super()._add_info(vector_infos, env_info, env_num)


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
        env_id: str. Id of a game, such as `"ALE/Pong-v5"`.
        num_envs: int. Number of games. Defaults to `8`.
        training: bool. Whether lives end episodes and rewards are clipped.
            Defaults to `True`.
        **kwargs: Arguments of ale-py's `AtariVectorEnv`, which take precedence,
            such as `repeat_action_probability=0.25` for sticky actions.

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


def find_spec(env_id: str) -> EnvSpec | None:
    """Looks an id up, after importing the module that registers it."""
    module, _, name = env_id.rpartition(":")
    if module:
        # Before the look into the registry, which it writes to.
        kind = getattr(importlib.import_module(module), name, None)
        if name not in gymnasium.registry and isinstance(kind, type):
            if not issubclass(kind, gymnasium.Env):
                raise ValueError(
                    f"Expected `{env_id}` to be a class of `gymnasium.Env`; a "
                    "`GraphEnv` needs a `GraphVectorEnv` around it, in Python. "
                    f"Received: {kind}"
                )
            return EnvSpec(kind.__name__, f"{module}:{kind.__name__}")
    elif name.startswith("ALE/") and importlib.util.find_spec("ale_py"):
        # ale-py registers its games only when it is imported.
        importlib.import_module("ale_py")
    return gymnasium.registry.get(name)


def _make_single(env_id: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """Makes one environment of an id, or of the class that it names."""
    spec = find_spec(env_id) if ":" in env_id else None
    # Gymnasium itself raises a good error for an unknown id.
    return gymnasium.make(spec or env_id, **kwargs)


def _make_games(
    env_id: str,
    num_envs: int,
    kwargs: Mapping[str, Any],
    wrappers: Sequence[EnvWrapper],
) -> games.Games:
    """Makes games of several players, who act together or alternate."""

    def make(function: str) -> Any:
        game = games.maker(env_id, function)
        env = _with_words(env_id, dict(kwargs), lambda _, **each: game(**each))
        for wrapper in wrappers:
            env = wrapper(env)
        return env

    module = importlib.import_module(env_id.replace(":", "."))
    if hasattr(module, "env") and not hasattr(module, "parallel_env"):
        made = turn_based(functools.partial(make, "env"), num_envs)
        # Players who act together would wait for each other.
        if not made.metadata.get("is_parallelizable"):
            return made
    return games.parallel(functools.partial(make, "parallel_env"), num_envs)


def _has_native_vector(env_id: str) -> bool:
    """Returns whether an id has a native vector environment."""
    spec = find_spec(env_id)
    return spec is not None and spec.vector_entry_point is not None


def _make_first_of_vector(
    env_id: str, render_mode: str | None = None, **kwargs: Any
) -> Any:
    """Makes a native vector environment of one, as a single environment."""
    spec = find_spec(env_id)
    if spec is not None and spec.vector_entry_point == _ATARI_ENTRY_POINT:
        return AtariEnv(env_id, render_mode, **kwargs)
    make = functools.partial(gymnasium.make_vec, env_id, num_envs=1, **kwargs)
    vector = make()
    if render_mode is None:
        return FirstOfVectorEnv(vector)
    vector.close()
    if render_mode in (vector.metadata.get("render_modes") or []):
        return FirstOfVectorEnv(make(render_mode=render_mode))
    # The agent compares the spaces with its own.
    return gymnasium.make(env_id, render_mode=render_mode, **kwargs)


def _with_words(
    env_id: str, kwargs: dict[str, Any], make: Callable[..., Any]
) -> Any:
    """Calls a function that makes environments, and explains its errors."""
    try:
        return make(env_id, **kwargs)
    except TypeError as error:
        if not kwargs:
            raise
        raise ValueError(
            f"Expected `env_kwargs` that {env_id} takes. "
            f"Received: {kwargs} ({error})"
        ) from error


class FirstOfVectorEnv(gymnasium.Env[Any, Any]):
    """A vector environment of one, behind the interface of a single one.

    An agent trained in a native vector environment is evaluated and recorded
    in that same one, not in a single environment of the same name.

    Example:

    >>> env = FirstOfVectorEnv(gymnasium.make_vec("CartPole-v1", num_envs=1))
    >>> env.reset(seed=0)[0].shape, env.action_space
    ((4,), Discrete(2))
    """

    def __init__(self, vector: VectorEnv[Any, Any, Any]) -> None:
        self.vector = vector
        # The name of `SyncVectorEnv`, by which its state is saved.
        self.envs = (vector,)
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
        self._observation: Any = None
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
        elif start is not None:
            self._observation = start
            return start, {}
        elif self._mode is AutoresetMode.NEXT_STEP:
            # This step is the reset, and ignores the action.
            observation, *_, info = self.vector.step(self._no_action)
        else:
            observation, info = self.vector.reset()
        self._observation = _first(observation)
        return self._observation, info

    def step(self, action: object) -> _Step:
        """Takes one step."""
        batch = map_leaves(_batch_of_one, self._action_spec, action)
        observation, reward, terminated, truncated, info = self.vector.step(
            batch
        )
        # A copy: vector environments may write to one array for ever.
        observation = _first(observation)
        self._ended = bool(terminated[0] or truncated[0])
        if self._ended and self._mode is AutoresetMode.SAME_STEP:
            final = final_row(info["final_obs"], 0)
            self._start, observation = observation, map_leaves(np.array, final)
        self._observation = observation
        ends = bool(terminated[0]), bool(truncated[0])
        return observation, float(reward[0]), *ends, info

    def render(self) -> Any:
        """Returns the picture of the environment."""
        pictures = self.vector.render()
        return None if pictures is None else pictures[0]

    def close(self) -> None:
        """Closes the vector environment."""
        self.vector.close()


class AtariEnv(FirstOfVectorEnv):
    """A game of ale-py's vector environment, which cannot render.

    The picture is the last frame of the observation.

    Args:
        env_id: str. Id of a game, such as `"ALE/Pong-v5"`.
        render_mode: str or None. `"rgb_array"` for pictures. Defaults to
            `None`.
        **kwargs: Arguments of ale-py's `AtariVectorEnv`.
    """

    def __init__(
        self, env_id: str, render_mode: str | None = None, **kwargs: Any
    ) -> None:
        arguments.check_choice(render_mode=(render_mode, (None, "rgb_array")))
        super().__init__(gymnasium.make_vec(env_id, num_envs=1, **kwargs))
        spec: Any = self.vector.spec
        skipped = spec.kwargs.get("frameskip", 4)
        self.metadata["render_modes"] = ["rgb_array"]
        self.metadata["render_fps"] = _FRAMES_PER_SECOND / skipped
        self.render_mode = render_mode

    def render(self) -> Any:
        """Returns the last frame that the policy sees, `[84, 84, 3]` uint8."""
        if self.render_mode is None or self._observation is None:
            return None
        frame = self._observation[-1]
        return frame if frame.ndim == 3 else np.stack([frame] * 3, axis=-1)


def _batch_of_one(spec: ArraySpec, array: np.ndarray) -> np.ndarray:
    """Returns one array of an action as a batch, `[1, ...]`."""
    return np.asarray(array, spec.dtype)[None]


def _first(batch: np.ndarray) -> Any:
    """Returns a copy of the first row of each array."""
    return map_leaves(lambda array: np.array(array[0]), batch)
