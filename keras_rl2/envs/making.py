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

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv

from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.arguments import check_text
from keras_rl2.spaces import supported as spaces

#: A function that wraps one environment in another.
EnvWrapper = Callable[[Any], gymnasium.Env[Any, Any]]


def make_env(
    env_id: str,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    wrappers: Sequence[EnvWrapper] = (),
    render_mode: str | None = None,
) -> gymnasium.Env[Any, Any]:
    """Makes one environment, the same as training uses for the id.

    If training uses the native vector environment of an id, that one is made
    here, too: `"ALE/Pong-v5"` returns stacks of four small grey frames, where
    `gymnasium.make` would return the whole screen in colours. It can be
    rendered in either case.

    Args:
        env_id: str. Id of a registered environment; `module:id` imports the
            module first, and may name a class of it instead of an id.
        env_kwargs: dict or None. Arguments of the environment, as for
            `gymnasium.make`. Defaults to `None`.
        wrappers: sequence of functions from an environment to another one,
            applied in this order. Defaults to `()`.
        render_mode: str or None. `"rgb_array"` for pictures. Defaults to
            `None`.

    Returns:
        `gymnasium.Env`.

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
    check_text(env_id=env_id)
    kwargs = dict(env_kwargs or {})
    if render_mode is not None:
        kwargs["render_mode"] = render_mode
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
) -> gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]:
    """Makes environments to be stepped together.

    They are the native vector environment of the id, if it has one and
    nothing is to be wrapped; else one environment, or several in a
    `gymnasium.vector.SyncVectorEnv`.

    Args:
        env: str, an id as for `make_env`; or a function that makes a
            `gymnasium.Env`.
        num_envs: int. Number of environments, at least 1.
        env_kwargs: dict or None. Arguments of the environment, as for
            `make_env`. Defaults to `None`.
        wrappers: sequence of functions, applied to each single environment.
            Defaults to `()`.

    Returns:
        `gymnasium.Env` or `gymnasium.vector.VectorEnv`.

    Raises:
        ValueError: If `num_envs` is below 1, the environment does not take
            the arguments, or there are some for a function.
        gymnasium.error.Error: If there is no such id.
    """
    check_positive(num_envs=num_envs)
    make: Any = env
    if not isinstance(env, str):
        refuse_arguments_of_function(env_kwargs, wrappers)
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
    made = SyncVectorEnv(
        [functools.partial(make)] * num_envs,
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    if isinstance(env, str):
        made.spec = find_spec(env)
    return made


def refuse_arguments_of_function(
    env_kwargs: Mapping[str, Any] | None, wrappers: Sequence[EnvWrapper]
) -> None:
    """Raises an error for arguments of a function that makes environments.

    Args:
        env_kwargs: Mapping or None. Arguments of an environment.
        wrappers: Sequence of functions that it is wrapped in.

    Raises:
        ValueError: If there are any.
    """
    if env_kwargs or wrappers:
        raise ValueError(
            "Expected no `env_kwargs` and no `wrappers` with a function. "
            f"Received: env_kwargs={env_kwargs}, wrappers={wrappers}"
        )


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


def find_spec(env_id: str) -> EnvSpec | None:
    """Looks an id up, after importing the module that registers it.

    Args:
        env_id: str. An id as for `make_env`.

    Returns:
        `gymnasium.envs.registration.EnvSpec`, or None if there is none.
    """
    module, _, name = env_id.rpartition(":")
    if module:
        # Before the look into the registry, which it writes to.
        kind = getattr(importlib.import_module(module), name, None)
        if (
            name not in gymnasium.registry
            and isinstance(kind, type)
            and issubclass(kind, gymnasium.Env)
        ):
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


def _has_native_vector(env_id: str) -> bool:
    """Returns whether an id has a native vector environment."""
    spec = find_spec(env_id)
    return spec is not None and spec.vector_entry_point is not None


def _make_first_of_vector(
    env_id: str, render_mode: str | None = None, **kwargs: Any
) -> Any:
    """Makes a native vector environment of one, as a single environment."""
    # Few environments need them.
    from keras_rl2.envs.first_of_vector_env import ATARI_ENTRY_POINT
    from keras_rl2.envs.first_of_vector_env import AtariEnv
    from keras_rl2.envs.first_of_vector_env import FirstOfVectorEnv

    spec = find_spec(env_id)
    if spec is not None and spec.vector_entry_point == ATARI_ENTRY_POINT:
        return AtariEnv(env_id, render_mode, **kwargs)
    make = functools.partial(gymnasium.make_vec, env_id, num_envs=1, **kwargs)
    vector = make()
    if render_mode is None:
        return FirstOfVectorEnv(vector)
    vector.close()
    if render_mode in (vector.metadata.get("render_modes") or []):
        return FirstOfVectorEnv(make(render_mode=render_mode))
    single = gymnasium.make(env_id, render_mode=render_mode, **kwargs)
    seen = vector.single_observation_space, vector.single_action_space
    drawn = single.observation_space, single.action_space
    if all(map(spaces.same_space, seen, drawn)):
        return single
    single.close()
    raise ValueError(
        f"Expected the vector environment of {env_id} to render {render_mode}, "
        "or the single one to have the same spaces. "
        f"Received: {seen} and {drawn}"
    )


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
