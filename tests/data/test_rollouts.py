"""The dataset of rounds, apart from what is strictly on-policy."""

import gymnasium
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.data.shuffling import shuffled_rows
from support.agents import AGENTS
from support.agents import make_agent
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_rollouts
from support.probe_envs import CountingEnv
from support.structured_envs import assert_trees_equal

PPO = AGENTS["PPO"]


def test_numbers_of_a_round():
    rollouts = make_rollouts(
        make_env(num_envs=3),
        horizon=5,
        passes=4,
        batch_size=4,
        rounds_per_epoch=2,
    )
    assert rollouts.steps_per_round == 15
    assert rollouts.minibatches == 4
    assert rollouts.updates_per_round == 16
    assert rollouts.steps_per_epoch == 32


def test_elements_are_as_the_agent_says():
    env = make_env("act_box_matrix")
    agent = make_agent(PPO, env)
    rollouts = make_rollouts(env)
    batches = rollouts.as_dataset(agent)
    spec = agent.sample_spec()
    assert set(batches.element_spec) == {*spec, "weight"}
    rollouts.refresh()
    batch = next(iter(batches))
    for key, one in spec.items():
        assert batch[key].shape == (8, *one.shape)
        assert batch[key].dtype == one.dtype
    assert set(rollouts.samples) == set(spec)
    for key, one in spec.items():
        assert rollouts.samples[key].shape == (16, *one.shape)
        assert rollouts.samples[key].dtype == one.dtype


def test_minibatches_hold_rows_that_belong_together():
    env = rl.envs.as_vector_env(CountingEnv())
    agent = make_agent(PPO, env)
    rollouts = make_rollouts(env)
    batches = iter(rollouts.as_dataset(agent))
    rollouts.refresh()
    samples = rollouts.samples
    seen = []
    batch = next(batches)
    for i, observation in enumerate(batch["observation"].numpy()):
        (row,) = np.flatnonzero((samples["observation"] == observation).all(1))
        seen.append(row)
        for key, value in samples.items():
            np.testing.assert_array_equal(batch[key][i], value[row])
    assert sorted(seen) == list(range(8))
    assert seen != list(range(8))


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
    assert rollouts._scaler.moments.count == pytest.approx(16, abs=0.1)
    assert rollouts.agent is two
    # And back again.
    one.fit(rollouts, epochs=1, verbose=0)
    assert one.env_steps == 48


def test_one_agent_on_two_rollouts():
    """Two environments in turn: a longer and a shorter rollout."""
    sgd = {"optimizer": keras.optimizers.SGD(0.01)}
    agent = make_agent(PPO, make_env(), compile_arguments=sgd)
    first = make_rollouts(make_env())
    second = make_rollouts(make_env(num_envs=3), horizon=4, batch_size=4)
    for rollouts in (first, second, first):
        agent.fit(rollouts, verbose=0)
    assert agent.env_steps == 16 + 12 + 16
    assert agent.optimizer.iterations.numpy() == 2 + 3 + 2


@pytest.mark.parametrize("memory", [None, keras.layers.LSTMCell])
def test_samples_are_the_same_where_an_agent_runs_eagerly(memory):
    env = rl.envs.as_vector_env(CountingEnv(lengths=(6,)))
    given = {} if memory is None else {"memory": memory(4)}
    agent = make_agent(PPO, env, **given)
    # An episode ends in the second rollout alone.
    rollouts = make_rollouts(env, horizon=4, batch_size=4)
    rollouts.bind(agent)
    trajectories = [rollouts.collect() for _ in range(2)]
    assert [len(each.final_index) for each in trajectories] == [0, 1]
    traced = [agent.prepare(each) for each in trajectories]
    agent.run_eagerly = True
    for trajectory, expected in zip(trajectories, traced, strict=True):
        samples, statistics = agent.prepare(trajectory)
        assert_trees_equal(samples, expected[0], rtol=1e-4, atol=1e-5)
        assert statistics == pytest.approx(expected[1], rel=1e-4, abs=1e-5)


def test_an_id_makes_environments():
    rollouts = rl.RolloutDataset(
        "CartPole-v1", horizon=4, batch_size=8, num_envs=2
    )
    assert rollouts.env.num_envs == 2
    rollouts.close()


@pytest.mark.parametrize("valid", [0, 1, 3, 7, 8])
def test_dealing_is_even(valid):
    rows, weight = shuffled_rows(
        np.arange(10, 10 + valid), np.random.default_rng(0), 2, 4, 2
    )
    assert rows.shape == weight.shape == (8, 2)
    for one_pass in range(2):
        part = slice(4 * one_pass, 4 * one_pass + 4)
        counts = weight[part].sum(axis=1)
        assert counts.sum() == valid
        assert counts.max() - counts.min() <= 1
        dealt = rows[part][weight[part] == 1]
        assert sorted(dealt) == list(range(10, 10 + valid))


def test_the_default_batch_fits_any_rollout():
    small = rl.RolloutDataset("CartPole-v1", horizon=16)
    assert small.batch_size == 16
    assert rl.RolloutDataset("CartPole-v1", horizon=512).batch_size == 256
    whole = rl.RolloutDataset("CartPole-v1", horizon=512, batch_size=None)
    assert whole.batch_size == 512
    with pytest.raises(ValueError, match="'all'"):
        rl.RolloutDataset("CartPole-v1", batch_size="all")


@pytest.mark.parametrize(
    "make",
    [
        lambda env, **options: rl.RolloutDataset(env, horizon=8, **options),
        rl.ReplayDataset,
        rl.EvaluationDataset,
    ],
)
def test_arguments_and_wrappers_of_environments(make):
    env = make(
        "Pendulum-v1",
        num_envs=2,
        env_kwargs={"g": 1.5},
        wrappers=[gymnasium.wrappers.ClipAction],
    ).env
    for each in env.env.envs:
        assert each.unwrapped.g == 1.5
        assert isinstance(each, gymnasium.wrappers.ClipAction)
