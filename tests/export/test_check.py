"""`agent.check_export` finds differences between agent and file."""

import dataclasses

import keras
import pytest

import keras_rl2 as rl
from keras_rl2.agents import ExportCheck
from keras_rl2.export.policy_file import PolicyFile
from support.exported import export
from support.structured_envs import HYBRID_ACTIONS
from support.structured_envs import OBSERVATIONS
from support.structured_envs import MaskedEnv
from support.structured_envs import StructuredEnv

FOUND = ExportCheck(
    manifest={},
    observations=100,
    difference=0.0,
    disagreements=0.0,
    episode_return=-50.0,
    file_episode_return=-54.0,
    tolerance=1e-4,
    loss=0.1,
)


def test_a_check_passes_within_its_tolerance():
    by_return = {"tolerance": None}  # Of bits that are judged by the return.
    for changes, passed in [
        ({}, True),
        ({"difference": 1e-3}, False),
        ({"difference": float("nan")}, False),
        ({"disagreements": 1e-3}, False),
        ({"disagreements": 1e-3, "tolerance": 1e-2}, True),
        ({**by_return, "difference": 9.0}, True),
        ({**by_return, "file_episode_return": -56.0}, False),
        ({**by_return, "file_episode_return": -10.0}, True),
        ({**by_return, "file_episode_return": float("nan")}, False),
    ]:
        found = dataclasses.replace(FOUND, **changes)
        assert found.passed is passed, changes


def test_the_loss_is_a_share_of_the_agents_return():
    assert FOUND.lost == pytest.approx(0.08)
    assert dataclasses.replace(FOUND, episode_return=0.0).lost > 1e9


@pytest.fixture(scope="module")
def agent():
    return rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)


@pytest.fixture(scope="module")
def file(agent, tmp_path_factory):
    """The agent, exported."""
    return export(agent, tmp_path_factory.mktemp("exported"), "litert")


def test_other_weights_are_found(agent, file):
    found = agent.check_export(file, "CartPole-v1", episodes=3)
    assert found.passed
    assert found.episode_return == found.file_episode_return
    other = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=1)
    *hidden, kernel, bias = agent.actor.get_weights()
    other.actor.set_weights([*hidden, -kernel, -bias])
    found = other.check_export(file, "CartPole-v1", episodes=3)
    assert not found.passed
    assert found.disagreements > 0.5
    assert found.observations >= found.episode_return * 3


@pytest.mark.slow
def test_numbers_that_differ_are_found(tmp_path):
    agent = rl.SAC.for_env("Pendulum-v1", hidden=(8,), seed=0)
    path = export(agent, tmp_path, "litert")
    *others, bias = agent.actor.get_weights()
    agent.actor.set_weights([*others, bias + 0.01])
    found = agent.check_export(path, "Pendulum-v1", episodes=1)
    assert not found.passed
    # 0.01 before tanh, stretched from 1 to 2.
    assert 0.01 < found.difference < 0.021
    assert found.disagreements == 0.0


def test_another_environment_is_refused(agent, file):
    with pytest.raises(ValueError, match="Expected an environment with the"):
        agent.check_export(file, "Acrobot-v1")
    other = rl.PPO.for_env("Acrobot-v1", hidden=(8,), seed=0)
    with pytest.raises(ValueError, match="Expected an environment with the"):
        other.check_export(file, "Acrobot-v1")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "deterministic"), [("masked", False), ("hybrid", True)]
)
def test_masks_trees_and_memory(env, deterministic, tmp_path, monkeypatch):
    """The environments raise at forbidden actions."""
    make = {
        "masked": MaskedEnv,
        "hybrid": lambda: StructuredEnv(
            OBSERVATIONS["nested"], HYBRID_ACTIONS["dict"]
        ),
    }[env]
    cell = keras.layers.LSTMCell(4)
    agent = rl.PPO.for_env(make(), hidden=(8,), memory=cell, seed=0)
    path = export(agent, tmp_path, "litert", deterministic=deterministic)
    found = agent.check_export(path, make(), episodes=6)
    assert found.passed
    assert found.observations > 10
    # Their state is carried along: another cell is another policy.
    weights = agent.actor.get_weights()
    agent.actor.set_weights([weight * 3.0 for weight in weights])
    assert not agent.check_export(path, make(), episodes=6).passed
    # So is another initial state of the file.
    agent.actor.set_weights(weights)
    zeros = PolicyFile.initial_state
    monkeypatch.setattr(
        PolicyFile,
        "initial_state",
        lambda *args: tuple(state + 1 for state in zeros(*args)),
    )
    assert not agent.check_export(path, make(), episodes=6).passed
