"""Constructors that say what they take."""

import inspect
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Self
from typing import cast

from keras_rl2.basics import arguments


class _OfConstructor:
    """The signature of a class: that of its constructor, which it may inherit.

    `inspect` would take `__new__` where a subclass has no constructor of its
    own. Of an instance it takes `__call__`.
    """

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        signature = inspect.signature(owner.__init__)  # type: ignore[misc]
        _, *parameters = signature.parameters.values()
        return signature.replace(parameters=parameters)


class NamedArguments:
    """Base of models that refuse unknown arguments before anything is made.

    In `__new__`, which Keras has, too: `__init__` is the signature that
    readers and type checkers see, and Python would only say that a name is
    unexpected.
    """

    __signature__ = _OfConstructor()

    def __new__(cls, *networks: Any, **given: Any) -> Self:
        """Refuses arguments that there are not."""
        kind = cls._kind_for(networks, given)
        kind.refuse_arguments(given)
        return cast(Self, super().__new__(kind))

    @classmethod
    def _kind_for(
        cls, networks: Sequence[Any], given: Collection[str]
    ) -> "type[NamedArguments]":
        """Returns the class that takes such networks: mostly, this one."""
        del networks, given
        return cls

    @classmethod
    def argument_names(cls) -> list[str]:
        """Returns the arguments that the constructor takes, bases' too."""
        return sorted(arguments.of_constructor(cls))

    @classmethod
    def refuse_arguments(cls, given: Mapping[str, Any]) -> None:
        """Refuses arguments that the algorithm does not take."""
        arguments.refuse_unknown(cls.__name__, given, cls.argument_names())
