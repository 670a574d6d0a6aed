"""Agents that have been trained before a trial."""

import types

import pytest

import keras_rl2 as rl
from keras_rl2.tuning import fit_seeds
from support.agents import EVERY_AGENT
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_rollouts


@pytest.mark.parametrize("taken", [32, 64])
def test_they_are_refused_where_there_is_nothing_to_report(taken):
    env, reported = make_env(), []
    agent = make_eager_agent(EVERY_AGENT["PPO"], env)
    agent.env_steps = taken
    trial = types.SimpleNamespace(
        report=lambda *given: reported.append(given), should_prune=bool
    )
    with pytest.raises(ValueError, match=f"fewer steps.*has taken {taken}"):
        fit_seeds(
            trial,
            [(agent, make_rollouts(env))],
            total_steps=64,
            reports=2,
            episodes=rl.EvaluationDataset(env, 1),
        )
    assert reported == []
