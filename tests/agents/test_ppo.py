"""PPO's numbers, worked out by hand."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from support.agents import AGENTS
from support.agents import assert_equal_weights
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
SCALARS = (
    "loss",
    "policy_loss",
    "value_loss",
    "entropy",
    "approx_kl",
    "clip_fraction",
    "gradient_norm",
)


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


@pytest.mark.parametrize("counted", [8, 5])
def test_an_update_is_the_gradient_worked_out_by_hand(published, counted):
    inputs, batch, _ = published
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
    assert float(reported) == pytest.approx(norm, rel=1e-5)


@pytest.mark.parametrize("normalize", [False, True])
def test_rows_of_weight_0_change_nothing(published, normalize):
    inputs, batch, _ = published
    agents = [
        make_published(inputs, normalize_advantages=normalize) for _ in range(2)
    ]
    few = {key: value[:5] for key, value in batch.items()}
    agents[0].train_step(few)
    rubbish = {
        key: tf.concat([value, value[:1] * 0 + 7], 0)
        for key, value in few.items()
    }
    rubbish["action"] = tf.concat([few["action"], [0]], 0)
    rubbish["weight"] = tf.concat([few["weight"], [0.0]], 0)
    agents[1].train_step(rubbish)
    for one, other in zip(*(a.get_weights() for a in agents), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    for key in SCALARS:
        one, other = (float(a.get_metrics_result()[key]) for a in agents)
        assert one == pytest.approx(other, rel=1e-5), key


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


@pytest.mark.parametrize("kind", ["dynamic", "fixed"])
def test_loss_scaling_does_not_change_the_clipping(published, kind):
    """The norm is that of the true gradient, whatever the loss scale."""
    inputs, batch, _ = published
    plain = make_published(inputs, max_gradient_norm=0.05)
    scaled = make_published(inputs, max_gradient_norm=0.05)
    if kind == "dynamic":
        optimizer = keras.optimizers.LossScaleOptimizer(
            keras.optimizers.SGD(1.0), initial_scale=1024.0
        )
    else:
        optimizer = keras.optimizers.SGD(1.0, loss_scale_factor=64.0)
    scaled.compile(optimizer, jit_compile=False)
    scaled.optimizer.build(scaled.trainable_variables)
    for agent in (plain, scaled):
        agent.train_step(batch)
    for one, other in zip(
        plain.get_weights(), scaled.get_weights(), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    norms = [
        float(a.get_metrics_result()["gradient_norm"]) for a in (plain, scaled)
    ]
    assert norms[0] == pytest.approx(norms[1], rel=1e-5)


def test_an_overflowing_scaled_loss_changes_no_weight(published):
    inputs, batch, _ = published
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


def test_entropy_bonus_makes_the_policy_more_random():
    batch = a_batch(
        action=[0], log_prob=[0.0], advantage=[0.0], returns=[0.0], value=[0.0]
    )
    entropies = []
    for coefficient in (0.0, 1.0):
        agent = tabular([[2.0, 0.0]], [0.0], entropy_coefficient=coefficient)
        for _ in range(3):
            agent.train_step(batch)
        entropies.append(terms_of(agent, batch)["entropy"])
    p = 1 / (1 + np.exp(-2))
    before = -p * np.log(p) - (1 - p) * np.log(1 - p)
    assert entropies[0] == pytest.approx(before, rel=1e-5)
    assert entropies[1] > before + 0.05


def test_positive_advantage_makes_an_action_more_probable():
    for advantage, sign in ((1.0, 1), (-1.0, -1)):
        agent = tabular([[0.0, 0.0]], [0.0])
        batch = a_batch(
            action=[1],
            log_prob=[np.log(0.5)],
            advantage=[advantage],
            returns=[0.0],
            value=[0.0],
        )
        agent.train_step(batch)
        logits = agent.get_weights()[0][0]
        # The gradient of log p: (-p0, 1 - p1), times the advantage.
        np.testing.assert_allclose(logits, [-0.5 * sign, 0.5 * sign], rtol=1e-6)


@pytest.mark.spread(pair=["act_discrete"])
@pytest.mark.parametrize(
    "pair", ["act_discrete", "act_box", "act_multi_binary"]
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


@pytest.mark.parametrize(
    ("horizon", "batch_size"),
    [(4, 1), pytest.param(5, 2, marks=pytest.mark.slow), (7, 4)],
)
def test_small_batches_and_remainders_stay_finite(horizon, batch_size):
    env = make_env("act_box", num_envs=1)
    agent = make_eager_agent(CASE, env)
    rollouts = make_rollouts(env, horizon=horizon, batch_size=batch_size)
    assert rollouts.updates_per_round == -(-horizon // batch_size)
    history = agent.fit(rollouts, verbose=0).history
    for key in SCALARS:
        assert np.isfinite(history[key]).all()
    for weight in agent.get_weights():
        assert np.isfinite(weight).all()


def test_every_sample_is_in_every_pass_once():
    env = make_env(num_envs=3)
    agent = make_agent(CASE, env)
    rollouts = make_rollouts(env, horizon=5, passes=3, batch_size=4)
    rollouts.bind(agent)
    rollouts.refresh()
    one_round = rollouts.hand_over()
    rows = one_round["rows"].reshape(3, -1)
    weight = one_round["weight"].reshape(3, -1)
    for one_pass, counts in zip(rows, weight, strict=True):
        assert sorted(one_pass[counts == 1]) == list(range(15))
    assert (rows[0] != rows[1]).any()
