"""TQC: targets, losses and gradients by hand."""

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.deterministic import BATCH
from support.deterministic import UNIT
from support.deterministic import linear_critic
from support.deterministic import linear_network
from support.deterministic import small_agent
from support.deterministic import squashed_policy
from support.errors import raises

ALPHA = 0.5
MINIBATCH = {
    key: keras.ops.convert_to_tensor(value, "float32")
    for key, value in {
        **BATCH,
        "action": np.array([[0.5], [-1.0], [0.2]]),
    }.items()
}


def make_agent(*critics, actor=((0.0, 0.0), (0.0, 0.0)), **settings):
    """An agent of linear networks with three quantiles, of plain SGD."""
    agent = rl.TQC(
        linear_network(*actor, "actor"),
        [linear_critic(*c, name=f"critic_{i}") for i, c in enumerate(critics)],
        observation_space=UNIT,
        action_space=UNIT,
        **{
            "seed": 0,
            "atoms": 3,
            "top_quantiles_to_drop": 1,
            "temperature": ALPHA,
            "target_entropy": -1.0,
            "num_critics": len(critics),
            **settings,
        },
    )
    agent.compile(keras.optimizers.SGD(1.0), run_eagerly=True)
    return agent


@pytest.mark.parametrize(
    ("dropped", "kept"),
    [(0, [0, 1, 2, 3, 5, 10]), (1, [0, 1, 2, 3]), (2, [0, 1])],
)
def test_targets_are_of_the_smallest_quantiles_of_all_critics(dropped, kept):
    agent = make_agent(
        (0.0, 0.0, [1.0, 5.0, 3.0]),
        (0.0, 0.0, [2.0, 10.0, 0.0]),
        top_quantiles_to_drop=dropped,
    )
    _, log_prob = agent.sample_with_log_prob(MINIBATCH["next_observation"], 0)
    soft = np.array(kept) - ALPHA * np.array(log_prob)[:, None]
    expected = BATCH["reward"][:, None] + BATCH["discount"][:, None] * soft
    np.testing.assert_allclose(agent.targets(MINIBATCH), expected, rtol=1e-5)


def test_critics_learn_by_the_quantile_huber_loss():
    agent = make_agent((0.0, 0.0, [0.0, 1.0, 3.0]), (0.0, 0.0, [1.0] * 3))
    last = {key: value[:1] for key, value in MINIBATCH.items()}
    last["discount"] = keras.ops.zeros((1,))
    logs = agent.train_step(last)
    # The return is 1: errors 1, 0 and -2 of the fractions 1/6, 1/2 and 5/6,
    # whose Huber losses are 1/2, 0 and 3/2.
    expected = (1 / 6) * 0.5 + (1 - 5 / 6) * 1.5
    assert float(logs["critic_loss"]) == pytest.approx(expected)
    assert float(logs["q_value"]) == pytest.approx(4 / 3)
    # Quantiles move by their weight, of Huber's slope of 1 or -1.
    bias = agent.critics[0].get_weights()[1]
    np.testing.assert_allclose(bias, [1 / 6, 1.0, 3.0 - 1 / 6], rtol=1e-5)
    np.testing.assert_allclose(agent.critics[1].get_weights()[1], 1.0)


def test_the_policy_maximises_the_mean_of_all_quantiles():
    agent = make_agent(
        (1.0, [1.0, 2.0, 6.0], [0.0, 1.0, 2.0]),
        (0.0, [-1.0, 0.0, 4.0], 1.0),
        actor=((0.3, -0.2), (0.1, -0.5)),
    )
    observation = BATCH["observation"]
    outputs = observation * [0.3, -0.2] + [0.1, -0.5]
    noise = np.array(agent.draw_normal((3, 1), 1))
    action, log_prob = squashed_policy(outputs, noise)
    # Means of the critics: s + 3 a + 1 and a + 1.
    value = (observation + 4.0 * action + 2.0)[:, 0] / 2.0
    terms = agent.actor_terms(MINIBATCH)
    assert float(terms["actor_loss"]) == pytest.approx(
        -np.mean(BATCH["weight"] * (value - ALPHA * log_prob)), rel=1e-5
    )


def test_what_does_not_fit_is_refused():
    with raises("TQC can act in, Box", "Discrete"):
        small_agent(rl.TQC, "act_discrete")
    for number in (-1, 25, 1.5):
        with raises("top_quantiles_to_drop", str(number)):
            small_agent(rl.TQC, top_quantiles_to_drop=number)
    with raises("atoms", "1"):
        small_agent(rl.TQC, atoms=1)
    with raises("critic's output to have 3 units", "1 units"):
        make_agent((0.0,), (0.0,))


@pytest.mark.learning
def test_tqc_swings_the_pendulum_up():
    found = []
    for seed in range(3):
        agent = rl.TQC.for_env("Pendulum-v1", seed=seed)
        replay = rl.ReplayDataset("Pendulum-v1", seed=seed)
        agent.fit(replay, total_steps=10_000, verbose=0)
        result = agent.evaluate("Pendulum-v1", 20, num_envs=20, seed=1000)
        found.append(result["episode_return"])
    # Published of SAC after twice as many steps: -157.0.
    assert np.median(found) >= -157.0 * 1.1
