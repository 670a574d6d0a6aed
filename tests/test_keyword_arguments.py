"""What stands behind `**kwargs` is named where one looks."""

import inspect
import types

import keras
import pytest

import keras_rl2 as rl
from keras_rl2.agents.offline_evaluation import OfflineEvaluation
from keras_rl2.presets.algorithms import ALGORITHMS

# What the name says, in a graph or in the hands of those who write agents.
FOR_AUTHORS = {"default_networks", "reset"}


def named(what, names):
    """Asserts that arguments are in a signature or in the docstring."""
    own = set(inspect.signature(what).parameters)
    documented = inspect.getdoc(what)
    missing = {
        name
        for name in set(names) - own
        if f"`{name}`" not in documented and f"\n    {name}:" not in documented
    }
    assert missing == set()


def parameters(function, *but):
    given = inspect.signature(function).parameters
    rest = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    names = {name for name, each in given.items() if each.kind not in rest}
    return names - {"self", *but}


@pytest.mark.parametrize("name", [*ALGORITHMS, "BoxCQL", "DiscreteCQL"])
def test_of_an_agent(name):
    kind = getattr(rl.agents, name)
    named(kind, kind.argument_names())


@pytest.mark.parametrize(
    ("what", "names"),
    [
        (
            rl.Agent.for_env,
            {"hidden", "normalize_observations", "activation", "memory"},
        ),
        (rl.Agent.compile, {"run_eagerly", "auto_scale_loss"}),
        (
            rl.Agent.fit,
            {"epochs", "total_steps", "callbacks", "verbose", "shuffle"},
        ),
        (
            rl.Agent.evaluate,
            parameters(rl.EvaluationDataset, "env")
            | parameters(OfflineEvaluation, "offline"),
        ),
        (rl.EvaluationDataset.of, parameters(rl.EvaluationDataset, "env")),
        (rl.record, parameters(rl.OfflineDataset, "source")),
        (rl.Agent.save, parameters(keras.Model.save)),
        (rl.Agent.save_weights, parameters(keras.Model.save_weights)),
        (rl.Agent.load_weights, parameters(keras.Model.load_weights)),
        (rl.Agent.summary, parameters(keras.Model.summary)),
        (
            rl.networks.network_for,
            parameters(rl.networks.mlp, "input_shape", "scale"),
        ),
        (rl.Training.run, parameters(rl.Agent.fit, "x", "epochs")),
    ],
    ids=lambda each: getattr(each, "__qualname__", ""),
)
def test_of_functions(what, names):
    named(what, names)


def _is_of(room, thing):
    return getattr(thing, "__module__", "").startswith(room.__name__)


def public():
    """Yields all that is public and the methods of it."""
    for name in rl.__all__:
        thing = getattr(rl, name)
        inner = [thing]
        if isinstance(thing, types.ModuleType):
            names = getattr(thing, "__all__", vars(thing))
            inner = [
                getattr(thing, each)
                for each in names
                if _is_of(thing, getattr(thing, each))
            ]
        for each in inner:
            yield each
            if inspect.isclass(each):
                yield from (
                    getattr(each, method)
                    for method in vars(each)
                    if not method.startswith("_")
                )


def test_none_is_left_without_words():
    silent = set()
    for thing in filter(callable, public()):
        try:
            given = inspect.signature(thing).parameters.values()
        except (TypeError, ValueError):
            continue
        for each in given:
            if (
                each.kind is each.VAR_KEYWORD
                and thing.__name__ not in FOR_AUTHORS
                and f"**{each.name}: " not in (inspect.getdoc(thing) or "")
            ):
                silent.add(thing.__qualname__)
    assert silent == set()
