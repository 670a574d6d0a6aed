"""How tests and doctests run: they compile little, unless they ask for it."""

import gc

import pytest

# Programs, which do what they do as they are imported.
collect_ignore_glob = ["tests/support/*_programs.py"]


def pytest_addoption(parser):
    """Adds the option that plays a GPU."""
    parser.addoption(
        "--played-gpu",
        action="store_true",
        help="run as users do, beside a GPU that a second CPU device plays",
    )


def pytest_configure(config):
    """Plays the GPU, if asked to, before TensorFlow makes its devices."""
    if config.option.played_gpu:
        from support import played_gpu

        played_gpu.install()


@pytest.fixture(autouse=True, scope="session")
def compile_little(request):
    """Trains without XLA and without graph optimization, keeps conversions.

    Both take longer than what most tests train, and so does converting a
    policy anew. Tests of these choices ask for `as_users_run`, and tests that
    learn to a published return run as users do.

    Yields:
        What decides whether XLA pays.
    """
    options = request.config.option
    if options.markexpr == "learning" or options.played_gpu:
        yield
        return
    from keras_rl2.policies import actors
    from keras_rl2.training import rounds

    with pytest.MonkeyPatch.context() as patch:
        decide = rounds.pays_to_compile
        patch.setattr(rounds, "pays_to_compile", _never)
        patch.setattr(actors, "_MOST_KEPT", 4096)
        _optimize_graphs(False)
        yield decide


@pytest.fixture
def as_users_run(monkeypatch, compile_little):
    """Lets `jit_compile="auto"` choose, and optimizes graphs.

    Yields:
        None.
    """
    from keras_rl2.training import rounds

    monkeypatch.setattr(rounds, "pays_to_compile", compile_little)
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


def _never(agent):
    return False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """Names the case of the loop in which a test failed."""
    try:
        return (yield)
    except (Exception, pytest.fail.Exception) as error:
        from support.cases import name_case

        name_case(error)
        raise


def pytest_collection_finish():
    """Keeps imported modules out of garbage collection: a seventh less time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
