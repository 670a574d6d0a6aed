"""Agents and datasets made from presets."""

import inspect
from typing import Any
from typing import TypeVar

import keras

from keras_rl2 import presets
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.arguments import check_seed
from keras_rl2.basics.arguments import present
from keras_rl2.data.hindsight import Hindsight
from keras_rl2.data.replay import ReplayDataset
from keras_rl2.data.rollouts import RolloutDataset
from keras_rl2.envs.adapt import as_vector_env
from keras_rl2.envs.adapt import is_maker
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.exploration import GaussianNoise
from keras_rl2.offline.offline import OfflineDataset
from keras_rl2.presets import Preset
from keras_rl2.presets.algorithms import ALGORITHMS
from keras_rl2.presets.preset import SECTIONS
from keras_rl2.presets.preset import is_schedule
from keras_rl2.presets.preset import unknown
from keras_rl2.spaces import supported as spaces

# Default of an `OfflineDataset`.
_UPDATES_PER_EPOCH = 1000

CollectingDataset = RolloutDataset | ReplayDataset
MadeAgent = TypeVar("MadeAgent", bound=keras.Model)


def algorithm_of(kind: type) -> str:
    """Returns the algorithm of an agent's class, or of a custom subclass."""
    names = [each.__name__ for each in kind.__mro__]
    known = [name for name in names if name in ALGORITHMS]
    return (known or names)[0]


def preset_of(kind: type, preset: str | Preset) -> Preset:
    """Returns a preset, given itself or the id of its environment."""
    algorithm = algorithm_of(kind)
    if isinstance(preset, str):
        preset = presets.find(algorithm, preset)
    if not isinstance(preset, Preset):
        raise ValueError(
            "Expected a `keras_rl2.presets.Preset`, or the id of an "
            f"environment with a preset. Received: preset={preset!r}"
        )
    if preset.algorithm != algorithm:
        raise ValueError(
            f"Expected a preset for {algorithm}. "
            f"Received: one for {preset.algorithm}"
        )
    return preset


def check_names(kind: Any, preset: Preset) -> None:
    """Raises an error for a setting that no constructor takes."""
    optimizer = str((preset.optimizer or {"name": "Adam"}).get("name"))
    optimizers = [each for each in dir(keras.optimizers) if each[0].isupper()]
    if optimizer not in optimizers:
        raise unknown("an `optimizer.name` of Keras", optimizer, optimizers)
    dataset: Any = RolloutDataset if kind.on_policy else ReplayDataset
    if preset.updates:
        dataset = OfflineDataset
    makers = (getattr(keras.optimizers, optimizer), dataset)
    constructor, for_env, *others = (
        inspect.signature(each).parameters.keys()
        for each in (kind, kind.for_env, *makers)
    )
    sections = (for_env - constructor, for_env & constructor, *others)
    known = [
        f"{section}.{name}"
        for section, names in zip(SECTIONS, sections, strict=True)
        for name in names
        # The arguments that `make` sets itself.
        if name not in ("env", "source", "seed")
    ]
    for section in SECTIONS:
        for name in getattr(preset, section):
            if f"{section}.{name}" not in known:
                expected = f"a setting of {preset.algorithm}"
                raise unknown(expected, f"{section}.{name}", known)


def make(
    kind: type[MadeAgent],
    preset: Preset,
    env: Any = None,
    num_envs: int | None = None,
    seed: int | None = None,
    data: Any = None,
) -> tuple[Preset, MadeAgent, CollectingDataset | OfflineDataset | None]:
    """Makes the agent and the dataset that a preset describes."""
    check_seed(seed)
    check_positive(**present(num_envs=num_envs))
    check_names(kind, preset)
    if env is None:
        env = preset.environment
    kwargs = preset.env_kwargs if env == preset.environment else {}
    if num_envs is None:
        num_envs = preset.num_envs if is_maker(env) else 1
    adapter = as_vector_env(env, num_envs, env_kwargs=kwargs)
    name = env if isinstance(env, str) else adapter.name
    kind = kind.for_action_space(adapter.action_space)
    # Games have several rows each.
    count = num_envs if isinstance(env, str) else adapter.num_envs
    preset = preset.with_settings({"env_kwargs": kwargs, "num_envs": count})
    preset = _fitted(kind, preset, name, adapter.num_envs)
    if preset.updates:
        agent = _make_agent(kind, preset, adapter, preset.updates, seed)
        if is_maker(env):
            # The environment has declared its spaces.
            adapter.close()
        return preset, agent, _recorded(agent, preset, data, seed)
    dataset_kind: type[RolloutDataset] | type[ReplayDataset]
    dataset_kind = RolloutDataset if kind.on_policy else ReplayDataset
    settings = dict(preset.dataset)
    if settings.get("hindsight") is not None:
        settings["hindsight"] = Hindsight.from_config(settings["hindsight"])
    dataset = dataset_kind(adapter, seed=seed, **settings)
    updates = _updates(preset, dataset, kind)
    agent = _make_agent(kind, preset, adapter, updates, seed)
    return preset, agent, dataset


def _recorded(
    agent: keras.Model, preset: Preset, data: Any, seed: int | None
) -> OfflineDataset | None:
    """Opens recorded data; raises if the agent cannot use it."""
    if data is None:
        return None
    offline = OfflineDataset(data, seed=seed, **preset.dataset)
    for what in ("observation", "action"):
        recorded = getattr(offline, f"{what}_space")
        of_agent = getattr(agent, f"{what}_space")
        if recorded is not None and not spaces.same_space(of_agent, recorded):
            raise ValueError(
                f"Expected data of {preset.environment}, whose {what} space is "
                f"{spaces.describe(of_agent)}. "
                f"Received: {spaces.describe(recorded)}"
            )
    offline.bind(agent)
    return offline


def _fitted(
    kind: type[keras.Model], preset: Preset, environment: str, num_envs: int
) -> Preset:
    """Returns a preset for the actual number of environments."""
    settings: dict[str, str | int]
    settings = {"environment": environment}
    if preset.updates:
        each = preset.dataset.get("updates_per_epoch", _UPDATES_PER_EPOCH)
        if each > preset.updates:
            settings["dataset.updates_per_epoch"] = preset.updates
        return preset.with_settings(settings)
    if kind.on_policy:
        size = preset.dataset.get("batch_size")
        if isinstance(size, int) and "horizon" in preset.dataset:
            most: int = preset.dataset["horizon"] * num_envs
            settings["dataset.batch_size"] = min(size, most)
        return preset.with_settings(settings)
    steps: int | None = preset.dataset.get("steps_per_round")
    if steps is not None and steps % num_envs:
        longer = -(-steps // num_envs) * num_envs
        settings["dataset.steps_per_round"] = longer
        updates: int | None = preset.dataset.get("updates_per_round")
        if updates is not None:
            updates = max(round(updates * longer / steps), 1)
            settings["dataset.updates_per_round"] = updates
    return preset.with_settings(settings)


def _make_agent(
    kind: type[MadeAgent],
    preset: Preset,
    env: VectorEnvAdapter,
    updates: int | None,
    seed: int | None,
) -> MadeAgent:
    """Makes and compiles the agent of a preset for a number of updates."""
    settings = {
        name: _present(
            value, updates if name == "clip_ratio" else preset.total_steps
        )
        for name, value in preset.agent.items()
    }
    if is_schedule(preset.agent.get("exploration")):
        settings["exploration"] = GaussianNoise(settings["exploration"])
    agent: MadeAgent = kind.for_env(
        env, seed=seed, **preset.networks, **settings
    )
    if preset.optimizer:
        _compile(agent, preset.optimizer, updates)
    return agent


def _compile(
    agent: keras.Model, settings: dict[str, Any], updates: int | None
) -> None:
    """Compiles an agent with the optimizer of a preset."""
    if agent.compile_arguments.critic_optimizer is None:
        agent.compile(_optimizer(settings, updates))
        return
    delay: int = getattr(agent, "policy_delay", 1)
    # Each counts its own updates, of which a delayed actor has fewer.
    agent.compile(
        _optimizer(settings, updates and updates // delay, "actor"),
        critic_optimizer=_optimizer(settings, updates, "critic"),
    )


def _optimizer(
    settings: dict[str, Any], updates: int | None, name: str | None = None
) -> keras.optimizers.Optimizer:
    """Makes the optimizer of a preset."""
    arguments = {
        key: _present(value, updates)
        for key, value in settings.items()
        if key != "name"
    }
    if name is not None:
        arguments["name"] = name
    optimizer: keras.optimizers.Optimizer
    optimizer = getattr(keras.optimizers, settings["name"])(**arguments)
    return optimizer


def _updates(
    preset: Preset,
    dataset: CollectingDataset,
    kind: Any,
) -> int | None:
    """Returns the updates of the run; None where rounds differ in length."""
    if kind.whole_episodes:
        return None
    # For the schedules, which the agent's constructor takes.
    dataset.settle(kind)
    steps = max(preset.total_steps - dataset.steps_before_first_round, 1)
    rounds = -(-steps // dataset.steps_per_round)
    return int(rounds * dataset.updates_per_round)


def _present(value: Any, length: int | None) -> Any:
    """Returns a setting in the form of the constructor's argument."""
    if not is_schedule(value):
        return value
    if length is None:
        raise ValueError(
            "Expected a number where rounds are whole episodes, so that the "
            f"number of updates is unknown. Received: {value}"
        )
    steps = max(round(value.get("fraction", 1.0) * length), 1)
    return keras.optimizers.schedules.PolynomialDecay(
        value["initial"], steps, value["final"]
    )
