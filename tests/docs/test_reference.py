"""Every public name has an example that is run."""

import doctest
import functools
import importlib
import inspect

import pytest

import keras_rl2

# Objects other than classes and functions are described by their module.
MODULES = {
    "ALGORITHMS": "keras_rl2.presets.algorithms",
    "EnvWrapper": "keras_rl2.envs.making",
    "__version__": "keras_rl2.version",
}


def public_names():
    """Returns each public name with its object."""
    top = {name: getattr(keras_rl2, name) for name in keras_rl2.__all__}
    sections = [thing for thing in top.values() if inspect.ismodule(thing)]
    for section in sections:
        top |= {name: getattr(section, name) for name in section.__all__}
    return {n: each for n, each in top.items() if not inspect.ismodule(each)}


def home_of(name, thing):
    """Returns the module whose doctests hold the example of a name."""
    return importlib.import_module(MODULES.get(name) or thing.__module__)


@functools.cache
def examples_of(module):
    """Returns the examples that pytest collects of a module, by name."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    return {each.name: each.examples for each in finder.find(module)}


def test_public_names_are_found():
    assert {"PPO", "Agent", "RolloutDataset", "vtrace"} <= {*public_names()}


@pytest.mark.parametrize(("name", "thing"), public_names().items())
def test_public_name_has_an_example_that_is_run(name, thing):
    home = home_of(name, thing)
    documented = home if name in MODULES else thing
    # Its own, not that of a base class.
    docstring = inspect.cleandoc(documented.__doc__ or "")
    _, heading, example = docstring.partition("\nExample:\n\n")
    assert heading, "no section `Example`"
    assert ">>> " in example
    path = home.__name__ + ("" if name in MODULES else f".{thing.__qualname__}")
    examples = examples_of(home).get(path)
    assert examples, f"no doctest {path}"
    assert not any(each.options.get(doctest.SKIP) for each in examples)
