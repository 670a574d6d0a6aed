"""How tests and doctests run: in two layers, and without XLA unless asked.

`python -m pytest` runs the default layer, which holds every promise once;
`python -m pytest -m slow` the rest. Of a test with the mark `spread`, the
default layer runs as few of its parametrisations as have each value of each
argument among them; the others are slow.
"""

from collections import defaultdict

import pytest


@pytest.fixture(autouse=True)
def without_xla(request, monkeypatch):
    """Takes `jit_compile="auto"` for no, except in tests marked `xla`.

    Compiling takes longer than all that most of them train. Tests of what is
    compiled say `jit_compile=True`.
    """
    if request.node.get_closest_marker("xla") is None:
        from keras_rl2.agents import fitting

        monkeypatch.setattr(fitting, "_pays_to_compile", _only_if_asked)


def _only_if_asked(agent, batch_size):
    return agent.compile_arguments.jit_compile is True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks as slow what `spread` leaves to the slow layer."""
    functions = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("spread")
        if mark is not None and hasattr(item, "callspec"):
            functions[item.parent.nodeid, item.originalname].append(item)
    for each in functions.values():
        enough = each[0].get_closest_marker("spread").kwargs
        kept = _covering([_values(item, enough) for item in each])
        for index, item in enumerate(each):
            if index not in kept:
                item.add_marker(pytest.mark.slow)


def _values(item, enough):
    """Returns the values that a parametrisation has, named by arguments.

    Args:
        item: A test.
        enough: dict from names of arguments to the values of each that the
            default layer wants; all of them for arguments not in it.
    """
    return {
        (name, repr(value))
        for name, value in item.callspec.params.items()
        if name not in enough or value in enough[name]
    }


def _covering(rows):
    """Returns indices of rows that have all values of all rows among them."""
    missing, kept = set().union(*rows), set()
    while missing:
        gains = [len(row & missing) for row in rows]
        best = gains.index(max(gains))
        kept.add(best)
        missing -= rows[best]
    return kept
