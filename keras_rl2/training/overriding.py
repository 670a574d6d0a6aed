"""Checks of overridden methods of `keras.Model` in an agent's class.

`docs/keras_methods.md` lists all methods, and whether an agent calls them.
"""

from typing import NamedTuple

import keras

from keras_rl2.basics.arguments import either

# Methods of Keras' own loops; an agent plays episodes instead.
_NEVER_CALLED = {
    "test_step": "`evaluate`, which plays episodes",
    "make_test_function": "`evaluate`, which plays episodes",
}
# Methods that Keras' own `train_step` calls, and an agent's does not.
_CALLED_BY_KERAS_STEP = ("compute_loss", "compute_metrics")
# Possible names of the methods with the agents' losses.
_LOSSES = ("loss_terms", "critic_terms", "value_terms", "actor_terms")


def is_overridden(kind: type, name: str) -> bool:
    """Returns whether a class outside of the library defines a method.

    Example:

    >>> import keras_rl2 as rl
    >>> own = {"train_step": lambda self, data: {}, "__module__": "mine"}
    >>> mine = type("Mine", (rl.PPO,), own)
    >>> is_overridden(mine, "train_step"), is_overridden(rl.PPO, "train_step")
    (True, False)
    """
    return not _is_ours(_definers(kind, name)[0])


def learns_by_own_step(kind: type) -> bool:
    """Returns whether a round of one update has to be made by `train_step`."""
    order = kind.__mro__
    shortcut = order.index(_definers(kind, "train_on_trajectory")[0])
    return any(
        is_overridden(kind, name)
        and order.index(_definers(kind, name)[0]) < shortcut
        for name in ("train_step", "prepare", "objectives")
    )


class Overridden(NamedTuple):
    """The decisions of a custom class of agents about training.

    Attributes:
        train_step: bool. Whether it overrides `train_step`.
        train_function: bool. Whether it overrides `make_train_function`.
        by_own_step: bool. Whether a round of one update has to be made by its
            `train_step`, see `learns_by_own_step`.
    """

    train_step: bool
    train_function: bool
    by_own_step: bool


def overridden(kind: type) -> Overridden:
    """Returns the overrides of a class of agents.

    Example:

    >>> import keras_rl2 as rl
    >>> overridden(rl.PPO).train_step
    False
    """
    return Overridden(
        train_step=is_overridden(kind, "train_step"),
        train_function=is_overridden(kind, "make_train_function"),
        by_own_step=(
            hasattr(kind, "train_on_trajectory") and learns_by_own_step(kind)
        ),
    )


def refuse_uncalled_methods(agent: keras.Model) -> None:
    """Raises if a custom class overrides a method that is never called."""
    kind = type(agent)
    for name, instead in _NEVER_CALLED.items():
        if is_overridden(kind, name):
            raise _never_called(kind, name, instead)
    if not is_overridden(kind, "train_step"):
        refuse_losses_of_keras(agent)
    # A custom kind of agent, or one with its own losses, may call it.
    definers = _definers(kind, "call")
    own_losses = is_overridden(kind, "objectives")
    if not (own_losses or _is_ours(definers[0])) and any(
        each.__module__.partition(".")[0] == "keras_rl2" for each in definers
    ):
        names = " and ".join(f"`{each}`" for each in agent.given_networks())
        instead = f"`call` of a network that is given as {names}"
        raise _never_called(kind, "call", instead)


def refuse_losses_of_keras(agent: keras.Model) -> None:
    """Raises for overridden methods that only Keras' `train_step` calls."""
    kind = type(agent)
    for name in _CALLED_BY_KERAS_STEP:
        if is_overridden(kind, name):
            methods = [each for each in _LOSSES if hasattr(kind, each)]
            method = either(f"`{each}`" for each in methods or ["objectives"])
            instead = f"{method}, or a `train_step` that calls it"
            raise _never_called(kind, name, instead)


def _definers(kind: type, name: str) -> list[type]:
    """Returns the classes that define a method, in resolution order."""
    return [each for each in kind.__mro__ if name in vars(each)]


def _is_ours(kind: type) -> bool:
    """Returns whether a class belongs to this library or to Keras."""
    return kind.__module__.partition(".")[0] in ("keras", "keras_rl2")


def _never_called(kind: type, name: str, instead: str) -> TypeError:
    """Returns the error for a method that would never be called."""
    definer = _definers(kind, name)[0].__name__
    return TypeError(
        f"Expected {kind.__name__} to override {instead}. Received: "
        f"`{definer}.{name}`, which training such an agent never calls"
    )
