"""`summary` says what an agent is, above Keras' table of its layers."""

import keras
import pytest

import keras_rl2 as rl
from support.agents import EVERY_AGENT
from support.agents import make_agent
from support.agents import make_env
from support.agents import slow


def summary_of(agent, **arguments):
    """Returns both texts that `summary` gives."""
    given = []
    agent.summary(print_fn=given.append, **arguments)
    ours, keras_own = given
    return ours, keras_own


@pytest.mark.parametrize("name", ["PPO", *slow("SAC", "TD3", "DQN")])
def test_it_names_algorithm_spaces_hyper_parameters_and_optimizers(name):
    case = EVERY_AGENT[name]
    settings = case.settings()
    agent = make_agent(case, make_env(case.pair), **settings)
    ours, keras_own = summary_of(agent)
    kind = "on" if case.on_policy else "off"
    assert ours.startswith(f"Agent: {type(agent).__name__} ({kind}-policy)\n")
    joined = " ".join(ours.split())
    for space in (agent.observation_space, agent.action_space):
        assert " ".join(str(space).split()) in joined
    for key in settings.keys() - {"name", "dtype"}:
        assert f" {key}=" in joined
    assert "Adam (learning_rate=" in joined or "RMSprop (learn" in joined
    assert "Environment steps: 0" in joined
    for network in agent.acting_networks:
        assert network.name in keras_own


def test_it_is_printed_with_arguments_of_keras(capsys):
    agent = rl.PPO.for_env(make_env(), hidden=(8,), seed=0)
    agent.summary(line_length=50, expand_nested=True, show_trainable=True)
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 50
    assert "Trai" in printed
    assert "hidden_0" in printed


def test_schedules_and_a_second_optimizer_are_written_out():
    decay = keras.optimizers.schedules.PolynomialDecay(0.25, 100, 0.0)
    agent = rl.SAC.for_env(make_env("act_box"), hidden=(8,), exploration=0.5)
    agent.compile(keras.optimizers.Adam(decay), critic_optimizer="sgd")
    ours = " ".join(summary_of(agent)[0].split())
    assert "exploration=GaussianNoise(scale=0.5)" in ours
    assert "initial_learning_rate=0.25, decay_steps=100" in ours
    assert "SGD (learning_rate=0.01)" in ours


def test_an_agent_that_knows_no_spaces_says_so():
    agent = rl.DQN(keras.Sequential([keras.layers.Dense(2)]))
    ours, _ = summary_of(agent)
    assert ours.count("not known before `fit`") == 2
    assert "none before `compile`" in ours
