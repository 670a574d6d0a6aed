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
def compile_little(request):
    """Trains without XLA and without graph optimization, keeps conversions.

    Both take longer than what most tests train, and so does converting a
    policy anew. Tests of these choices ask for `as_users_run`, and tests that
    learn to a published return run as users do.

    Yields:
        What decides whether XLA pays.
    """
    if request.config.option.markexpr == "learning":
        yield
        return
    from keras_rl2.policies import actors
    from keras_rl2.training import round_execution

    with pytest.MonkeyPatch.context() as patch:
        decide = round_execution.pays_to_compile
        patch.setattr(round_execution, "pays_to_compile", _never)
        patch.setattr(actors, "_MOST_KEPT", 4096)
        _optimize_graphs(False)
        yield decide


@pytest.fixture
def as_users_run(monkeypatch, compile_little):
    """Lets `jit_compile="auto"` choose, and optimizes graphs.

    Yields:
        None.
    """
    from keras_rl2.training import round_execution

    monkeypatch.setattr(round_execution, "pays_to_compile", compile_little)
    _optimize_graphs(True)
    yield
    _optimize_graphs(False)


@pytest.fixture
def eagerly(monkeypatch):
    """Trains without graphs: to trace one takes longer than a few updates."""
    import keras_rl2 as rl

    always = property(lambda agent: True, lambda agent, value: None)
    monkeypatch.setattr(rl.Agent, "run_eagerly", always, raising=False)


def _optimize_graphs(switch):
    """Switches TensorFlow's graph optimizer on or off."""
    import tensorflow as tf

    tf.config.optimizer.set_experimental_options(
        {"disable_meta_optimizer": not switch}
    )


def _never(agent, batch_size):
    return False


# Their tests take up to minutes each, and have nothing in common.
_ONE_BY_ONE = ("test_killed_runs.py", "test_code_blocks.py")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Hands out tests by files, as `--dist=loadfile`, but for long ones.

    Files of few tests come last. A long one would keep one process busy for
    half an hour after the others have ended.
    """
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        # Named by an underscore, but made to be overridden: each of xdist's
        # own schedulers does.
        def _split_scope(self, nodeid):
            path = super()._split_scope(nodeid)
            return nodeid if path.endswith(_ONE_BY_ONE) else path

    if config.option.dist != "loadfile":
        return None
    return ByFile(config, log)


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
