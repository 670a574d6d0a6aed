"""How tests and doctests run: in two layers, and compiled little.

`python -m pytest` runs the default layer, which holds every promise once;
`python -m pytest -m slow` the rest. Of a test with the mark `spread`, the
default layer runs as few of its parametrisations as have each value of each
argument among them; the others are slow. With the mark `rotate` it wants of an
argument but one value, or one of each of some groups, and takes turns: the next
test of a module gets the next one. Agents that are others with another loss
take turns in all tests over agents.
"""

import gc
from collections import defaultdict

import pytest

# Programs, which do what they do as they are imported.
collect_ignore_glob = ["tests/support/*_programs.py"]

# What each does that others do not has tests of its own.
OTHERS_WITH_ANOTHER_LOSS = (
    "TD3BC",
    "BoxCQL",
    "IQL",
    "DiscreteCQL",
    "BehaviorCloning",
    "APPO",
)


@pytest.fixture(autouse=True, scope="session")
def without_xla():
    """Takes `jit_compile="auto"` for no, except where `xla` says otherwise.

    Compiling takes longer than all that most tests train. Tests of what is
    compiled say `jit_compile=True`.

    Yields:
        What decides otherwise.
    """
    from keras_rl2.training import round_execution

    with pytest.MonkeyPatch.context() as patch:
        decide = round_execution.pays_to_compile
        patch.setattr(round_execution, "pays_to_compile", _never)
        yield decide


@pytest.fixture(autouse=True, scope="session")
def without_optimized_graphs(request):
    """Runs graphs as they were traced, in the default layer.

    To optimize one takes longer than a test runs it. The slow tests run what
    users have.
    """
    if "not slow" in request.config.option.markexpr:
        import tensorflow as tf

        tf.config.optimizer.set_experimental_options(
            {"disable_meta_optimizer": True}
        )


@pytest.fixture(autouse=True)
def xla(request, monkeypatch, without_xla):
    """Lets `"auto"` choose where it is asked for, and where much is trained."""
    if any(map(request.node.get_closest_marker, ("xla", "learning"))):
        from keras_rl2.training import round_execution

        monkeypatch.setattr(round_execution, "pays_to_compile", without_xla)


def _never(agent, batch_size):
    return False


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks as slow what `spread` and `rotate` leave to the slow layer."""
    functions = defaultdict(list)
    for item in items:
        marked = any(map(item.get_closest_marker, ("spread", "rotate")))
        if marked and hasattr(item, "callspec"):
            functions[item.parent.nodeid, item.originalname].append(item)
    _take_turns([each for each in items if not _has_a_layer_of_its_own(each)])
    for each in functions.values():
        enough = _enough(each)
        kept = _covering([_values(item, enough) for item in each])
        for index, item in enumerate(each):
            if index not in kept:
                item.add_marker(pytest.mark.slow)


def pytest_collection_finish():
    """Leaves what was imported out of every later search for garbage.

    One search for each thousand objects, as is the default, takes a twentieth
    of all time where graphs are traced, which are made of many.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _has_a_layer_of_its_own(item):
    """Says whether neither the default layer nor the slow one runs a test."""
    return any(map(item.get_closest_marker, ("learning", "benchmark")))


def _take_turns(items):
    """Leaves to each test over agents one of those with another loss.

    Args:
        items: All tests.
    """
    present = defaultdict(set)
    for item in items:
        if (name := _agent_of(item)) in OTHERS_WITH_ANOTHER_LOSS:
            present[item.parent.nodeid, item.originalname].add(name)
    for item in items:
        name = _agent_of(item)
        if name not in OTHERS_WITH_ANOTHER_LOSS:
            continue
        names = sorted(present[item.parent.nodeid, item.originalname])
        turn = sum(map(ord, item.originalname))
        if name != names[turn % len(names)]:
            item.add_marker(pytest.mark.slow)


def _agent_of(item):
    """Returns the name of the agent that a test is run with, if it has one."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    name = params.get("name")
    return name if isinstance(name, str) else None


def _enough(items):
    """Returns which values of arguments the default layer wants of a test.

    Args:
        items: All parametrisations of the test.

    Returns:
        dict from names of arguments to lists; of an argument that is not in
        it, all values are wanted.
    """
    spread, rotate = map(items[0].get_closest_marker, ("spread", "rotate"))
    enough = dict(spread.kwargs) if spread else {}
    for name, groups in rotate.kwargs.items() if rotate else ():
        given = [item.callspec.params[name] for item in items]
        groups = [[v for v in group if v in given] for group in groups]
        turn = _turn(items[0])
        enough[name] = [group[turn % len(group)] for group in groups if group]
    return enough


def _turn(item):
    """Returns how many tests that `rotate` stand above one in its module."""
    marks = {
        name: getattr(each, "pytestmark", ())
        for name, each in vars(item.cls or item.module).items()
    }
    rotating = [
        name
        for name, of_name in marks.items()
        if any(mark.name == "rotate" for mark in of_name)
    ]
    return rotating.index(item.originalname)


def _values(item, enough):
    """Returns the values that a parametrisation has, named by arguments.

    Args:
        item: A test.
        enough: What `_enough` gives.
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
