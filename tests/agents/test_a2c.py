"""A2C: one forward pass for an update, and numbers worked out by hand."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv

import keras_rl2 as rl
from keras_rl2.envs import as_vector_env
from keras_rl2.training.rounds import TrajectoryRound
from support import golden
from support.agents import AGENTS
from support.agents import assert_equal_weights
from support.agents import differ
from support.agents import make_agent
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_rollouts
from support.agents import slow
from support.agents import weights_of
from support.probe_envs import CountingEnv
from support.probe_envs import NonFiniteEnv
from support.tabular import a_batch
from support.tabular import tabular
from support.tabular import terms_of

CASE = AGENTS["A2C"]


def counting_env(mode=AutoresetMode.SAME_STEP, num_envs=2):
    """Episodes of 3, 1 and 5 steps, of which the second kind is cut off."""
    makers = [lambda i=i: CountingEnv(i) for i in range(num_envs)]
    return as_vector_env(SyncVectorEnv(makers, autoreset_mode=mode))


def whole_rollouts(env, **arguments):
    """Makes rollouts of one update a round."""
    return make_rollouts(env, **{"batch_size": None, **arguments})


# One forward pass.


class CountedDense(keras.layers.Dense):
    """Counts, while `on`, how often it is run, and on how many rows."""

    def __init__(self, *arguments, **kwargs):
        super().__init__(*arguments, **kwargs)
        # In a list that Keras does not take for weights of its own.
        self.counter = lambda: None
        self.counter.calls = tf.Variable(0)
        self.counter.rows = tf.Variable(0)
        self.counter.on = False

    def call(self, inputs, training=None):
        if self.counter.on:
            self.counter.calls.assign_add(1)
            self.counter.rows.assign_add(tf.shape(inputs)[0])
        return super().call(inputs)


def counted_networks(shared):
    """Returns networks, and the layer of each that counts."""
    inputs = keras.Input((3,))
    layers = [CountedDense(8, "tanh") for _ in range(1 if shared else 2)]
    hidden = [layer(inputs) for layer in layers]
    policy = keras.layers.Dense(3)(hidden[0])
    value = keras.layers.Dense(1)(hidden[-1])
    if shared:
        return [keras.Model(inputs, [policy, value])], layers
    return [keras.Model(inputs, policy), keras.Model(inputs, value)], layers


def count_three_rounds(agent, layers):
    """Returns calls and rows of each layer in three rounds of one update."""
    rollouts = whole_rollouts(make_env())
    rollouts.bind(agent)
    # Traces acting, which is not counted.
    rollouts.collect()
    for layer in layers:
        layer.counter.on = True
    agent.fit(rollouts, epochs=3, verbose=0)
    assert agent.optimizer.iterations.numpy() == 3
    return [
        (int(layer.counter.calls), int(layer.counter.rows)) for layer in layers
    ]


@pytest.mark.parametrize("jit_compile", [False, *slow(True)])
def test_a_shared_trunk_runs_once_for_an_update(jit_compile):
    networks, layers = counted_networks(shared=True)
    agent = rl.A2C(*networks)
    agent.compile("sgd", jit_compile=jit_compile)
    # 8 steps of 2 environments, 2 rows to act on next, room for 16 final ones.
    assert count_three_rounds(agent, layers) == [(3, 3 * (16 + 2 + 16))]


def test_two_networks_run_once_each_under_two_optimizers():
    networks, layers = counted_networks(shared=False)
    agent = rl.A2C(*networks)
    agent.compile("sgd", critic_optimizer="adam", jit_compile=False)
    assert count_three_rounds(agent, layers) == [
        (3, 3 * 16),
        (3, 3 * (16 + 2 + 16)),
    ]


# What one pass gives is what two give.

NORMALISED = {
    "gae_lambda": 0.8,
    "normalize_advantages": True,
    "normalize_observations": True,
}


def after_an_update(mode, fused, jit_compile=False, **settings):
    """Returns an agent and the history of its first update."""
    env = counting_env(mode)
    agent = make_agent(
        CASE,
        env,
        gamma=0.9,
        max_gradient_norm=None,
        entropy_coefficient=0.01,
        compile_arguments={
            "optimizer": keras.optimizers.SGD(1e-3),
            "jit_compile": jit_compile,
            "run_eagerly": not fused,
        },
        **settings,
    )
    agent.learns_from_trajectories = fused
    start = weights_of(agent)
    trajectories = []
    agent.observers.add(trajectories.append)
    history = agent.fit(whole_rollouts(env), verbose=0).history
    assert not fused or isinstance(agent.rounds, TrajectoryRound)
    trajectory = trajectories[-1]
    # Ends of either kind; final observations, or rows that are only resets.
    assert trajectory.terminated.any()
    assert trajectory.truncated.any()
    reset_rows = mode == AutoresetMode.NEXT_STEP
    assert len(trajectory.final_index) == (0 if reset_rows else 4)
    assert trajectory.valid.all() != reset_rows
    assert differ(agent.get_weights(), start)
    return agent, history


@pytest.mark.parametrize(
    ("mode", "jit_compile", "settings"),
    [
        (AutoresetMode.SAME_STEP, False, NORMALISED),
        *slow(
            (AutoresetMode.NEXT_STEP, False, {}),
            (AutoresetMode.DISABLED, False, NORMALISED),
            (AutoresetMode.SAME_STEP, True, {}),
        ),
    ],
)
def test_one_pass_equals_two(mode, jit_compile, settings):
    prepared, expected = after_an_update(mode, fused=False, **settings)
    fused, history = after_an_update(mode, True, jit_compile, **settings)
    for one, other in zip(
        fused.get_weights(), prepared.get_weights(), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    for key in fused.statistics_names:
        np.testing.assert_allclose(
            history[key], expected[key], rtol=1e-4, atol=1e-5, err_msg=key
        )
    assert history["env_steps"] == expected["env_steps"]


@pytest.mark.parametrize(
    "mode",
    [
        AutoresetMode.NEXT_STEP,
        *slow(AutoresetMode.SAME_STEP, AutoresetMode.DISABLED),
    ],
)
def test_non_finite_values_change_no_weight(mode):
    # Step 10 is the last of an episode: its observation is a final one.
    makers = [lambda: NonFiniteEnv(-1), lambda: NonFiniteEnv(10, "observation")]
    env = as_vector_env(SyncVectorEnv(makers, autoreset_mode=mode))
    agent = make_agent(CASE, env, normalize_observations=True)
    rollouts = whole_rollouts(env)
    agent.fit(rollouts, verbose=0)
    assert isinstance(agent.rounds, TrajectoryRound)
    state = [*agent.variables, *agent.optimizer.variables]
    before = [v.numpy() for v in state]
    with pytest.raises(ValueError, match="nan from environment 1 at step"):
        agent.fit(rollouts, verbose=0)
    # But for the statistics, which a round that begins puts into use.
    same = [
        (v.numpy(), old)
        for v, old in zip(state, before, strict=True)
        if "normalization" not in v.path and "sums" not in v.path
    ]
    assert len(same) >= 2 * len(agent.trainable_variables)
    assert_equal_weights(*(list(side) for side in zip(*same, strict=True)))
    assert agent.env_steps == 16
    agent.fit(rollouts, verbose=0)
    assert all(np.isfinite(weight).all() for weight in agent.get_weights())


# Numbers.


def published(case_id):
    (case,) = (c for c in golden.load_cases() if c["id"] == case_id)
    return case["inputs"], case["expected"]


def test_loss_and_update_are_those_of_trfl():
    """The numbers are those of trfl's own example.

    trfl sums the losses of 2 steps, where `A2C` takes their mean, and halves
    the square of the error.
    """
    inputs, expected = published("a2c_loss/trfl_sequence")
    agent = tabular(
        inputs["logits"],
        inputs["values"],
        make=rl.A2C,
        value_coefficient=inputs["baseline_cost"] / 2,
        entropy_coefficient=inputs["entropy_cost"],
    )
    returns = np.array(expected["returns"])
    batch = a_batch(
        action=inputs["actions"],
        advantage=returns - inputs["values"],
        returns=returns,
        value=inputs["values"],
    )
    terms = {key: 2 * value for key, value in terms_of(agent, batch).items()}
    for ours, theirs in (
        ("loss", "loss"),
        ("policy_loss", "policy_gradient_loss"),
        ("entropy", "entropy"),
    ):
        assert terms[ours] == pytest.approx(expected[theirs], rel=1e-5)
    value_loss = agent.value_coefficient * terms["value_loss"]
    assert value_loss == pytest.approx(expected["baseline_loss"], rel=1e-5)
    _, expected = published("a2c_grad/trfl_total")
    before = weights_of(agent)
    agent.train_step(batch)
    steps = [
        2 * (a - b) for a, b in zip(before, agent.get_weights(), strict=True)
    ]
    np.testing.assert_allclose(steps[0], expected["grad_logits"], atol=1e-4)
    np.testing.assert_allclose(
        steps[1][:, 0], expected["grad_values"], atol=1e-4
    )


def test_minibatches_can_be_had_after_training_on_trajectories():
    agent = make_eager_agent(CASE, make_env(), normalize_observations=True)
    rollouts = whole_rollouts(make_env())
    agent.fit(rollouts, epochs=1, verbose=0)
    assert isinstance(agent.optimizer, keras.optimizers.Adam)
    # To look at samples takes no part in normalization.
    before = [float(layer.count) for layer in agent.normalizing.layers]
    assert before == [agent.env_steps] * 2
    assert "advantage" in rollouts.samples
    assert [float(layer.count) for layer in agent.normalizing.layers] == before
    batches = rollouts.as_dataset(agent)
    rollouts.refresh()
    assert "advantage" in next(iter(batches))
    # And back again.
    agent.fit(rollouts, epochs=1, verbose=0)
