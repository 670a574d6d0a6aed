"""The optimizer of a Stable-Baselines3 model, as a Keras optimizer."""

import math
import re
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

import keras

from keras_rl2.migrate.sb3_file import SB3File
from keras_rl2.migrate.sb3_schedules import value_of

_CLASS = re.compile(r"<class '(?:torch\.optim|stable_baselines3)\..*\.(\w+)'>")
_ON_POLICY = ("PPO", "A2C")
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
    if make is _adam and given is None and file.algorithm in _ON_POLICY:
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
