"""Arguments that a class takes for its bases: their signature and docstring.

A constructor names its own arguments, and those that differ from its bases'.
`**kwargs` stands for those of the next constructor: all of them, or, written as
`**kwargs: Unpack[Arguments]`, the keys of `Arguments`, a `TypedDict`. An
argument is described once, in the section `Args` of the class that takes it
first; classes below have the description with their own defaults.
"""

import functools
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Callable
from collections.abc import Iterable
from inspect import Parameter
from typing import Any

_ENTRY = re.compile(r"(?m)^ {4}(\*{0,2}\w+): ")
_HEADING = re.compile(r"(?m)^(?=(?:Attributes|Returns|Raises|Example|Ref.*):$)")
_DEFAULT = re.compile(r" Defaults to `[^`]*`")


def constructor(kind: type) -> inspect.Signature:
    """Returns the signature of a class, with all that its bases take.

    Example:

    >>> class Base:
    ...     def __init__(self, *, gamma=0.99): ...
    >>> class Derived(Base):
    ...     def __init__(self, actor, **kwargs): ...
    >>> constructor(Derived)
    <Signature (actor, *, gamma=0.99)>
    """
    found: dict[str, Parameter] = {}
    for chain in _chains(kind):
        found |= _parameters(chain) | found
    # The sorting is stable: the order within each kind stays.
    return inspect.Signature(sorted(found.values(), key=lambda p: p.kind))


def argument_names(kind: type) -> set[str]:
    """Returns the names of all arguments of a class."""
    parameters = constructor(kind).parameters.values()
    return {each.name for each in parameters if not _is_rest(each)}


def _is_rest(parameter: Parameter) -> bool:
    """Says whether a parameter stands for any number of arguments."""
    return parameter.kind.name.startswith("VAR")


def _chains(kind: type) -> Iterable[Iterable[type]]:
    """Returns sequences of classes whose constructors take the arguments."""
    return getattr(kind, "argument_chains", lambda: [kind.__mro__])()


def _parameters(chain: Iterable[type]) -> dict[str, Parameter]:
    """Returns the parameters of constructors that hand on to each other."""
    found: dict[str, Parameter] = {}
    allowed: set[str] | None = None
    by_position, star = True, None
    for each in chain:
        function = vars(each).get("__init__")
        if not isinstance(function, types.FunctionType):
            continue
        _, *parameters = inspect.signature(function).parameters.values()
        kinds = {p.kind: p for p in parameters}
        star = kinds.get(Parameter.VAR_POSITIONAL)
        for p in parameters:
            free = by_position and p.kind is p.POSITIONAL_OR_KEYWORD
            is_allowed = free or allowed is None or p.name in allowed
            if is_allowed and p.name not in found and not _is_rest(p):
                kind = p.kind if free else p.KEYWORD_ONLY
                found[p.name] = p.replace(kind=kind)
        rest = kinds.get(Parameter.VAR_KEYWORD)
        if rest is None:
            return found
        if typing.get_origin(rest.annotation) is typing.Unpack:
            [keys] = typing.get_args(rest.annotation)
            names = keys.__required_keys__ | keys.__optional_keys__
            allowed = names if allowed is None else allowed & names
        by_position = by_position and star is not None
    return found | ({star.name: star} if star else {})


def completed(
    text: str, parameters: Iterable[Parameter], texts: Iterable[str]
) -> str:
    """Returns a docstring with a section `Args` for all parameters."""
    known: dict[str, str] = {}
    for each in texts:
        parts = _ENTRY.split(_sections(each)[1])
        names = (name.lstrip("*") for name in parts[1::2])
        known = {**dict(zip(names, parts[2::2], strict=True)), **known}
    before, _, after = _sections(text)
    lines = [_entry(p, known[p.name]) for p in parameters if p.name in known]
    entries = "\n".join(["Args:", *lines]) if lines else ""
    return "\n\n".join(filter(None, [before, entries, after]))


def _sections(text: str) -> tuple[str, str, str]:
    """Returns the text before the entries of `Args`, the entries, the rest."""
    before, *after = _HEADING.split(inspect.cleandoc(text), maxsplit=1)
    before, _, entries = before.partition("\nArgs:\n")
    return before.strip(), entries, "".join(after)


def _entry(p: Parameter, words: str) -> str:
    """Returns the lines that describe a parameter, with its default."""
    value = f"{p.default:_}" if type(p.default) is int else repr(p.default)
    if isinstance(p.default, str):
        value = f'"{p.default}"'
    words = " ".join(words.split())
    if p.default is p.empty:
        words = re.sub(rf"{_DEFAULT.pattern}\.", "", words)
    elif _DEFAULT.search(words):
        words = _DEFAULT.sub(lambda _: f" Defaults to `{value}`", words)
    else:
        words += f" Defaults to `{value}`."
    return textwrap.fill(
        f"{'*' * (p.kind is p.VAR_POSITIONAL)}{p.name}: {words}",
        width=79,
        initial_indent=" " * 4,
        subsequent_indent=" " * 8,
        break_long_words=False,
        break_on_hyphens=False,
    )


class Docstring:
    """Docstring of a class, completed where it is read."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __get__(self, instance: object, owner: type) -> str:
        """Returns the docstring, with all arguments of the constructor."""
        classes = [each for chain in _chains(owner) for each in chain]
        found = [vars(each).get("__doc__") for each in classes]
        texts = [each.text for each in found if isinstance(each, Docstring)]
        parameters = constructor(owner).parameters.values()
        return completed(self.text, parameters, [self.text, *texts])


class _Signature:
    """Signature of a class: that of its constructor, which may be inherited.

    `inspect` would take `__new__`. For an instance it takes `__call__`.
    """

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")
        return constructor(owner)


class Described:
    """Base of classes that are described with the arguments of their bases."""

    __signature__ = _Signature()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Lets the docstring describe all arguments of the constructor."""
        super().__init_subclass__(**kwargs)
        if cls.__doc__:
            cls.__doc__ = Docstring(cls.__doc__)  # type: ignore[assignment]


class _Making(classmethod):  # type: ignore[type-arg]
    """A classmethod whose `**settings` are arguments of the constructor.

    Its signature and docstring have those of a class of options, then those
    that the class of the call takes, but for networks and the other
    `made_arguments` of the class.
    """

    def __init__(self, method: Any, options: type) -> None:
        super().__init__(method)
        self._options = options

    def __get__(self, instance: object, owner: Any = None) -> Any:
        """Returns the method of a class, with its signature."""
        kind: Any = owner or type(instance)
        method = self.__func__

        @functools.wraps(method)
        def described(*args: Any, **kwargs: Any) -> Any:
            return method(*args, **kwargs)

        written = inspect.signature(method)
        parameters = [p for p in written.parameters.values() if not _is_rest(p)]
        but = {*kind.made_arguments, *(p.name for p in parameters)}
        for signature in (inspect.signature(self._options), constructor(kind)):
            parameters += [
                p
                for p in signature.parameters.values()
                if p.kind is p.KEYWORD_ONLY and p.name not in but
            ]
        vars(described)["__signature__"] = written.replace(
            parameters=parameters, return_annotation=kind
        )
        sources = (method, self._options, kind)
        texts = [each.__doc__ or "" for each in sources]
        described.__doc__ = completed(texts[0], parameters, texts)
        return types.MethodType(described, kind)


def making(options: type) -> Callable[[Any], Any]:
    """Lets a classmethod take a class of options as keyword arguments, too."""
    return lambda method: _Making(method.__func__, options)
