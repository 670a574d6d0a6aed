"""Training as it is compiled by default: by XLA, or with optimized graphs.

Other tests run graphs without optimization, which takes less time. Here the
weights have to equal those of eager training.
"""

import functools

import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl
from keras_rl2.training import rounds
from support.agents import EVERY_AGENT
from support.agents import differ
from support.agents import make_env
from support.agents import make_rollouts
from support.agents import slow
from support.agents import weights_of

pytestmark = pytest.mark.usefixtures("as_users_run")

# XLA draws other random numbers: the updates that are compared draw none.
FAMILIES = {
    "on-policy": ("PPO", "act_discrete", {}),
    "value-based": ("DQN", "act_discrete", {}),
    "actor-critic": ("SAC", "act_discrete", {}),
    "deterministic": ("TD3", "act_box", {"target_noise": 0.0}),
    "offline": ("IQL", "act_box", {}),
    "cloning": ("BehaviorCloning", "act_box", {}),
}


@pytest.fixture(scope="module")
def expected():
    """Gives the weights that a family learns without a graph."""
    return functools.cache(lambda family: trained(family, run_eagerly=True)[1])


def trained(family, **compile_arguments):
    """Returns an agent and its weights after two rounds."""
    name, pair, settings = FAMILIES[family]
    case, env = EVERY_AGENT[name], make_env(pair)
    agent = case.make.for_env(env, hidden=(8,), seed=0, **settings)
    agent.compile(**compile_arguments)
    before = weights_of(agent)
    dataset = case.make_dataset(env, **case.one_update)
    agent.fit(dataset, epochs=2, verbose=0)
    assert differ(before, weights_of(agent))
    return agent, weights_of(agent)


def assert_close(weights, expected):
    for one, other in zip(weights, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "family",
    ["on-policy", *slow(*(each for each in FAMILIES if each != "on-policy"))],
)
def test_default_compilation_trains_the_weights_of_eager_training(
    family, expected, monkeypatch
):
    monkeypatch.setattr(rounds, "_PAYING_UPDATES", 2)
    agent, weights = trained(family)
    assert agent.compile_arguments.jit_compile == "auto"
    assert agent.rounds.compiled
    assert_close(weights, expected(family))


def test_runs_that_are_too_short_to_pay_are_not_compiled(monkeypatch):
    made = []
    monkeypatch.setattr(rounds, "_PAYING_UPDATES", 11)
    agent = rl.PPO.for_env(make_env(), hidden=(8,), seed=0)
    # Two updates a round: 4, 8 and 12 in all.
    for _ in range(3):
        agent.fit(make_rollouts(make_env()), epochs=2, verbose=0)
        made.append(agent.rounds.compiled)
    assert made == [False, False, True]
    agent = rl.PPO.for_env(make_env(), hidden=(8,), seed=0)
    agent.fit(make_rollouts(make_env()), total_steps=6 * 16, verbose=0)
    assert agent.rounds.compiled


@pytest.mark.parametrize("family", slow("on-policy", "actor-critic"))
def test_where_xla_does_not_pay_graphs_are_optimized(family, expected):
    options = tf.config.optimizer.get_experimental_options()
    assert not options["disable_meta_optimizer"]
    _, weights = trained(family, jit_compile=False)
    assert_close(weights, expected(family))
