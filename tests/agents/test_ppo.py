"""PPO's numbers by hand, its early stop, and its schedules."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

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


@pytest.fixture(scope="module")
def published():
    return published_case()


def test_loss_is_that_of_stable_baselines3(published):
    inputs, batch, expected = published
    actual = terms_of(make_published(inputs), batch)
    assert actual.pop("entropy") == pytest.approx(
        -expected["entropy_loss"], rel=1e-5
    )
    assert actual.pop("loss") == pytest.approx(expected["total_loss"], rel=1e-5)
    for key, value in actual.items():
        assert value == pytest.approx(expected[key], rel=1e-5), key


def numpy_gradients(inputs, weight):
    """Returns d loss / d logits and d loss / d values, worked out by hand."""
    logits = np.array(inputs["logits"])
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    p, count = np.exp(log_p), weight.sum()
    taken = np.eye(3)[inputs["actions"]]
    ratio = np.exp((log_p * taken).sum(1) - inputs["old_log_probs"])
    advantage, clip = np.array(inputs["advantages"]), inputs["clip"]
    # The gradient is 0 where the clipped term is the smaller one.
    clipped = ((ratio > 1 + clip) & (advantage > 0)) | (
        (ratio < 1 - clip) & (advantage < 0)
    )
    scale = np.where(clipped, 0.0, -advantage * ratio) * weight / count
    entropy = -(p * log_p).sum(1, keepdims=True)
    from_entropy = p * (log_p + entropy) * (weight / count)[:, None]
    by_logits = scale[:, None] * (taken - p)
    by_logits += inputs["ent_coef"] * from_entropy
    error = np.array(inputs["values"]) - inputs["returns"]
    return by_logits, inputs["vf_coef"] * 2.0 * error * weight / count


def test_an_update_is_the_gradient_worked_out_by_hand(published):
    inputs, batch, _ = published
    for counted in (8, 5):
        weight = (np.arange(8) < counted).astype("float32")
        agent = make_published(inputs)
        agent.train_step({**batch, "weight": tf.constant(weight)})
        by_logits, by_values = numpy_gradients(inputs, weight)
        logits, values = agent.get_weights()
        np.testing.assert_allclose(
            logits, inputs["logits"] - by_logits, rtol=1e-5, atol=1e-6
        )
        np.testing.assert_allclose(
            values[:, 0], inputs["values"] - by_values, rtol=1e-5, atol=1e-6
        )
        norm = np.sqrt((by_logits**2).sum() + (by_values**2).sum())
        reported = agent.get_metrics_result()["gradient_norm"]
        assert float(reported) == pytest.approx(norm, rel=1e-5), counted


def test_gradients_are_clipped_by_their_common_norm(published):
    inputs, batch, _ = published
    gradients = numpy_gradients(inputs, np.ones(8))
    norm = np.sqrt(sum((g**2).sum() for g in gradients))
    agent = make_published(inputs, max_gradient_norm=0.25 * norm)
    agent.train_step(batch)
    for weight, start, gradient in zip(
        agent.get_weights(),
        (inputs["logits"], inputs["values"]),
        gradients,
        strict=True,
    ):
        np.testing.assert_allclose(
            np.squeeze(weight), start - 0.25 * gradient, rtol=1e-4, atol=1e-6
        )


def test_loss_scaling_does_not_change_the_clipping(published):
    """The norm is that of the true gradient, whatever the loss scale."""
    inputs, batch, _ = published
    plain = make_published(inputs, max_gradient_norm=0.05)
    plain.train_step(batch)
    norm = float(plain.get_metrics_result()["gradient_norm"])
    for optimizer in (
        keras.optimizers.LossScaleOptimizer(
            keras.optimizers.SGD(1.0), initial_scale=1024.0
        ),
        keras.optimizers.SGD(1.0, loss_scale_factor=64.0),
    ):
        scaled = make_published(inputs, max_gradient_norm=0.05)
        scaled.compile(optimizer, jit_compile=False)
        scaled.optimizer.build(scaled.trainable_variables)
        scaled.train_step(batch)
        for one, other in zip(
            plain.get_weights(), scaled.get_weights(), strict=True
        ):
            np.testing.assert_allclose(one, other, rtol=1e-5)
        reported = scaled.get_metrics_result()["gradient_norm"]
        assert float(reported) == pytest.approx(norm, rel=1e-5)
    # A scaled loss that overflows changes no weight.
    agent = make_published(inputs, max_gradient_norm=0.5)
    agent.compile(
        keras.optimizers.LossScaleOptimizer(
            keras.optimizers.SGD(1.0), initial_scale=1e38
        ),
        jit_compile=False,
    )
    agent.optimizer.build(agent.trainable_variables)
    before = weights_of(agent)
    huge = {**batch, "advantage": batch["advantage"] * 1e6}
    agent.train_step(huge)
    assert_equal_weights(agent, before)
    assert float(agent.optimizer.dynamic_scale.numpy()) < 1e38


def test_value_clipping_takes_the_larger_error():
    # Rows: moved too far towards the target; moved away; within the range.
    agent = tabular(np.zeros((3, 2)), [1.0, -1.0, 0.1], value_clip_range=0.2)
    batch = a_batch(
        action=[0, 0, 0],
        log_prob=[np.log(0.5)] * 3,
        advantage=[0.0] * 3,
        returns=[1.0, 1.0, 1.0],
        value=[0.0, 0.0, 0.0],
    )
    value_loss = terms_of(agent, batch)["value_loss"]
    expected = (max(0.0, 0.8**2) + max(2.0**2, 1.2**2) + 0.9**2) / 3
    assert value_loss == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "pair", ["act_discrete", pytest.param("act_box", marks=pytest.mark.slow)]
)
def test_first_update_of_a_round_has_ratio_1(pair):
    env = make_env(pair)
    agent = make_agent(
        CASE, env, compile_arguments={"optimizer": keras.optimizers.SGD(0.1)}
    )
    # One update a round: all that is reported is of first updates.
    rollouts = make_rollouts(env, batch_size=16)
    assert rollouts.updates_per_round == 1
    history = agent.fit(rollouts, epochs=3, verbose=0).history
    assert history["clip_fraction"] == [0.0] * 3
    np.testing.assert_allclose(history["approx_kl"], 0.0, atol=1e-6)
    # Of normalised advantages the mean is 0, and so is the surrogate.
    np.testing.assert_allclose(history["policy_loss"], 0.0, atol=1e-5)
    assert min(history["gradient_norm"]) > 0


def test_advantages_are_normalised_within_the_minibatch():
    advantage = np.array([3.0, 5.0, 13.0, 99.0])
    agent = tabular(np.zeros((4, 2)), np.zeros(4), normalize_advantages=True)
    batch = a_batch(
        action=[0, 0, 1, 1],
        weight=[1.0, 1.0, 1.0, 0.0],
        log_prob=np.log([0.5] * 4),
        advantage=advantage,
        returns=[0.0] * 4,
        value=[0.0] * 4,
    )
    agent.train_step(batch)
    normal = (advantage[:3] - 7.0) / np.std(advantage[:3])
    expected = np.zeros((4, 2))
    for row, action in enumerate([0, 0, 1]):
        expected[row, action] = 0.5 * normal[row] / 3
        expected[row, 1 - action] = -0.5 * normal[row] / 3
    np.testing.assert_allclose(agent.get_weights()[0], expected, rtol=1e-5)


# The early stop on the divergence.


@pytest.mark.parametrize(
    "jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)]
)
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


def test_the_norm_of_a_declined_gradient_is_logged():
    norms = []
    for passes, target_kl in ((1, None), (2, 1e-15)):
        env = make_env()
        arguments = {"optimizer": keras.optimizers.SGD(1e-3)}
        agent = make_agent(
            CASE, env, compile_arguments=arguments, target_kl=target_kl
        )
        rollouts = make_rollouts(env, passes=passes, batch_size=None)
        history = agent.fit(rollouts, epochs=1, verbose=0).history
        assert int(agent.optimizer.iterations) == 1
        norms += history["gradient_norm"]
    assert norms[0] > 0.0
    # The weights hardly change, and neither does the gradient.
    np.testing.assert_allclose(norms[1], norms[0], rtol=0.1)


def test_skipped_updates_change_no_weight_and_no_moment():
    inputs, batch, _ = published_case()
    agent = make_published(inputs, target_kl=0.01)
    agent.compile(keras.optimizers.Adam(0.1), jit_compile=False)
    agent.optimizer.build(agent.trainable_variables)
    state = [*agent.variables, *agent.optimizer.variables]
    before = [v.numpy() for v in state if "sums" not in v.path]
    # This batch has a divergence of 0.27.
    with pytest.warns(UserWarning, match="skipped all updates"):
        agent.train_step(batch)
    # Also those that would be within it.
    small = {**batch, "log_prob": policy_log_prob(agent, batch)}
    for each in (batch, small):
        agent.train_step(each)
    after = [v.numpy() for v in state if "sums" not in v.path]
    assert_equal_weights(after, before)
    # Only the first of the three was counted.
    assert float(agent.statistics.sums[-1]) == 1.0
    assert int(agent.skipped.in_a_row) == 0
    agent.begin_round()
    agent.train_step(small)
    assert agent.optimizer.iterations.numpy() == 1


def policy_log_prob(agent, batch):
    policy, _ = agent.policy_and_value(batch["observation"])
    return policy.log_prob(batch["action"])


# Schedules.


def test_learning_rate_schedule_decreases(tmp_path):
    decay = keras.optimizers.schedules.PolynomialDecay
    env = make_env()
    agent = make_eager_agent(
        CASE,
        env,
        clip_ratio=decay(0.4, 16, 0.1),
        compile_arguments={
            "optimizer": keras.optimizers.SGD(decay(0.1, 8, 0.0))
        },
    )
    weights, hook = [], Hook(lambda a: weights.append(weights_of(a)))
    rollouts = make_rollouts(env)
    history = agent.fit(rollouts, epochs=5, callbacks=[hook], verbose=0).history
    np.testing.assert_allclose(
        history["learning_rate"], [0.075, 0.05, 0.025, 0.0, 0.0], atol=1e-7
    )
    assert differ(weights[2], weights[3])
    assert_equal_weights(weights[3], weights[4])
    # Schedules go on where they were when saved: after ten updates.
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    clip_ratio = float(loaded._present_clip_ratio())
    assert clip_ratio == pytest.approx(0.4 - 0.3 * 10 / 16)
    assert float(loaded.optimizer.learning_rate) == pytest.approx(0.0)
    assert json.loads(json.dumps(loaded.get_config()["clip_ratio"]))


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
