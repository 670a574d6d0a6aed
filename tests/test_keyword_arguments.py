"""Signatures of public names show each argument, its default and type."""

import inspect
import types
from typing import Any

import keras
import pytest

import keras_rl2 as rl
from keras_rl2.offline.offline_evaluation import OfflineEvaluation
from keras_rl2.presets.algorithms import ALGORITHMS

# What goes on to another library, to an algorithm that only a file knows, or
# to Keras, whose layers and metrics all take its own arguments like this.
HANDED_ON = {
    "ActionMask.reset",
    "MonteCarloDropout",
    "NoisyDense",
    "ObservationNormalization",
    "StateDependentNoise",
    "ValuePolicy.outputs_of",
    "atari",
    "from_sb3",
    "run_network",
}
# What those who write agents are given, of which they take what they want.
FOR_AUTHORS = {"default_networks"}
# What `for_env` finds out itself.
MADE = {
    *("actor", "critic", "networks", "q_network", "value_network"),
    *("observation_space", "action_space"),
}
AGENTS = [*ALGORITHMS, "BoxCQL", "DiscreteCQL"]


def parameters(function, *but):
    given = inspect.signature(function).parameters
    return {
        name: (each.default, each.annotation)
        for name, each in given.items()
        if name not in ("self", "cls", *but)
    }


def test_a_constructor_takes_the_arguments_of_its_bases():
    dqn, sac = ({*kind.argument_names()} for kind in (rl.DQN, rl.SAC))
    missing = {
        "BehaviorCloning": {"tau", "target_every"},
        "BoxCQL": {*(dqn - sac), "critics_in_target"},
        "CrossQ": {"tau", "target_every", "critics_in_target"},
        "DDPG": {
            *("policy_delay", "target_noise", "target_noise_clip"),
            *("distributional", "atoms", "support"),
        },
        "DiscreteCQL": {*sac, "num_samples"} - dqn - {"critics_in_target"},
        "REINFORCE": {"gae_lambda"},
        "SAC": {"value_network"},
        "TD3": {"value_network"},
        "TQC": {"critics_in_target"},
    }
    for name in AGENTS:
        kind = getattr(rl.agents, name)
        inherited = {
            argument
            for base in kind.__bases__
            if issubclass(base, rl.Agent)
            for argument in base.argument_names()
        }
        lost = inherited - set(kind.argument_names())
        assert lost == missing.get(name, set()), name
    kinds = [rl.agents.BoxCQL, rl.agents.DiscreteCQL]
    both = set().union(*(kind.argument_names() for kind in kinds))
    assert set(rl.CQL.argument_names()) == both


def test_a_subclass_shows_the_constructor_that_it_inherits():
    class Mine(rl.PPO):
        pass

    assert inspect.signature(Mine) == inspect.signature(rl.PPO)
    agent = Mine.for_env("CartPole-v1", hidden=(8,))
    assert "observation" in inspect.signature(agent.call).parameters
    assert "clip_ratio" not in inspect.signature(agent).parameters


def test_for_env_passes_on_arguments_of_a_subclass():
    class Mine(rl.PPO):
        def __init__(self, *networks, clip_ratio=0.3, extra=1, **kwargs):
            super().__init__(*networks, clip_ratio=clip_ratio, **kwargs)
            self.extra = extra

    agent = Mine.for_env("CartPole-v1", hidden=(8,), extra=5, gamma=0.5)
    assert (agent.extra, agent.clip_ratio, agent.gamma) == (5, 0.3, 0.5)
    with pytest.raises(TypeError, match="Mine takes, perhaps `extra`"):
        Mine.for_env("CartPole-v1", extr=5)
    with pytest.raises(TypeError, match=r"Mine takes, perhaps .*`clip_ratio`"):
        Mine(None, clip_range=5)


def test_for_env_takes_the_arguments_of_the_constructor():
    for name in AGENTS:
        kind = getattr(rl.agents, name)
        constructor = parameters(kind, *MADE)
        taken = parameters(kind.for_env)
        assert {key: taken[key] for key in constructor} == constructor, name
        own = set(taken) - set(constructor)
        assert own == set(parameters(rl.Agent.for_env)) - set(constructor)


def test_every_argument_has_a_type():
    untyped = {
        (name, key)
        for name in AGENTS
        for kind in [getattr(rl.agents, name)]
        for given in (parameters(kind.for_env, "env"), parameters(kind))
        for key, (_, annotation) in given.items()
        if annotation in (inspect.Parameter.empty, Any, object)
    }
    assert untyped == set()


def test_defaults_are_those_of_the_function_called():
    taken = parameters(rl.data.PrioritizedReplayBuffer)
    given = parameters(rl.data.ReplayBuffer)
    assert {key: taken[key] for key in given} == given


def test_arguments_that_are_passed_on_are_taken():
    mlp = parameters(rl.networks.mlp, "input_shape", "scale")
    for what, given in (
        (rl.Agent.evaluate, parameters(rl.EvaluationDataset, "env")),
        (rl.Agent.evaluate, parameters(OfflineEvaluation, "offline")),
        (rl.Agent.save, parameters(keras.Model.save, "kwargs")),
        (rl.Agent.save_weights, parameters(keras.Model.save_weights)),
        (rl.Agent.load_weights, {"skip_mismatch", "objects_to_skip"}),
        (rl.Agent.summary, parameters(keras.Model.summary)),
        (rl.networks.network_for, mlp),
        (rl.Training.run, {"validation_data", "validation_freq"}),
    ):
        assert set(given) - set(parameters(what)) == set(), what


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


def test_signatures_hide_no_argument():
    hidden = set()
    for thing in filter(callable, public()):
        try:
            given = inspect.signature(thing).parameters.values()
        except (TypeError, ValueError):
            continue
        rest = any(each.kind is each.VAR_KEYWORD for each in given)
        if rest and thing.__name__ not in FOR_AUTHORS:
            hidden.add(thing)
    assert {thing.__qualname__ for thing in hidden} == HANDED_ON
    # They say which, but for a method that changes nothing of Gymnasium's.
    for thing in hidden:
        if thing.__qualname__ != "ActionMask.reset":
            assert "**" in inspect.getdoc(thing), thing
