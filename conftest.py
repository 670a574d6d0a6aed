"""How tests and doctests run: in two layers, and compiled little.

`python -m pytest` runs the default layer, which holds every promise once;
`python -m pytest -m slow` the rest. Of a test with the mark `spread`, the
default layer runs as few of its parametrisations as have each value of each
argument among them; the others are slow. With the mark `rotate` it runs one
value of an argument, or one of each of some groups, by the test's row in
`tests/turns.json`. Agents that differ from another by their loss take turns in
all tests over agents, by the same table: see `tests/support/turns.py`.
"""

import gc

import pytest

from support import turns

# Programs, which do what they do as they are imported.
collect_ignore_glob = ["tests/support/*_programs.py"]

_TURNS = pytest.StashKey()


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
    users have, and so do those that are marked `as_users_run`.
    """
    if "not slow" in request.config.option.markexpr:
        _optimize_graphs(False)


@pytest.fixture(autouse=True)
def xla(request, monkeypatch, without_xla):
    """Lets `"auto"` choose where it is asked for, and where much is trained."""
    marks = ("xla", "as_users_run", "learning")
    if any(map(request.node.get_closest_marker, marks)):
        from keras_rl2.training import round_execution

        monkeypatch.setattr(round_execution, "pays_to_compile", without_xla)


@pytest.fixture(autouse=True)
def optimized_graphs(request, without_optimized_graphs):
    """Optimizes graphs of tests that are marked `as_users_run`.

    Yields:
        None.
    """
    marked = request.node.get_closest_marker("as_users_run")
    switch = marked and "not slow" in request.config.option.markexpr
    if switch:
        _optimize_graphs(True)
    yield
    if switch:
        _optimize_graphs(False)


def _optimize_graphs(switch):
    """Switches TensorFlow's graph optimizer on or off."""
    import tensorflow as tf

    tf.config.optimizer.set_experimental_options(
        {"disable_meta_optimizer": not switch}
    )


def _never(agent, batch_size):
    return False


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Searches for no garbage meanwhile: nearly all that is made stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Marks as slow what `spread` and turns leave to the slow layer."""
    functions = turns.functions(items)
    config.stash[_TURNS] = turns.groups_by_test(functions)
    for nodeid, each in functions.items():
        key = turns.key_of(nodeid)
        takes_turns = config.stash[_TURNS][key]
        row = turns.table().get(key, {}) if takes_turns else {}
        kept = _of_the_default_layer(each, row)
        for item in each:
            if item not in kept:
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def turns_to_take(pytestconfig):
    """The groups of values that take turns in each test that is collected."""
    return pytestconfig.stash[_TURNS]


def pytest_collection_finish():
    """Leaves what was imported out of every later search for garbage.

    One search for each thousand objects, as is the default, takes a twentieth
    of all time where graphs are traced, which are made of many.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _of_the_default_layer(items, row):
    """Returns the parametrisations of a test that the default layer runs.

    Args:
        items: All of them.
        row: dict from arguments to the names of values that have their turn;
            empty where none takes turns.
    """
    if not hasattr(items[0], "callspec"):
        return items
    spread, rotate = map(items[0].get_closest_marker, ("spread", "rotate"))
    if row and not rotate:
        idle = {*turns.ANOTHER_LOSS}.difference(row["name"])
        items = [i for i in items if i.callspec.params["name"] not in idle]
    if not (spread or rotate):
        return items
    enough = spread.kwargs if spread else {}
    turn = row if rotate else {}
    return _covering(items, [_values(item, enough, turn) for item in items])


def _values(item, enough, turn):
    """Returns the values of a parametrisation that the default layer wants.

    Args:
        item: A test.
        enough: dict from arguments to the values that are enough of each.
        turn: The same by names of values.
    """
    return {
        (name, repr(value))
        for name, value in item.callspec.params.items()
        if (name not in enough or value in enough[name])
        and (name not in turn or turns.named(value) in turn[name])
    }


def _covering(items, rows):
    """Returns items that have all values of all rows among them.

    Args:
        items: Tests.
        rows: The values of each.
    """
    missing, kept = set().union(*rows), []
    while missing:
        gains = [len(row & missing) for row in rows]
        best = gains.index(max(gains))
        kept.append(items[best])
        missing -= rows[best]
    return kept
