"""`RolloutDataset`; `test_on_policy.py` tests the age of its weights."""

import gc
import weakref

import gymnasium
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.agents import KINDS
from support.agents import make_agent
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_rollouts
from support.datasets import state_of
from support.errors import raises

PPO = KINDS["PPO"]


def test_numbers_of_a_round():
    rollouts = make_rollouts(
        make_env(num_envs=3),
        horizon=5,
        passes=4,
        batch_size=4,
        rounds_per_epoch=2,
    )
    expected = {
        "rounds_per_epoch": 2,
        "seed": 0,
        "horizon": 5,
        "passes": 4,
        "scale_rewards": False,
        "steps_per_round": 15,
        "batch_size": 4,
        "minibatches": 4,
        "updates_per_round": 16,
        "num_envs": 3,
    }
    for name in ("steps_per_round", "minibatches", "updates_per_round"):
        assert getattr(rollouts, name) == expected[name]
    assert rollouts.steps_per_epoch == 32
    # Whether rewards are scaled is known when it is bound.
    known = {k: v for k, v in expected.items() if k != "scale_rewards"}
    assert rollouts.settings() == known
    # What it is bound to and what it collects are none.
    rollouts.bind(make_agent(PPO, make_env(num_envs=3)))
    rollouts.refresh()
    assert rollouts.settings() == expected


@pytest.mark.parametrize(
    ("settings", "needed", "rounds"),
    [
        ({"horizon": 10}, 7, 7),
        ({"horizon": 10}, 100, 50),
        # Three rounds of 340 steps; four leave no round over.
        ({"horizon": 170}, 9, 3),
        ({"horizon": 170}, 8, 4),
        ({"horizon": 10, "rounds_per_epoch": 2}, 100, 2),
        ({}, 100, 1),
    ],
)
def test_an_epoch_of_total_steps_has_a_thousand_at_least(
    settings, needed, rounds
):
    rollouts = rl.RolloutDataset("CartPole-v1", num_envs=2, **settings)
    rollouts.bind(rl.PPO.for_env(rollouts.env, hidden=(4,), seed=0))
    assert rollouts.rounds_of_epoch(needed) == rounds


def test_minibatches_are_rows_of_the_samples_that_the_agent_names():
    env = make_env("act_box_matrix")
    agent = make_agent(PPO, env)
    rollouts = make_rollouts(env)
    batches = rollouts.as_dataset(agent)
    spec = agent.sample_spec()
    assert set(batches.element_spec) == {*spec, "weight"}
    rollouts.refresh()
    samples = rollouts.samples
    batch = next(iter(batches))
    assert set(samples) == set(spec)
    for key, one in spec.items():
        assert batch[key].shape == (8, *one.shape)
        assert batch[key].dtype == samples[key].dtype == one.dtype
        assert samples[key].shape == (16, *one.shape)
    seen = []
    for i, log_prob in enumerate(batch["log_prob"].numpy()):
        (row,) = np.flatnonzero(samples["log_prob"] == log_prob)
        seen.append(row)
        for key, value in samples.items():
            np.testing.assert_array_equal(batch[key][i], value[row])
    assert len(set(seen)) == 8
    assert seen != sorted(seen)


def test_a_dataset_lives_as_long_as_its_minibatches():
    dataset = make_rollouts(make_env())
    agent = make_eager_agent(PPO, make_env())
    kept = iter(dataset.as_dataset(agent).map(dict).prefetch(1))
    dataset.refresh()
    source = weakref.ref(dataset)
    del dataset
    gc.collect()
    assert len(next(kept)["observation"]) == source().batch_size
    del kept
    gc.collect()
    assert source() is None


def test_a_new_agent_on_old_rollouts():
    """The second agent acts, and the first one's rewards do not scale its."""
    env = make_env()
    rollouts = make_rollouts(env, scale_rewards=True)
    one, two = (
        make_eager_agent(
            PPO,
            env,
            seed=seed,
            gamma=0.5,
            compile_arguments={"optimizer": keras.optimizers.SGD(0.01)},
        )
        for seed in (0, 1)
    )
    one.fit(rollouts, epochs=2, verbose=0)
    two.fit(rollouts, epochs=1, verbose=0)
    assert (one.env_steps, two.env_steps) == (32, 16)
    assert state_of(rollouts)["scaler"]["moments"]["count"] == pytest.approx(
        16, abs=0.1
    )
    assert rollouts.agent is two
    # And back again.
    one.fit(rollouts, epochs=1, verbose=0)
    assert one.env_steps == 48


OWN = rl.data.OwnRollout(steps=64, passes=3, batch_size=16, shortest=8)


class Choosing(rl.PPO):
    """PPO with a round of its own that is quickly made."""

    @classmethod
    def own_rollout(cls, observation_space):
        return OWN


@pytest.fixture(scope="module")
def choosing():
    return Choosing.for_env("CartPole-v1", hidden=(4,), seed=0)


def test_the_algorithm_chooses_missing_arguments(choosing):
    names = ("horizon", "passes", "batch_size", "scale_rewards")
    for num_envs, given, expected in (
        (1, {}, (64, 3, 16, True)),
        (4, {}, (16, 3, 16, True)),
        # Each environment takes a while, and minibatches grow instead.
        (32, {}, (8, 3, 64, True)),
        (3, {}, (24, 3, 16, True)),
        (1, {"horizon": 10}, (10, 3, 10, True)),
        (1, {"passes": 2, "scale_rewards": False}, (64, 2, 16, False)),
        (1, {"batch_size": None}, (64, 3, 64, True)),
        (2, {"batch_size": 100}, (50, 3, 100, True)),
    ):
        rollouts = rl.RolloutDataset("CartPole-v1", num_envs=num_envs, **given)
        rollouts.bind(choosing)
        found = tuple(getattr(rollouts, name) for name in names)
        assert found == expected, (num_envs, given)
        horizon, passes, batch_size, _ = expected
        assert rollouts.steps_per_round == horizon * num_envs
        minibatches = -(-horizon * num_envs // batch_size)
        assert rollouts.updates_per_round == passes * minibatches
        own = {*rollouts.own_settings()} - {"rounds_per_epoch"}
        assert own == {*names} - {*given}
        for name in names:
            star = "*" * (name not in given)
            assert f"{name}={getattr(rollouts, name)}{star}" in repr(rollouts)


def test_settings_are_unknown_before_an_agent_is_bound():
    rollouts = rl.RolloutDataset("CartPole-v1", passes=2)
    assert repr(rollouts) == (
        "<RolloutDataset CartPole-v1: num_envs=1, rounds_per_epoch=1>"
    )
    with pytest.raises(AttributeError, match="no attribute 'horizon'"):
        _ = rollouts.horizon
    whole = rl.RolloutDataset("CartPole-v1", 512, 1, None)
    assert whole.batch_size == whole.steps_per_round == 512
    with raises("`batch_size`", "batch_size='all'"):
        rl.RolloutDataset("CartPole-v1", batch_size="all")


@pytest.mark.parametrize(("shape", "passes"), [((8, 8, 3), 4), ((3,), 10)])
def test_pictures_are_passed_over_less_often(shape, passes):
    space = gymnasium.spaces.Dict(
        {"seen": gymnasium.spaces.Box(0, 255, shape, "uint8")}
    )
    assert rl.PPO.own_rollout(space).passes == passes


def test_another_agent_has_rounds_of_its_own(choosing):
    rollouts = rl.RolloutDataset("CartPole-v1", seed=0)
    rollouts.bind(choosing)
    rollouts.refresh()
    other = rl.REINFORCE.for_env("CartPole-v1", hidden=(4,), seed=0)
    rollouts.bind(other)
    # An episode of CartPole-v1 is that long at most.
    assert rollouts.horizon == 500
    assert rollouts.updates_per_round == 1
    rollouts.refresh()
    assert rollouts.samples["action"].shape == (500,)


def test_rounds_of_an_agent_hold_whole_sequences(choosing):
    rollouts = rl.RolloutDataset("CartPole-v1", sequence_length=48)
    remembering = Choosing.for_env(
        "CartPole-v1", memory=keras.layers.GRUCell(4), hidden=(4,), seed=0
    )
    rollouts.bind(remembering)
    assert rollouts.horizon == 96
    # At least four of them, or all that there are.
    assert rollouts.batch_size == 96


@pytest.mark.parametrize(
    "make", [rl.RolloutDataset, rl.ReplayDataset, rl.EvaluationDataset]
)
def test_arguments_and_wrappers_of_environments(make):
    env = make(
        "Pendulum-v1",
        num_envs=2,
        env_kwargs={"g": 1.5},
        wrappers=[gymnasium.wrappers.ClipAction],
    ).env
    assert env.num_envs == 2
    for each in env.env.envs:
        assert each.unwrapped.g == 1.5
        assert isinstance(each, gymnasium.wrappers.ClipAction)


def test_a_refused_agent_leaves_the_dataset_unchanged():
    rollouts = rl.RolloutDataset("CartPole-v1", num_envs=2, seed=0)
    agent = rl.PPO.for_env(rollouts.env, hidden=(4,), seed=0)
    rollouts.bind(agent)
    before = repr(rollouts)
    with pytest.raises(ValueError, match="Received"):
        rollouts.bind(rl.A2C.for_env("Acrobot-v1", hidden=(4,), seed=0))
    assert rollouts.agent is agent
    assert repr(rollouts) == before
    rollouts = rl.RolloutDataset("CartPole-v1", sequence_length=16)
    for _ in range(2):
        with pytest.raises(ValueError, match="sequence"):
            rollouts.bind(agent)
    assert rollouts.agent is None


def test_whole_episodes_in_whole_sequences():
    rollouts = rl.RolloutDataset(
        "CartPole-v1", sequence_length=64, num_envs=2, seed=0
    )
    agent = rl.REINFORCE.for_env(
        rollouts.env, hidden=(4,), memory=keras.layers.GRUCell(4), seed=0
    )
    rollouts.bind(agent)
    assert rollouts.horizon == 512
