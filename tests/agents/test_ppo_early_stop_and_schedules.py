"""When PPO stops the updates of a round, and what changes with updates."""

import json

import keras
import numpy as np
import pytest

from support.agents import AGENTS
from support.agents import Hook
from support.agents import assert_equal_weights
from support.agents import differ
from support.agents import make_agent
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_rollouts
from support.agents import weights_of
from support.tabular import a_batch
from support.tabular import make_published
from support.tabular import published_case
from support.tabular import tabular
from support.tabular import terms_of

CASE = AGENTS["PPO"]


# The early stop on the divergence.


@pytest.mark.spread(jit_compile=[False])
@pytest.mark.parametrize("jit_compile", [False, True])
def test_target_kl_skips_the_rest_of_the_round(jit_compile):
    env = make_env()
    arguments = {
        "optimizer": keras.optimizers.Adam(0.1),
        "jit_compile": jit_compile,
    }
    agent = make_agent(CASE, env, compile_arguments=arguments, target_kl=1e-4)
    rollouts = make_rollouts(env, passes=4)
    counts = []
    hook = Hook(lambda a: counts.append(int(a.optimizer.iterations.numpy())))
    history = agent.fit(rollouts, epochs=3, callbacks=[hook], verbose=0).history
    # The first update of a round has no divergence and is always made; the
    # second one sees what that has done, and is skipped with all others.
    assert counts == [1, 2, 3]
    # Two objectives were computed: one of no divergence, one of too much.
    assert min(history["approx_kl"]) > 1.5 * 1e-4 / 2


def test_skipped_updates_change_no_weight_and_no_moment():
    inputs, batch, _ = published_case()
    agent = make_published(inputs, target_kl=0.01)
    agent.compile(keras.optimizers.Adam(0.1), jit_compile=False)
    agent.optimizer.build(agent.trainable_variables)
    state = [*agent.variables, *agent.optimizer.variables]
    before = [v.numpy() for v in state if "sums" not in v.path]
    # This batch has a divergence of 0.27.
    for _ in range(3):
        agent.train_step(batch)
    after = [v.numpy() for v in state if "sums" not in v.path]
    assert_equal_weights(after, before)
    # Only the first of the three was counted.
    assert float(agent.statistics.sums[-1]) == 1.0
    agent.begin_round()
    small = {**batch, "log_prob": policy_log_prob(agent, batch)}
    agent.train_step(small)
    assert agent.optimizer.iterations.numpy() == 1


def policy_log_prob(agent, batch):
    policy, _ = agent.policy_and_value(batch["observation"])
    return policy.log_prob(batch["action"])


@pytest.mark.slow
def test_a_large_target_kl_stops_nothing():
    results = []
    for target_kl in (None, 1e6):
        env = make_env()
        agent = make_agent(CASE, env, target_kl=target_kl)
        agent.fit(make_rollouts(env, passes=4), epochs=2, verbose=0)
        assert agent.optimizer.iterations.numpy() == 16
        results.append(agent.get_weights())
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


# Schedules.


def test_learning_rate_schedule_decreases():
    schedule = keras.optimizers.schedules.PolynomialDecay(0.1, 8, 0.0)
    env = make_env()
    agent = make_eager_agent(
        CASE,
        env,
        compile_arguments={"optimizer": keras.optimizers.SGD(schedule)},
    )
    weights = [weights_of(agent)]
    hook = Hook(lambda a: weights.append(weights_of(a)))
    history = agent.fit(
        make_rollouts(env), epochs=5, callbacks=[hook], verbose=0
    ).history
    np.testing.assert_allclose(
        history["learning_rate"], [0.075, 0.05, 0.025, 0.0, 0.0], atol=1e-7
    )
    assert differ(weights[3], weights[4])
    assert_equal_weights(weights[4], weights[5])


def test_clip_schedule_decreases_with_updates():
    schedule = keras.optimizers.schedules.PolynomialDecay(0.4, 4, 0.1)
    agent = tabular(np.zeros((1, 2)), [0.0], clip_ratio=schedule)
    agent.compile(keras.optimizers.SGD(0.0), jit_compile=False)
    # The ratio is 1.25: clipped as soon as the clip ratio is below 0.25.
    batch = a_batch(
        action=[0],
        log_prob=[np.log(0.5 / 1.25)],
        advantage=[1.0],
        returns=[0.0],
        value=[0.0],
    )
    losses, fractions = [], []
    for _ in range(5):
        terms = terms_of(agent, batch)
        losses.append(terms["policy_loss"])
        fractions.append(terms["clip_fraction"])
        agent.train_step(batch)
    # 0.4, 0.325, 0.25, 0.175, 0.1
    np.testing.assert_allclose(
        losses, [-1.25, -1.25, -1.25, -1.175, -1.1], rtol=1e-5
    )
    assert fractions[:2] == [0.0, 0.0]
    assert fractions[3:] == [1.0, 1.0]


def test_clip_schedule_under_two_optimizers_and_loss_scaling():
    schedule = keras.optimizers.schedules.PolynomialDecay(0.4, 4, 0.1)
    env = make_env()
    agent = make_agent(
        CASE,
        env,
        clip_ratio=schedule,
        dtype="mixed_float16",
        compile_arguments={
            "optimizer": keras.optimizers.SGD(0.1),
            "critic_optimizer": keras.optimizers.SGD(0.1),
        },
    )
    agent.fit(make_rollouts(env), epochs=2, verbose=0)
    # Where the first gradients are too large for float16 they are skipped.
    updates = int(agent.optimizer.iterations.numpy())
    assert 0 < updates <= 4
    expected = float(schedule(updates))
    assert float(agent._present_clip_ratio()) == pytest.approx(expected)


def test_schedules_survive_saving(tmp_path):
    schedule = keras.optimizers.schedules.PolynomialDecay(0.4, 4, 0.1)
    env = make_env()
    agent = make_eager_agent(
        CASE,
        env,
        clip_ratio=schedule,
        compile_arguments={"optimizer": keras.optimizers.SGD(schedule)},
    )
    agent.fit(make_rollouts(env), verbose=0)
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert float(loaded._present_clip_ratio()) == pytest.approx(0.25)
    assert float(loaded.optimizer.learning_rate) == pytest.approx(0.25)
    assert json.loads(json.dumps(loaded.get_config()["clip_ratio"]))
