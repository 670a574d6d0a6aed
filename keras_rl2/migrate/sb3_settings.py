"""Hyper-parameters of Stable-Baselines3, by the names of keras_rl2."""

import math
import re
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from typing import Any

import keras

from keras_rl2.migrate.sb3_file import LinearFall
from keras_rl2.migrate.sb3_file import SB3File

_ON_POLICY = {
    "gamma": "gamma",
    "gae_lambda": "gae_lambda",
    "ent_coef": "entropy_coefficient",
    "vf_coef": "value_coefficient",
    "max_grad_norm": "max_gradient_norm",
}
_OFF_POLICY = {"gamma": "gamma", "tau": "tau"}
#: Numbers with the same meaning in both libraries.
NUMBERS: dict[str, dict[str, str]] = {
    "PPO": {
        **_ON_POLICY,
        "clip_range": "clip_ratio",
        "clip_range_vf": "value_clip_range",
        "target_kl": "target_kl",
    },
    "A2C": _ON_POLICY,
    "DQN": {**_OFF_POLICY, "max_grad_norm": "max_gradient_norm"},
    "SAC": {**_OFF_POLICY, "target_entropy": "target_entropy"},
    "TD3": {
        **_OFF_POLICY,
        "target_policy_noise": "target_noise",
        "target_noise_clip": "target_noise_clip",
    },
}
# In place of a temperature of 0, since its logarithm must be finite.
_LEAST_TEMPERATURE = 1e-12


def settings_of(
    file: SB3File, allowed: Collection[str], notes: list[str]
) -> dict[str, Any]:
    """Returns arguments of an agent's constructor.

    Args:
        file: `SB3File`.
        allowed: Collection of str. The agent's arguments.
        notes: list of str. The names of ignored settings are appended.

    Returns:
        dict of the settings that the file stores as plain numbers.
    """
    settings: dict[str, Any] = {}
    for theirs, ours in NUMBERS[file.algorithm].items():
        if ours not in allowed:
            continue
        value = _value_of(file, theirs, notes)
        if value is not None:
            settings[ours] = value
    if file.algorithm in ("PPO", "A2C"):
        settings["normalize_advantages"] = file.flag("normalize_advantage")
    elif file.algorithm == "DQN":
        settings |= _dqn(file)
    elif file.algorithm == "SAC":
        settings |= _sac(file)
    elif file.algorithm == "TD3":
        settings["policy_delay"] = int(file.number("policy_delay") or 1)
        if file.has_object("action_noise"):
            notes.append("action_noise")
        else:
            settings["exploration"] = None
    return {name: settings[name] for name in settings if name in allowed}


def _value_of(file: SB3File, theirs: str, notes: list[str]) -> Any:
    """Returns the value of a setting, or its schedule."""
    if theirs == "clip_range":
        return value_of(file, theirs, notes)
    value = file.number(theirs)
    if theirs == "clip_range_vf" and value is None and file.has_object(theirs):
        notes.append("clip_range_vf, which is not a constant number")
    return value


def _dqn(file: SB3File) -> dict[str, Any]:
    """Returns the settings of target updates and of epsilon."""
    # True is the default of keras_rl2.
    settings: dict[str, Any] = {"double": False}
    interval = file.number("target_update_interval")
    if interval is not None:
        # Stable-Baselines3 counts steps of all environments, keras_rl2 updates.
        calls = max(int(interval) // int(file.number("n_envs") or 1), 1)
        updates = calls * updates_per_call(file) / TRAIN_FREQ["DQN"]
        settings["target_every"] = max(int(updates), 1)
    first = file.number("exploration_initial_eps")
    last = file.number("exploration_final_eps")
    share = file.number("exploration_fraction")
    steps = file.number("_total_timesteps")
    if first is not None and last is not None:
        settings["epsilon"] = last
        if share and steps:
            settings["epsilon"] = keras.optimizers.schedules.PolynomialDecay(
                first, max(int(share * steps), 1), last
            )
    return settings


def _sac(file: SB3File) -> dict[str, Any]:
    """Returns the temperature, and whether it is learned."""
    learned = file.variable("log_ent_coef")
    fixed = file.number("ent_coef")
    # Pink noise is the default of keras_rl2.
    settings: dict[str, Any] = {"noise_color": "white"}
    if learned is not None and learned.size == 1:
        settings["temperature"] = math.exp(float(learned.item()))
    elif fixed is not None:
        settings["temperature"] = max(fixed, _LEAST_TEMPERATURE)
        settings["learn_temperature"] = False
    interval = file.number("target_update_interval")
    if interval:
        settings["target_every"] = int(interval)
    return settings


# Default steps of each environment per update of DQN, since the setting is in a
# pickle; and of the other off-policy algorithms.
TRAIN_FREQ = {"DQN": 4, "SAC": 1, "TD3": 1}
_WORDS = {
    "learning_rate": "the learning rate",
    "clip_range": "clip_range",
    "clip_range_vf": "clip_range_vf",
}


def value_of(file: SB3File, name: str, notes: list[str], every: int = 1) -> Any:
    """Returns a number, or the Keras schedule of a changing one.

    Stable-Baselines3's schedules count the steps of `learn`, Keras' count
    updates.

    Args:
        file: `SB3File`.
        name: str. Name of the setting.
        notes: list of str. The names of ignored settings are appended.
        every: int. Updates per step of the schedule. Defaults to `1`.

    Returns:
        float, `keras.optimizers.schedules.PolynomialDecay`, or None if the file
        has neither.

    Raises:
        ValueError: If a number is not finite.
    """
    number = file.number(name)
    if number is not None:
        return number
    if not file.has_object(name):
        return None
    words = _WORDS.get(name, name)
    fall = file.linear_fall(name)
    if fall is None:
        notes.append(f"{words}, a function that is in a pickle only")
        return None
    updates = _updates(file) // every
    if not updates:
        notes.append(
            f"the course of {words} from {fall.start:g} to {fall.end:g}, over "
            "a run of unknown length"
        )
        return fall.start
    return _decay(fall, updates)


def _decay(
    fall: LinearFall, updates: int
) -> keras.optimizers.schedules.LearningRateSchedule:
    """Returns the schedule over a number of updates."""
    return keras.optimizers.schedules.PolynomialDecay(
        fall.start, max(int(fall.end_fraction * updates), 1), fall.end
    )


def updates_per_call(file: SB3File) -> float:
    """Returns the number of updates per round of an off-policy algorithm.

    Args:
        file: `SB3File`. A file of an algorithm in `TRAIN_FREQ`.
    """
    made = file.number("gradient_steps") or 1.0
    if made > 0:
        return made
    # As many as there were steps.
    return TRAIN_FREQ[file.algorithm] * (file.number("n_envs") or 1.0)


def _updates(file: SB3File) -> int:
    """Returns the updates of the requested run, 0 if unknown."""
    steps = file.number("_total_timesteps") or 0.0
    envs = file.number("n_envs") or 1.0
    if steps < 1 or envs < 1:
        return 0
    if file.algorithm in TRAIN_FREQ:
        every = TRAIN_FREQ[file.algorithm]
        learned = steps - (file.number("learning_starts") or 0.0)
        made = learned / (every * envs) * updates_per_call(file)
        return max(int(made), 0)
    size = (file.number("n_steps") or 0.0) * envs
    if size < 1:
        return 0
    batch = file.number("batch_size") or size
    if batch < 1:
        return 0
    passes = file.number("n_epochs") or 1.0
    return int(math.ceil(steps / size) * passes * math.ceil(size / batch))


_CLASS = re.compile(r"<class '(?:torch\.optim|stable_baselines3)\..*\.(\w+)'>")
_WITH_EPSILON = ("PPO", "A2C")
# The default of on-policy actors and critics.
_ON_POLICY_EPSILON = 1e-5
_OWN_EPSILON = 1e-8
# Arguments that change how PyTorch computes, not the results.
_HOW = frozenset({"capturable", "differentiable", "foreach", "fused", "lr"})


class _Arguments:
    """Arguments of a PyTorch optimizer, removed one at a time."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._left = {k: v for k, v in given.items() if k not in _HOW}

    def number(self, name: str, default: float) -> float:
        """Removes and returns a number, 0 or more."""
        return _checked(name, self._left.pop(name, default))

    def flag(self, name: str) -> bool:
        """Removes and returns a flag."""
        return self._left.pop(name, False) is True

    def betas(self) -> tuple[float, float]:
        """Removes and returns the two betas of Adam."""
        given = self._left.pop("betas", (0.9, 0.999))
        if not isinstance(given, list | tuple) or len(given) != 2:
            raise ValueError(f"an optimizer with betas={given!r}")
        return _checked("betas", given[0]), _checked("betas", given[1])

    def rest(self) -> list[str]:
        """Returns the names of the remaining arguments that are not zero."""
        return sorted(name for name, value in self._left.items() if value)


def optimizer_of(
    file: SB3File,
    options: Mapping[str, Any],
    own: keras.optimizers.Optimizer,
    notes: list[str],
    every: int = 1,
) -> keras.optimizers.Optimizer:
    """Makes the optimizer that a file describes.

    Args:
        file: `SB3File`.
        options: Mapping. Arguments of the policy.
        own: `keras.optimizers.Optimizer`. The agent's default, used if the
            file's optimizer is not supported.
        notes: list of str. The names of ignored settings are appended.
        every: int. Updates of the agent per update of this optimizer. Defaults
            to `1`.

    Returns:
        `keras.optimizers.Optimizer`, with the learning rate of the file.

    Raises:
        ValueError: If the file's optimizer has invalid arguments.
    """
    rate = value_of(file, "learning_rate", notes, every)
    if rate is None:
        rate = float(own.learning_rate)
    given = options.get("optimizer_kwargs")
    arguments = _Arguments(given if isinstance(given, Mapping) else {})
    epsilon = _OWN_EPSILON
    named = options.get("optimizer_class", "<class 'torch.optim.adam.Adam'>")
    found = _CLASS.fullmatch(str(named))
    make = _MAKERS.get(found[1]) if found else None
    if make is None:
        notes.append(f"the optimizer {named}")
        own.learning_rate = rate
        return own
    if make is _adam and given is None and file.algorithm in _WITH_EPSILON:
        epsilon = _ON_POLICY_EPSILON
    made = make(arguments, epsilon, learning_rate=rate, name=own.name)
    assert found is not None
    notes += [f"{name} of {found[1]}" for name in arguments.rest()]
    return made


def _adam(
    arguments: _Arguments, epsilon: float, **common: Any
) -> keras.optimizers.Optimizer:
    """Makes Adam."""
    first, second = arguments.betas()
    return keras.optimizers.Adam(
        beta_1=first,
        beta_2=second,
        epsilon=arguments.number("eps", epsilon),
        amsgrad=arguments.flag("amsgrad"),
        **common,
    )


def _adamw(
    arguments: _Arguments, epsilon: float, **common: Any
) -> keras.optimizers.Optimizer:
    """Makes AdamW."""
    first, second = arguments.betas()
    return keras.optimizers.AdamW(
        weight_decay=arguments.number("weight_decay", 1e-2),
        beta_1=first,
        beta_2=second,
        epsilon=arguments.number("eps", epsilon),
        amsgrad=arguments.flag("amsgrad"),
        **common,
    )


def _rmsprop(
    arguments: _Arguments, epsilon: float, **common: Any
) -> keras.optimizers.Optimizer:
    """Makes RMSprop; Keras adds its epsilon inside the root."""
    return keras.optimizers.RMSprop(
        rho=arguments.number("alpha", 0.99),
        epsilon=arguments.number("eps", epsilon),
        momentum=arguments.number("momentum", 0.0),
        centered=arguments.flag("centered"),
        **common,
    )


def _sgd(
    arguments: _Arguments, epsilon: float, **common: Any
) -> keras.optimizers.Optimizer:
    """Makes SGD."""
    del epsilon
    return keras.optimizers.SGD(
        momentum=arguments.number("momentum", 0.0),
        nesterov=arguments.flag("nesterov"),
        **common,
    )


_MAKERS: dict[str, Callable[..., keras.optimizers.Optimizer]] = {
    "Adam": _adam,
    "AdamW": _adamw,
    "RMSprop": _rmsprop,
    "RMSpropTFLike": _rmsprop,
    "SGD": _sgd,
}


def _checked(name: str, value: float) -> float:
    """Returns a number, checking that it is 0 or more."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0:
        raise ValueError(f"an optimizer with {name}={value!r}")
    return float(value)
