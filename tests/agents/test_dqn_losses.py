"""Each loss of DQN against numbers by hand."""

import math

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.losses import value_distributions
from support.agents import assert_equal_weights
from support.linear_q import linear_agent
from support.linear_q import transitions


def update(agent, *rows):
    """Makes one update; returns scalars, TD errors and how outputs moved."""
    before = agent.q_network.get_weights()[0]
    terms = agent.update(transitions(*rows))
    td_error = terms.pop("td_error")
    moved = agent.q_network.get_weights()[0] - before
    terms = {name: float(value) for name, value in terms.items()}
    return terms, td_error.numpy().tolist(), moved


# The losses, by hand.


@pytest.mark.parametrize(
    ("loss", "expected", "slope"), [("huber", 2.0, 1.0), ("mse", 3.125, 2.5)]
)
def test_loss_is_of_the_td_error_to_the_best_value_of_the_target(
    loss, expected, slope
):
    # 0.5 + 0.5 * max(4, 6) - 1 = 2.5
    agent = linear_agent([[1, 2], [30, 10]], [[9, 9], [4, 6]], loss=loss)
    terms, td_error, moved = update(agent, (0, 0.5, 0.5))
    assert terms["loss"] == pytest.approx(expected), loss
    assert terms["q_value"] == 1.0
    assert terms["gradient_norm"] == pytest.approx(slope), loss
    assert td_error == [2.5]
    # Only the value of the action taken moves: no gradient by targets.
    np.testing.assert_allclose(moved, [[0.1 * slope, 0], [0, 0]], rtol=1e-6)
    target = agent.target_network.get_weights()[0]
    assert target.tolist() == [[9, 9], [4, 6]]


def test_double_chooses_by_the_network_that_learns():
    # Q chooses action 0, which Q' values at 4: 0.5 + 0.5 * 4 - 1 = 1.5
    agent = linear_agent([[1, 2], [30, 10]], [[9, 9], [4, 6]], double=True)
    terms, td_error, moved = update(agent, (0, 0.5, 0.5))
    assert td_error == [1.5]
    assert terms["loss"] == 1.125
    np.testing.assert_allclose(moved, [[0.15, 0], [0, 0]], rtol=1e-6)


@pytest.mark.parametrize("double", [False, True])
def test_terminated_transitions_have_no_next_value(double):
    table = [[1, 2], [3, 4]], [[0, 0], [1e9, 1e9]]
    agent = linear_agent(*table, double=double)
    terms, td_error, _ = update(agent, (1, 0.5, 0.0))
    assert td_error == [1.5]
    assert terms["loss"] == 1.125


@pytest.mark.parametrize("kind", [None, "categorical"])
def test_weights_multiply_the_loss_of_each_transition(kind):
    def run(*rows, kind):
        size = 2 if kind is None else 4
        table = np.linspace(0, 1, 2 * size).reshape(2, size)
        agent = linear_agent(table, distributional=kind, atoms=2)
        return update(agent, *rows)

    first, second = (0, 3.0, 0.5), (1, -5.0, 0.5)
    alone = [run(row, kind=kind)[0]["loss"] for row in (first, second)]
    terms, td_error, _ = run((*first, 3.0), (*second, 0.25), kind=kind)
    expected = (3 * alone[0] + alone[1] / 4) / 2
    assert terms["loss"] == pytest.approx(expected), kind
    # Priorities are of the transition itself, however often it is drawn.
    assert td_error == run(first, second, kind=kind)[1]


def test_gradients_are_clipped_to_their_global_norm():
    agent = linear_agent(np.zeros((2, 2)), loss="mse", max_gradient_norm=10.0)
    terms, _, moved = update(agent, (0, 100.0, 0.0))
    assert terms["gradient_norm"] == pytest.approx(100.0)
    np.testing.assert_allclose(moved, [[0.1 * 10.0, 0], [0, 0]], rtol=1e-5)


# Dueling.


def test_dueling_adds_the_value_to_centred_advantages():
    agent = linear_agent([[1, 2, 4], [0, -3, 3]], dueling=True, loss="mse")
    values = agent(np.eye(2, dtype="float32")).numpy()
    assert values.tolist() == [[0.0, 2.0], [-3.0, 3.0]]
    assert agent.value(np.eye(2, dtype="float32")).numpy().tolist() == [2, 3]
    # The error of Q(s, 0) is 2: V moves by all of it, A by what is centred.
    _, td_error, moved = update(agent, (0, 2.0, 0.0))
    assert td_error == [2.0]
    np.testing.assert_allclose(moved, [[0.2, 0.1, -0.1], [0] * 3], atol=1e-7)


def test_dueling_combines_logits_before_the_softmax():
    value, advantages = [0.0, 1.0], [[2.0, 0.0], [4.0, 8.0]]
    row = np.concatenate([value, *advantages])
    agent = linear_agent(
        [row, row],
        dueling=True,
        distributional="categorical",
        atoms=2,
        support=(0.0, 10.0),
    )
    # Means of advantages are 3 and 4: logits (-1, -3) and (1, 5).
    expected = [10 / (1 + math.exp(2)), 10 / (1 + math.exp(-4))]
    values = agent(np.eye(2, dtype="float32")[:1]).numpy()[0]
    np.testing.assert_allclose(values, expected, rtol=1e-6)


# Distributions.


def test_categorical_is_the_cross_entropy_to_the_projected_target():
    # Atoms 0, 1, 2. Logits of action 0 are those of 1/4, 1/2, 1/4; the target
    # network is certain that action 1 returns 1, and action 0 returns 0.
    chosen = np.log([0.25, 0.5, 0.25])
    certain = [99.0, 0, 0, 0, 99.0, 0]
    agent = linear_agent(
        [[*chosen, 0, 0, 0], [0] * 6],
        [[0] * 6, certain],
        distributional="categorical",
        atoms=3,
        support=(0, 2),
    )
    state = np.eye(2, dtype="float32")
    np.testing.assert_allclose(agent(state), [[1, 1], [1, 1]], rtol=1e-6)
    # 0.75 + 0.5 * 1 lies at 1.25: 3/4 of it goes to 1 and 1/4 to 2.
    terms, td_error, moved = update(agent, (0, 0.75, 0.5))
    loss = 0.75 * math.log(2) + 0.25 * math.log(4)
    assert terms["loss"] == pytest.approx(loss)
    assert terms["q_value"] == pytest.approx(1.0)
    # The gradient of the logits is p - target.
    assert td_error == pytest.approx([loss])
    gradient = np.array([0.25, 0.5 - 0.75, 0.25 - 0.25])
    np.testing.assert_allclose(moved[0, :3], -0.1 * gradient, atol=1e-7)
    assert not moved[0, 3:].any()
    assert not moved[1].any()
    # The mean of logits is what TF-Agents publishes.
    values = value_distributions.CategoricalValues(3, (10.0, 30.0))
    logits = np.array([[[2.0, 4.0, 2.0], [1.0, 1.0, 20.0]]], "float32")
    np.testing.assert_allclose(values.mean(logits), [[20.0, 30.0]], rtol=1e-3)


@pytest.mark.parametrize(
    ("kind", "double", "following"),
    [
        ("categorical", True, 0),
        ("quantile", False, 1),
        pytest.param("categorical", False, 1, marks=pytest.mark.slow),
        pytest.param("quantile", True, 0, marks=pytest.mark.slow),
    ],
)
def test_distributions_of_the_action_with_the_best_mean_follow(
    kind, double, following
):
    # The target network prefers action 1, that which learns action 0.
    def table(best):
        rows = {
            "categorical": [[99, 0, 0], [0, 99, 0]],
            "quantile": [[-1.0, 0, 1], [1, 2, 3]],
        }[kind]
        worse, better = rows
        return [worse, better] if best == 1 else [better, worse]

    target = np.array(table(1), "float32")
    agent = linear_agent(
        [[0] * 6, np.ravel(table(0))],
        [[0] * 6, target.ravel()],
        distributional=kind,
        double=double,
        atoms=3,
        support=(0, 2),
    )
    terms, _, _ = update(agent, (0, 0.25, 0.5))
    if kind == "categorical":
        expected = math.log(3)
        assert terms["loss"] == pytest.approx(expected)
        moved = update(agent, (1, 0.0, 1.0))[2][0, 3:]
        # All mass of the target is on one atom, which alone rises.
        assert (moved > 0).tolist() == [following == 0, following == 1, False]
    else:
        error = 0.25 + 0.5 * target[following]
        size = np.abs(error)
        huber = np.where(size < 1, size**2 / 2, size - 0.5)
        taus = np.array([1, 3, 5]) / 6
        weight = np.where(error < 0, 1 - taus[:, None], taus[:, None])
        assert terms["loss"] == pytest.approx((weight * huber).mean(1).sum())


def test_quantiles_are_fitted_by_the_quantile_huber_loss():
    # Fractions 1/4 and 3/4. Targets: 1 + 0.5 * (2, 6) = 2 and 4.
    agent = linear_agent(
        [[0, 3, 9, 9], [0] * 4],
        [[0] * 4, [2, 6, 0, 0]],
        distributional="quantile",
        atoms=2,
        loss="mse",
    )
    state = np.eye(2, dtype="float32")
    assert agent(state).numpy().tolist() == [[1.5, 9.0], [0.0, 0.0]]
    terms, td_error, moved = update(agent, (0, 1.0, 0.5))
    # Errors: of 0, 2 and 4 (Huber 1.5, 3.5); of 3, -1 and 1 (0.5, 0.5).
    loss = (0.25 * 1.5 + 0.25 * 3.5) / 2 + (0.25 * 0.5 + 0.75 * 0.5) / 2
    assert terms["loss"] == pytest.approx(loss)
    assert td_error == pytest.approx([loss])
    slopes = [(0.25 + 0.25) / 2, (-0.25 + 0.75) / 2]
    np.testing.assert_allclose(
        moved, [[0.1 * slopes[0], 0.1 * slopes[1], 0, 0], [0] * 4], atol=1e-7
    )


@pytest.mark.parametrize(
    ("reward", "discount", "atom"),
    [
        (100.0, 0.0, 2),
        (2.5, 0.5, 2),
        (-0.5, 0.0, 0),
        (-1e6, 0.5, 0),
    ],
)
def test_a_target_beyond_the_support_is_the_last_atom(reward, discount, atom):
    probabilities = np.array([0.125, 0.25, 0.625])
    agent = linear_agent(
        [[*np.log(probabilities), 0, 0, 0], [0] * 6],
        [[0] * 6, [99.0, 0, 0] * 2],
        distributional="categorical",
        atoms=3,
        support=(0, 2),
    )
    terms, _, moved = update(agent, (0, reward, discount))
    assert terms["loss"] == pytest.approx(-math.log(probabilities[atom]))
    # All mass, 1, is on that atom: there the gradient is p - 1.
    expected = -0.1 * (probabilities - (np.arange(3) == atom))
    np.testing.assert_allclose(moved[0, :3], expected, atol=1e-6)


def test_fit_ends_with_averaged_weights_by_default():
    env, averaged, plain = "CartPole-v1", {}, {}
    for found, optimizer in (
        (averaged, "auto"),
        (plain, keras.optimizers.Adam(2e-4)),
    ):
        agent = rl.DQN.for_env(env, hidden=(8,), seed=0)
        agent.compile(optimizer, run_eagerly=True)
        replay = rl.ReplayDataset(env, warm_up=64, rounds_per_epoch=2, seed=0)
        agent.fit(replay, verbose=0)
        found["target"] = agent.target_network.get_weights()
        found["network"] = agent.q_network.get_weights()
    # Targets follow the weights that learn.
    assert_equal_weights(averaged["target"], plain["target"])
    for target, average, last in zip(
        *(plain["target"], averaged["network"], plain["network"]), strict=True
    ):
        # The averages lag behind, as the targets do.
        assert np.abs(average - last).max() > 0.0
        assert np.abs(average - last).max() > np.abs(target - last).max()
