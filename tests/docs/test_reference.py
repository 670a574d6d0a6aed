"""Every public name has an example that is run."""

import doctest
import importlib
import inspect

import pytest

import keras_rl2

# What is neither a class nor a function is described by its module.
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


def documented(name, thing):
    return importlib.import_module(MODULES[name]) if name in MODULES else thing


@pytest.mark.parametrize(("name", "thing"), public_names().items())
def test_public_name_has_an_example_that_is_run(name, thing):
    docstring = inspect.getdoc(documented(name, thing)) or ""
    assert "\nExample:\n\n" in docstring
    examples = doctest.DocTestParser().get_examples(docstring)
    assert examples
    assert not any(each.options.get(doctest.SKIP) for each in examples)
