"""Agents whose weights are not finite: no action, no file, no training."""

import os

import keras
import numpy as np
import pytest

from support.agents import ANY
from support.agents import EVERY_AGENT
from support.agents import make_eager_agent
from support.agents import make_env
from support.errors import raises
from support.faults import all_variables
from support.faults import assert_same

pytestmark = pytest.mark.parametrize("name", EVERY_AGENT)


def spoil(agent):
    """Makes the last weight of the network that acts not a number."""
    bias = agent.acting_networks[0].layers[-1].trainable_variables[-1]
    bias.assign(bias * np.nan)
    return bias.path


def made(name):
    case = EVERY_AGENT[name]
    env = make_env(case.pair)
    agent = make_eager_agent(case, env)
    agent.optimizer.build(agent.trainable_variables)
    return agent, case.make_dataset(env, **case.one_update), env


@pytest.mark.rotate(name=ANY)
def test_files(name, tmp_path):
    agent, _, _ = made(name)
    agent.save(tmp_path / "agent.keras")
    agent.save_weights(tmp_path / "agent.weights.h5")
    files = {p: p.read_bytes() for p in tmp_path.iterdir()}
    path = spoil(agent)
    with raises("finite weights to save", path):
        agent.save(tmp_path / "agent.keras")
    with raises("finite weights to save", path):
        agent.save_weights(tmp_path / "agent.weights.h5")
    with raises("finite weights to export", path):
        agent.export(tmp_path / "exported")
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == files
    slot = next(v for v in agent.optimizer.variables if len(v.shape))
    agent.load_weights(tmp_path / "agent.weights.h5")
    slot.assign(slot + np.inf)
    with raises("finite weights to save", slot.path):
        agent.save(tmp_path / "agent.keras")


@pytest.mark.rotate(name=ANY)
def test_loading(name, tmp_path):
    agent, dataset, env = made(name)
    before = all_variables(agent)
    spoil(agent)
    # As somebody would write it who does not go through the agent.
    file, weights = tmp_path / "agent.keras", tmp_path / "agent.weights.h5"
    keras.saving.save_model(agent, os.fspath(file))
    keras.Model.save_weights(agent, os.fspath(weights))
    other, _, _ = made(name)
    with raises("finite weights to go on", "not numbers"):
        other.load_weights(weights)
    assert_same(all_variables(other), before)
    for use in (
        lambda agent: agent.act(dataset.env.observation_space.sample()),
        lambda agent: agent.evaluate(env, episodes=1),
        lambda agent: agent.fit(dataset, verbose=0),
    ):
        with raises("finite weights to go on", "not numbers"):
            use(keras.saving.load_model(file))


@pytest.mark.rotate(name=ANY)
def test_acting(name):
    agent, dataset, env = made(name)
    agent.fit(dataset, verbose=0)
    path = spoil(agent)
    for act in (
        lambda: agent.fit(dataset, verbose=0),
        lambda: agent.evaluate(env, episodes=1),
    ):
        with raises("finite weights to act with", path):
            act()


@pytest.mark.rotate(name=ANY)
def test_a_checkpoint_of_keras(name, tmp_path):
    agent, dataset, _ = made(name)
    checkpoint = keras.callbacks.ModelCheckpoint(
        tmp_path / "{epoch}.keras", verbose=0
    )
    spoiling = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: spoil(agent) if epoch else None
    )
    with raises("finite weights to save", "not numbers"):
        agent.fit(
            dataset,
            epochs=3,
            callbacks=[spoiling, checkpoint],
            verbose=0,
        )
    assert [each.name for each in tmp_path.iterdir()] == ["1.keras"]
