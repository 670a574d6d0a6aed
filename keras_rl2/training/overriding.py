"""Which of the methods that Keras lets a model override an agent calls.

`docs/keras_methods.md` is the table of all of them.
"""

from collections.abc import Mapping
from typing import Protocol

from keras_rl2.basics.arguments import either

# Of Keras' own loops, where an agent plays episodes instead.
_NEVER_CALLED = {
    "test_step": "`evaluate`, which plays episodes",
    "make_test_function": "`evaluate`, which plays episodes",
}
# What Keras' own `train_step` calls, and an agent's does not.
_CALLED_BY_KERAS_STEP = ("compute_loss", "compute_metrics")
# Where the losses of the agents are, by the names that they may have.
_SEAMS = ("loss_terms", "critic_terms", "value_terms", "actor_terms")


class NamedNetworks(Protocol):
    """A model made of networks; see `keras_rl2.Agent`."""

    def given_networks(self) -> Mapping[str, object]:
        """Returns the networks, keyed by constructor argument."""


def is_overridden(kind: type, name: str) -> bool:
    """Says whether a class that is not the library's own defines a method.

    Args:
        kind: class. Of an agent.
        name: str. Of the method.

    Example:

    >>> import keras_rl2 as rl
    >>> own = {"train_step": lambda self, data: {}, "__module__": "mine"}
    >>> mine = type("Mine", (rl.PPO,), own)
    >>> is_overridden(mine, "train_step"), is_overridden(rl.PPO, "train_step")
    (True, False)
    """
    return not _is_ours(_definers(kind, name)[0])


def learns_by_own_step(kind: type) -> bool:
    """Says whether a round of one update has to be made by `train_step`.

    Args:
        kind: class. Of an agent that could make it from the trajectory.

    Returns:
        bool: True where somebody has overridden `train_step`, or `prepare`,
        and not what takes the place of both.
    """
    order = kind.__mro__
    shortcut = order.index(_definers(kind, "train_on_trajectory")[0])
    return any(
        is_overridden(kind, name)
        and order.index(_definers(kind, name)[0]) < shortcut
        for name in ("train_step", "prepare")
    )


def refuse_unheard(agent: NamedNetworks) -> None:
    """Refuses methods of a class of one's own that would never be called.

    Args:
        agent: `keras_rl2.Agent`. Is about to be compiled.

    Raises:
        TypeError: If there is one; the text says what to override instead.
    """
    kind = type(agent)
    for name, instead in _NEVER_CALLED.items():
        if is_overridden(kind, name):
            raise _unheard(kind, name, instead)
    if not is_overridden(kind, "train_step"):
        refuse_losses_of_keras(agent)
    # An agent of another make has to define it, and calls it as it likes.
    definers = _definers(kind, "call")
    if not _is_ours(definers[0]) and any(
        each.__module__.partition(".")[0] == "keras_rl2" for each in definers
    ):
        names = " and ".join(f"`{each}`" for each in agent.given_networks())
        instead = f"`call` of a network that is given as {names}"
        raise _unheard(kind, "call", instead)


def refuse_losses_of_keras(agent: NamedNetworks) -> None:
    """Refuses the methods that Keras' `train_step` calls, but not the agent's.

    Args:
        agent: `keras_rl2.Agent`. Whose own `train_step` is to be run.

    Raises:
        TypeError: If one is overridden.
    """
    kind = type(agent)
    for name in _CALLED_BY_KERAS_STEP:
        if is_overridden(kind, name):
            seams = [each for each in _SEAMS if hasattr(kind, each)]
            seam = either(f"`{each}`" for each in seams or ["objectives"])
            instead = f"{seam}, or a `train_step` that calls it"
            raise _unheard(kind, name, instead)


def _definers(kind: type, name: str) -> list[type]:
    """Returns the classes that define a method, the one that counts first."""
    return [each for each in kind.__mro__ if name in vars(each)]


def _is_ours(kind: type) -> bool:
    """Says whether a class is of this library, or of Keras."""
    return kind.__module__.partition(".")[0] in ("keras", "keras_rl2")


def _unheard(kind: type, name: str, instead: str) -> TypeError:
    """Returns what is raised of a method that would never be called."""
    definer = _definers(kind, name)[0].__name__
    return TypeError(
        f"Expected {kind.__name__} to override {instead}. Received: "
        f"`{definer}.{name}`, which training such an agent never calls"
    )
