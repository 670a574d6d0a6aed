"""The state of environments, from which a resumed training continues.

Gymnasium has no interface for it. Either an environment has methods of its own,
or it is of classic control, MuJoCo, Atari or MPE2, or a board game, in wrappers
of Gymnasium's or PettingZoo's. Nothing is guessed: any other one begins new
episodes, and so do environments in processes of Gymnasium's.
"""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium.wrappers import PassiveEnvChecker

from keras_rl2.envs.vector_env import GymnasiumEnv
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.saving import plain_data

# Attributes that change from step to step, by class (subclasses may have more).
# Of two wrappers of a name, for single and vector environments, each has some.
_ATTRIBUTES = {
    "AcrobotEnv": "state",
    "ActionMask": "",
    "AssertOutOfBoundsWrapper": "",
    "AtariPreprocessing": "obs_buffer lives game_over",
    "CartPoleEnv": "state steps_beyond_terminated",
    "CartPoleVectorEnv": "state steps prev_done",
    "Continuous_MountainCarEnv": "state",
    "FirstOfVectorEnv": "_start _observation _ended",
    "FrameStackObservation": "obs_queue padding_value",
    "Games": "waiting observations",
    "MountainCarEnv": "state",
    "NormalizeObservation": "obs_rms",
    "NormalizeReward": "return_rms discounted_reward accumulated_reward"
    " _prev_dones",
    "OrderEnforcing": "_has_reset",
    "OrderEnforcingWrapper": "_has_reset _has_updated",
    "PassiveEnvChecker": "",
    "PendulumEnv": "state last_u",
    "RecordEpisodeStatistics": "episode_count episode_returns episode_lengths "
    "prev_dones time_queue return_queue length_queue",
    "StickyAction": "last_action is_sticky_actions num_repeats repeats_taken",
    "SyncVectorEnv": "_autoreset_envs",
    "TimeAwareObservation": "timesteps",
    "TerminateIllegalWrapper": "_prev_obs _prev_info _terminated",
    "TimeLimit": "_elapsed_steps",
    "TurnGames": "np_random observations _learners _returns",
    **dict.fromkeys(
        # Modules of PettingZoo's games, which are all named `raw_env`.
        ("connect_four", "tictactoe"),
        "board agents agent_selection rewards terminations truncations infos "
        "_cumulative_rewards _agent_selector _skip_agent_selection",
    ),
    "aec_to_parallel_wrapper": "agents",
}
# Attributes that are objects, by the names of their classes.
_OBJECTS = "RunningMeanStd", "AgentSelector", "Board"
# Modules of wrappers that apply a function, and keep nothing.
_FUNCTIONS = "gymnasium.wrappers.transform_", "gymnasium.wrappers.vector.vector"
_PACKAGES = ("gymnasium", "keras_rl2", "pettingzoo")
_MUJOCO, _ATARI = "gymnasium.envs.mujoco.", "ale_py.env"
_PARTICLES = "mpe2."
# Attributes that are objects of the world themselves.
_ELSEWHERE = ("agents", "landmarks", "state", "action")
# Attributes of its games, beside those of their world.
_OF_PARTICLES = (
    "agents rewards _cumulative_rewards terminations truncations infos "
    "agent_selection steps current_actions"
)


def read(env: VectorEnvAdapter) -> list[Any]:
    """Returns the state of environments and of their wrappers.

    Example:

    >>> from keras_rl2.envs.adapt import as_vector_env
    >>> env, other = (as_vector_env("Pendulum-v1") for _ in range(2))
    >>> _ = env.reset(seed=0)
    >>> write(other, read(env))
    >>> all(other.env.unwrapped.state == env.env.unwrapped.state)
    True
    """
    return _read_env(env.env)


def write(env: VectorEnvAdapter, state: list[Any]) -> None:
    """Restores a state that `read` returned."""
    _write_env(env.env, state)


def _read_env(env: GymnasiumEnv) -> list[Any]:
    """Returns the state of an environment, its wrappers and those within."""
    state = []
    for layer in _layers(env):
        try:
            state.append(plain_data.copied(_read(layer)))
        except Exception as error:
            # Environments may raise errors of any type.
            reason = str(error) or repr(error)
            state.append({"kind": type(layer).__name__, "not_saved": reason})
    return state


def refusals(state: list[Any]) -> Iterator[str]:
    """Yields the reasons why parts of a state that was read are not saved."""
    for layer in state:
        if "not_saved" in layer:
            yield layer["not_saved"]
        for each in layer.get("envs", ()):
            yield from refusals(each)


def _write_env(env: GymnasiumEnv, state: list[Any]) -> None:
    """Restores a state that `_read_env` returned, as far as it was saved."""
    layers = [*_layers(env)]
    kinds = [type(each).__name__ for each in layers]
    given = [each["kind"] for each in state]
    if kinds != given:
        raise ValueError(f"Expected the state of {kinds}. Received: of {given}")
    for layer, each in zip(layers, plain_data.copied(state), strict=True):
        if "not_saved" not in each:
            _write(layer, each)


def _layers(env: Any) -> Iterator[Any]:
    """Yields the wrappers from the outermost inwards, and the environment."""
    yield env
    inner = getattr(env, "env", None) or getattr(env, "aec_env", None)
    # Without one, the wrapper is of an unknown kind, and refused.
    if (
        inner
        and not _saves_itself(env)
        and env is not getattr(env, "unwrapped", env)
    ):
        yield from _layers(inner)


def _saves_itself(env: Any) -> bool:
    """Whether an environment or wrapper saves all that is within it."""
    return hasattr(env, "get_state") and hasattr(env, "set_state")


def _read(layer: Any) -> dict[str, Any]:
    """Returns the state of one wrapper, or of the environment itself."""
    state: dict[str, Any] = {"kind": type(layer).__name__}
    if _saves_itself(layer):
        return {**state, "own": layer.get_state(), "random": _random(layer)}
    names = _names(layer)
    own = {k: v for k, v in vars(layer).items() if k in names}
    own |= {k: vars(v) for k, v in own.items() if _is_object(v)}
    state["attributes"] = own
    if "envs" in vars(layer):
        state["envs"] = [*map(_read_env, layer.envs)]
    elif layer is getattr(layer, "unwrapped", layer):
        state["random"] = _random(layer)
    if type(layer).__module__.startswith(_MUJOCO):
        state["simulation"] = _read_simulation(layer.model, layer.data)
    if type(layer).__module__ == _ATARI:
        state["console"] = _read_console(layer)
    if type(layer).__module__.startswith(_PARTICLES):
        state["world"] = [
            {k: v for k, v in vars(part).items() if k not in _ELSEWHERE}
            for part in _parts(layer)
        ]
    return state


def _write(layer: Any, state: dict[str, Any]) -> None:
    """Restores the state of one wrapper, or of the environment itself."""
    if "own" in state:
        layer.set_state(state["own"])
    if "envs" in state:
        for env, its in zip(layer.envs, state["envs"], strict=True):
            _write_env(env, its)
    if isinstance(layer, PassiveEnvChecker):
        # It would compare the next step with a reset that it has not seen.
        layer.checked_reset = layer.checked_step = True
        layer.checked_data_reuse = True
    for name, value in state.get("attributes", {}).items():
        before = getattr(layer, name, None)
        if _is_object(before):
            vars(before).update(value)
        else:
            setattr(layer, name, value)
    if "simulation" in state:
        _write_simulation(layer.model, layer.data, state["simulation"])
    if "console" in state:
        console = state["console"].tobytes()
        layer.restore_state(sys.modules["ale_py"].ALEState(console))
    if "world" in state:
        for part, its in zip(_parts(layer), state["world"], strict=True):
            vars(part).update(its)
    if state.get("random") is not None:
        layer.np_random.bit_generator.state = state["random"]


def _is_object(value: object) -> bool:
    """Returns whether an attribute is an object with attributes of its own."""
    return type(value).__name__ in _OBJECTS


def _names(layer: Any) -> list[str]:
    """Returns the attributes of a wrapper or environment that are its state."""
    kind, module = type(layer).__name__, type(layer).__module__
    if module.startswith((*_FUNCTIONS, _MUJOCO)) or module == _ATARI:
        return []
    if module.startswith(_PARTICLES):
        return _OF_PARTICLES.split()
    if kind == "raw_env":
        kind = module.rpartition(".")[2]
    if kind not in _ATTRIBUTES or module.split(".")[0] not in _PACKAGES:
        raise TypeError(
            f"{kind} has no methods `get_state()` and `set_state(state)`, and "
            "is not among the environments and wrappers whose state is known"
        )
    return _ATTRIBUTES[kind].split()


def _parts(game: Any) -> list[Any]:
    """Returns the objects of a game of MPE2 that have a state of their own."""
    world, agents = game.world, game.world.agents
    moving = [each.state for each in world.entities]
    acting = [each.action for each in agents]
    selector = game._agent_selector
    return [world, game.scenario, selector, *world.entities, *moving, *acting]


def _random(layer: Any) -> Any:
    """Returns the state of an environment's random generator, if it has one."""
    generator = getattr(layer, "np_random", None)
    return generator and generator.bit_generator.state


def _read_simulation(model: Any, data: Any) -> dict[str, Any]:
    """Returns the state of a MuJoCo simulation, and its last results."""
    mujoco: Any = sys.modules["mujoco"]
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    return {"state": state, "results": _results(data)}


def _write_simulation(model: Any, data: Any, state: dict[str, Any]) -> None:
    """Restores the state of a MuJoCo simulation."""
    mujoco: Any = sys.modules["mujoco"]
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    mujoco.mj_setState(model, data, state["state"], kind)
    mujoco.mj_forward(model, data)
    # The computation has changed the solver's warm start. Results, which
    # environments read, are from before the last integration.
    mujoco.mj_setState(model, data, state["state"], kind)
    for name, results in _results(data).items():
        results[...] = state["results"][name]


def _results(data: Any) -> dict[str, np.ndarray]:
    """Returns the results of a simulation whose size does not vary."""
    varying = ("_", "efc_", "efm_", "iefc_", "ifrc_", "iacc")
    names = [name for name in dir(data) if not name.startswith(varying)]
    values = {name: getattr(data, name) for name in names}
    arrays = {k: v for k, v in values.items() if isinstance(v, np.ndarray)}
    return {k: v for k, v in arrays.items() if v.dtype == np.float64}


def _read_console(env: Any) -> np.ndarray:
    """Returns the state of an Atari console, as bytes `[N]` uint8."""
    if env.ale.getFloat("repeat_action_probability"):
        raise TypeError(
            "its console does not save the action that it may repeat: "
            "repeat_action_probability=0 can be saved"
        )
    state = env.clone_state(include_rng=True)
    return np.frombuffer(state.serialize(), np.uint8)
