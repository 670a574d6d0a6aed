"""No number, from wherever it comes, leaves weights that are not finite."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from support.agents import EVERY_AGENT
from support.agents import make_eager_agent
from support.agents import slow
from support.errors import raises
from support.faults import GivesNaN
from support.faults import InfiniteAfter
from support.faults import all_variables
from support.faults import assert_same
from support.faults import not_finite
from support.faults import numbers_env
from support.minibatches import bound

over_kinds = pytest.mark.parametrize("name", ["PPO", *slow("SAC", "DQN")])


@pytest.fixture
def case(name):
    return EVERY_AGENT[name]


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("PPO", "reward", 1e30),
        ("SAC", "observation", 3e38),
        *slow(("TD3", "observation", 1e30), ("DQN", "reward", 1e38)),
    ],
)
def test_numbers_without_a_finite_square_leave_finite_weights(case, key, value):
    """`fit` learns, skips updates, or refuses the actions of the policy."""
    env = numbers_env(case, key, value)
    agent, dataset = make_eager_agent(case, env), case.make_dataset(env)
    refused, history = "", {"gradient_norm": [], "skipped_updates": []}
    try:
        history = agent.fit(dataset, epochs=2, verbose=0).history
    except ValueError as error:
        refused = str(error)
    assert not_finite(agent) == []
    if refused:
        assert key == "observation"
        assert "Expected finite actions" in refused
        assert "environment 1" in refused
    # A mean of what was learned from, or of nothing.
    for norm, skipped in zip(
        history["gradient_norm"], history["skipped_updates"], strict=True
    ):
        assert np.isnan(norm) if skipped == 2 else np.isfinite(norm)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [("PPO", "reward", np.nan), ("DQN", "observation", -np.inf)],
)
def test_a_number_that_is_not_finite(case, key, value):
    env = numbers_env(case, key, value)
    agent, dataset = make_eager_agent(case, env), case.make_dataset(env)
    agent.optimizer.build(agent.trainable_variables)
    before = all_variables(agent)
    with raises(f"a finite {key}", f"{value} from environment 1"):
        agent.fit(dataset, verbose=0)
    assert_same(all_variables(agent), before)


@pytest.mark.parametrize("name", ["PPO", *slow("SAC")])
def test_an_infinite_rate_that_is_set_later(case):
    env = numbers_env(case)
    optimizer = keras.optimizers.SGD(0.01)
    agent = make_eager_agent(
        case,
        env,
        compile_arguments={"optimizer": optimizer, "max_skipped_updates": 3},
    )
    dataset = case.make_dataset(env)
    agent.fit(dataset, verbose=0)
    before = all_variables(agent)
    optimizer.learning_rate = np.inf
    with pytest.raises(
        FloatingPointError,
        match=r"[34] updates in a row.* learning rate of inf.*No weight was",
    ):
        agent.fit(dataset, epochs=2, verbose=0)
    optimizer.learning_rate = 0.01
    assert_same(all_variables(agent), before)


@over_kinds
def test_a_schedule_that_becomes_infinite(case):
    env = numbers_env(case)
    agent = make_eager_agent(
        case,
        env,
        compile_arguments={
            "optimizer": keras.optimizers.Adam(InfiniteAfter(1))
        },
        **case.every_update,
    )
    history = agent.fit(case.make_dataset(env), epochs=2, verbose=0).history
    # Of the two updates of a round, one has been made.
    assert history["skipped_updates"] == [1.0, 2.0]
    assert np.isfinite(history["loss"][0])
    assert np.isnan(history["loss"][1])
    assert not_finite(agent) == []


def test_a_rate_that_is_not_finite_is_refused():
    case = EVERY_AGENT["PPO"]
    for rate in (np.inf, np.nan, InfiniteAfter(0)):
        with raises("finite learning rate", "learning_rate=(inf|nan)"):
            make_eager_agent(
                case,
                numbers_env(case),
                compile_arguments={"optimizer": keras.optimizers.SGD(rate)},
            )


@over_kinds
def test_a_network_that_gives_nan(case):
    env = numbers_env(case)
    agent = make_eager_agent(
        case, env, compile_arguments={"max_skipped_updates": 3}
    )
    agent.fit(case.make_dataset(env), verbose=0)
    before = all_variables(agent)
    # A task never changes, but for this.
    object.__setattr__(agent.policy, "encode", GivesNaN(agent.policy.encode))
    # A Discrete action is an index all the same: then updates are skipped. No
    # environment is given NaN.
    with pytest.raises(
        (ValueError, FloatingPointError),
        match=r"finite actions.*nan for environment 0|returns NaN",
    ):
        agent.fit(case.make_dataset(env), epochs=2, verbose=0)
    assert_same(all_variables(agent), before)


# An update by itself, however it is run.


def one_update(case, how, networks=None, **compile_arguments):
    """Returns an agent, its update, and a good and an infinite minibatch."""
    env = numbers_env(case)
    agent = make_eager_agent(
        case,
        env,
        compile_arguments=compile_arguments,
        **case.every_update,
        **(networks or {}),
    )
    batch = bound(case, agent, env)
    agent.optimizer.build(agent.trainable_variables)
    step = agent.train_step
    if how != "eager":
        step = tf.function(step, jit_compile=how == "xla", autograph=False)
    weight = tf.constant([np.inf] + [1.0] * (len(batch["weight"]) - 1))
    return agent, step, batch, {**batch, "weight": weight}


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("PPO", "eager"),
        ("SAC", "graph"),
        *slow(("PPO", "xla"), ("SAC", "xla"), ("TD3", "eager")),
        *slow(("DQN", "graph")),
    ],
)
def test_a_skipped_update_changes_nothing(case, how):
    agent, step, good, bad = one_update(case, how)
    step(good)
    before = all_variables(agent)
    logs = step(bad)
    assert_same(all_variables(agent), before)
    assert int(agent.skipped.in_a_row) == 1
    assert float(logs["skipped_updates"]) == 1.0
    # The means are those of the update that was made.
    assert np.isfinite(float(logs["loss"]))
    step(bad)
    assert int(agent.skipped.in_a_row) == 2
    step(good)
    assert int(agent.skipped.in_a_row) == 0
    after = all_variables(agent)
    assert any((after[index] != before[index]).any() for index in before)
    assert not_finite(agent) == []


@pytest.mark.parametrize(
    ("name", "normalization", "how"),
    [
        ("DQN", "batch", "eager"),
        ("PPO", "spectral", "eager"),
        *slow(("SAC", "batch", "xla")),
    ],
)
def test_weights_that_a_forward_pass_changes_are_put_back(
    case, normalization, how
):
    agent, step, good, bad = one_update(
        case, how, {"normalization": normalization}
    )
    first = all_variables(agent)
    step(good)
    before = all_variables(agent)
    moved = [each.path for each in agent.non_trainable_variables]
    moved = [path for path in moved if "moving" in path or "vector_u" in path]
    assert moved
    changed = [i for i in before if (before[i] != first[i]).any()]
    assert len(changed) > len(agent.trainable_variables)
    step(bad)
    assert_same(all_variables(agent), before)


def test_a_refused_update_of_the_actor_skips_the_critics():
    """The actor's rate is infinite: neither it nor the critics move."""
    case = EVERY_AGENT["TD3"]
    optimizer = keras.optimizers.SGD(0.1)
    agent, step, good, _ = one_update(
        case, "eager", optimizer=optimizer, critic_optimizer="adam"
    )
    step(good)
    before = all_variables(agent)
    optimizer.learning_rate = np.inf
    step(good)
    optimizer.learning_rate = 0.1
    assert_same(all_variables(agent), before)


def test_a_gradient_that_is_finite_and_its_square_is_not():
    """Optimizers store squares: the norm decides, not each number."""
    case = EVERY_AGENT["PPO"]
    agent, step, good, _ = one_update(case, "eager", optimizer="adam")
    before = all_variables(agent)
    step({**good, "returns": good["returns"] + 1e25})
    assert_same(all_variables(agent), before)


@pytest.mark.parametrize("name", ["PPO", *slow("SAC")])
def test_a_loss_scale_falls_and_is_no_fault_of_the_data(case):
    env = numbers_env(case)
    agent = make_eager_agent(case, env, dtype="mixed_float16")
    batch = bound(case, agent, env)
    optimizer = agent.optimizer
    assert isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
    optimizer.build(agent.trainable_variables)
    # Too large for float16: the data is faultless.
    optimizer.dynamic_scale.assign(2.0**26)
    before = [v.numpy() for v in agent.weights]
    made, scales = 0, []
    while not made:
        logs = agent.train_step(batch)
        scales.append(float(optimizer.dynamic_scale))
        made = int(optimizer.iterations)
        assert int(agent.skipped.in_a_row) == 0
        if not made:
            for weight, value in zip(agent.weights, before, strict=True):
                np.testing.assert_array_equal(weight, value)
    assert len(scales) > 5
    assert scales[0] == 2.0**25
    assert float(logs["skipped_updates"]) == len(scales) - 1
    # What no scale helps is a fault, and the scale goes no further.
    optimizer.dynamic_scale.assign(4.0)
    weight = batch["weight"] * np.inf
    for scale, in_a_row in ((2.0, 0), (1.0, 0), (1.0, 1), (1.0, 2)):
        agent.train_step({**batch, "weight": weight})
        assert float(optimizer.dynamic_scale) == scale
        assert int(agent.skipped.in_a_row) == in_a_row


def test_td_errors_of_a_skipped_update_are_nan():
    case = EVERY_AGENT["DQN"]
    env = numbers_env(case)
    agent = make_eager_agent(case, env, loss="mse")
    dataset = case.make_dataset(env, prioritized=True)
    batches = iter(dataset.as_dataset(agent))
    dataset.refresh()
    batch = next(batches)
    agent.optimizer.build(agent.trainable_variables)
    agent.train_step({**batch, "reward": batch["reward"] + 1e30})
    assert np.isnan(agent.td_errors[0].numpy()).all()
    agent.train_step(batch)
    assert np.isfinite(agent.td_errors[0].numpy()).all()


# The end of a training.


@pytest.mark.parametrize("how", [*slow("eager"), "graph", *slow("xla")])
def test_too_many_in_a_row_end_a_training(how):
    case = EVERY_AGENT["A2C"]
    env = numbers_env(case, "reward", 1e30)
    agent = case.make.for_env(env, hidden=(4,), seed=0)
    agent.compile(
        run_eagerly=how == "eager",
        jit_compile=how == "xla",
        max_skipped_updates=4,
    )
    dataset = case.make_dataset(env)
    before = [v.numpy() for v in agent.trainable_variables]
    with pytest.raises(
        FloatingPointError, match=r"4 updates in a row.*No weight was changed"
    ):
        agent.fit(dataset, epochs=9, verbose=0)
    for variable, value in zip(agent.trainable_variables, before, strict=True):
        np.testing.assert_array_equal(variable, value)
    # Another `fit` begins another row.
    assert int(agent.skipped.in_a_row) == 0


def test_minibatches_of_the_users_own_end_a_training_too():
    case = EVERY_AGENT["PPO"]
    agent, _, _, bad = one_update(case, "eager", max_skipped_updates=2)
    agent.train_on_batch(bad)
    with pytest.raises(FloatingPointError, match="2 updates in a row"):
        agent.train_on_batch(bad)
    # Or no number of them does.
    agent.compile(run_eagerly=True, max_skipped_updates=None)
    agent.skipped.in_a_row.assign(10**6)
    agent.train_on_batch(bad)
    assert agent.get_compile_config()["max_skipped_updates"] is None
