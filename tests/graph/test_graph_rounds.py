"""A round in the graph equals one that Python makes of the same steps."""

from typing import Any

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

import keras_rl2 as rl
from keras_rl2.basics.shapes import Tensor
from keras_rl2.collecting.collector import EpisodeStatistics
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.envs.graph import random_numbers
from keras_rl2.graph.graph_rollout import Totals
from keras_rl2.graph.graph_rollout import last_episodes
from keras_rl2.graph.graph_rollout import roll_out
from keras_rl2.graph.graph_rounds import scale_rewards
from keras_rl2.graph.graph_rounds import trajectory_arrays
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.training.rounds import GraphRound


def rollouts(num_envs: int = 4, seed: int = 0, **given: Any) -> Any:
    """Returns a dataset over environments in the graph."""
    env = rl.envs.GraphVectorEnv("CartPole-v1", num_envs=num_envs)
    settings = {"horizon": 16, "passes": 2, "batch_size": 16} | given
    return rl.RolloutDataset(env, seed=seed, **settings)


def collected(num_envs: int, horizon: int) -> tuple[Any, Any]:
    """Returns an agent and a rollout of it, with arrays in place of tensors."""
    env = rl.envs.GraphVectorEnv("CartPole-v1", num_envs=num_envs)
    env.reset(seed=0)
    agent = rl.PPO.for_env(env, hidden=(8,), seed=0)
    noise, _ = agent.noise.draw(np.random.default_rng(0), (horizon, num_envs))
    totals = Totals(*(tf.zeros(num_envs), tf.zeros(num_envs)))

    @tf.function(autograph=False)
    def run() -> Any:
        return roll_out(
            agent.policy, env, env.read(), totals, tf.constant(noise)
        )

    _, _, rollout = run()
    return agent, rollout


def as_trajectory(rollout: Any) -> Trajectory:
    """Returns a rollout in the form of those that Python collects."""
    arrays = map_leaves(
        ops.convert_to_numpy, trajectory_arrays(rollout, rollout.reward)
    )
    following = arrays.pop("next_observation")
    (index,) = np.nonzero((arrays["terminated"] | arrays["truncated"]).ravel())
    last = following[-1:]
    return Trajectory(
        **arrays
        | {
            "observation": np.concatenate([arrays["observation"], last]),
            "final_observation": following.reshape(-1, 4)[index],
            "final_index": index.astype(np.int32),
        }
    )


def test_samples_equal_those_of_the_same_trajectory() -> None:
    agent, rollout = collected(num_envs=3, horizon=64)
    expected, statistics = agent.prepare(as_trajectory(rollout))
    found, found_statistics = agent.rollout_samples.prepared(
        trajectory_arrays(rollout, rollout.reward)
    )
    for key, value in found.items():
        np.testing.assert_allclose(value, expected[key], rtol=1e-4, atol=1e-4)
    assert float(found_statistics["explained_variance"]) == pytest.approx(
        statistics["explained_variance"], abs=1e-4
    )


def test_episodes_are_counted_as_python_counts_them() -> None:
    _, rollout = collected(num_envs=3, horizon=200)
    expected = EpisodeStatistics(3, window=100)
    expected.count(as_trajectory(rollout))
    count, returns, lengths = last_episodes(rollout)
    ended = len(expected.returns)
    assert 10 < ended < 100
    assert int(count) == ended
    assert returns.numpy()[-ended:].tolist() == list(expected.returns)
    assert lengths.numpy()[-ended:].tolist() == list(expected.lengths)


def test_rewards_are_scaled_as_python_scales_them() -> None:
    generator = np.random.default_rng(0)
    scaler = rl.envs.RewardScaler(gamma=0.9, num_envs=5)
    for largest in (1.0, 1.0, 1e6, 1e6):
        reward = generator.normal(size=(100, 5)).astype(np.float32)
        # An outlier, which moves the scale no further.
        reward[60, 2] *= largest
        ended = generator.random((100, 5)) < 0.05
        state = scaler.as_array()
        scaled, after = scale_rewards(
            scaler, 0.9, *map(tf.constant, (state, reward, ended))
        )
        expected = scaler.scale_rollout(reward, ended)
        np.testing.assert_allclose(scaled, expected, rtol=1e-6)
        np.testing.assert_allclose(after, scaler.as_array(), rtol=1e-9)


def test_each_step_is_trained_on_once_in_a_pass() -> None:
    data = rollouts(horizon=7, passes=3, batch_size=10)
    agent = rl.PPO.for_env(data.env, hidden=(8,), seed=0)
    data.bind(agent)
    rounds = data.graph_rounds()
    arguments = rounds.begin(1)
    one_round, *_ = rounds(
        map_leaves(lambda each: tf.constant(each[0]), arguments["inputs"]),
        map_leaves(tf.constant, arguments["carried"]),
        from_trajectory=False,
    )
    rows, weight = one_round["rows"].numpy(), one_round["weight"].numpy()
    assert rows.shape == weight.shape == (9, 10)
    for each in range(3):
        part = slice(3 * each, 3 * each + 3)
        taken = rows[part][weight[part] > 0]
        assert sorted(taken.tolist()) == list(range(28))
    assert rows[:3].tolist() != rows[3:6].tolist()


class Failing(rl.envs.GraphEnv):
    """Gives a number that is not finite after some steps."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, of_reward: bool, at: int = 68) -> None:
        self._of_reward, self._at = of_reward, at

    def reset(self, seed: Tensor) -> tuple[Tensor, Tensor]:
        observation = random_numbers.uniform(seed, (2,))
        return ops.zeros((), "int32"), observation

    def step(
        self, state: Tensor, action: Tensor, seed: Tensor
    ) -> tuple[Any, ...]:
        number = ops.where(state == self._at, float("nan"), 1.0)
        observation = random_numbers.uniform(seed, (2,))
        reward = ops.ones(())
        if self._of_reward:
            reward = number
        else:
            observation = observation * number
        return state + 1, observation, reward, False, False


@pytest.mark.parametrize(
    "of_reward", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_a_round_is_one_call(of_reward: bool) -> None:
    env = rl.envs.GraphVectorEnv(Failing(of_reward), num_envs=2)
    data = rl.RolloutDataset(env, horizon=16, passes=2, batch_size=16, seed=0)
    agent = rl.PPO.for_env(env, hidden=(8,), seed=0)
    agent.fit(data, epochs=3, verbose=0)
    assert isinstance(agent.rounds, GraphRound)
    assert agent.env_steps == 3 * data.steps_per_round
    assert data.env.steps == 0
    # Python goes on where the graph has come to.
    expected = data.env.env.observations()
    np.testing.assert_array_equal(data.collect().observation[0], expected)
    # A number that is not finite changes no weight.
    before, steps = agent.get_weights(), agent.env_steps
    what = "reward" if of_reward else "observation"
    with pytest.raises(
        ValueError, match=f"finite {what}.*environment 0.*step 4"
    ):
        agent.fit(data, epochs=1, verbose=0)
    assert agent.env_steps == steps
    np.testing.assert_equal(before, agent.get_weights())


@pytest.mark.slow
@pytest.mark.parametrize("on_policy", [True, False])
def test_rounds_after_unusable_numbers_are_not_made(on_policy: bool) -> None:
    found = []
    for rounds in (1, 4):
        env = rl.envs.GraphVectorEnv(Failing(True, 29), num_envs=2)
        if on_policy:
            data = rl.RolloutDataset(
                env, horizon=8, passes=1, rounds_per_epoch=8, seed=0
            )
            agent = rl.A2C.for_env(env, hidden=(8,), seed=0)
        else:
            data = rl.ReplayDataset(
                env,
                steps_per_round=16,
                rounds_per_epoch=8,
                warm_up=0,
                updates_per_round=1,
                batch_size=4,
                seed=0,
            )
            agent = rl.DQN.for_env(env, hidden=(8,), seed=0)
        data.bind(agent)
        agent.compile(steps_per_execution=rounds * data.updates_per_round)
        with pytest.raises(ValueError, match=r"finite reward.*at step 5 of"):
            agent.fit(data, verbose=0)
        assert agent.env_steps == 3 * 16
        found.append(agent.get_weights())
    np.testing.assert_equal(*found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "made",
    [
        lambda env: rl.PPO.for_env(
            env, memory=keras.layers.GRUCell(4), hidden=(8,), seed=0
        ),
        lambda env: rl.REINFORCE.for_env(env, hidden=(8,), seed=0),
    ],
    ids=["recurrent", "whole episodes"],
)
def test_other_agents_are_trained_as_with_any_environment(made: Any) -> None:
    env = rl.envs.GraphVectorEnv("CartPole-v1", num_envs=2)
    data = rl.RolloutDataset(env, seed=0, horizon=32)
    agent = made(env)
    history = agent.fit(data, epochs=1, verbose=0).history
    assert data.graph_rounds() is None
    assert np.isfinite(history["loss"]).all()


class Masked(rl.envs.GraphEnv):
    """Forbids the action of the last step, and pays -1 where it is taken."""

    observation_space = gymnasium.spaces.Dict(
        {
            "observation": gymnasium.spaces.Dict(
                {
                    "time": gymnasium.spaces.Box(0.0, 9.0, (1,)),
                    "last": gymnasium.spaces.Discrete(3),
                }
            ),
            "action_mask": gymnasium.spaces.MultiBinary(3),
        }
    )
    action_space = gymnasium.spaces.Discrete(3)
    max_episode_steps = 9

    def reset(self, seed: Tensor) -> tuple[Any, Any]:
        state = {
            "time": ops.zeros(()),
            "last": random_numbers.integers(seed, (), 0, 3),
        }
        return state, self._observed(state)

    def step(self, state: Any, action: Tensor, seed: Tensor) -> tuple[Any, ...]:
        reward = ops.where(action == state["last"], -1.0, 1.0)
        state = {"time": state["time"] + 1.0, "last": ops.cast(action, "int32")}
        return state, self._observed(state), reward, False, False

    def _observed(self, state: Any) -> Any:
        return {
            "observation": {"time": state["time"][None], "last": state["last"]},
            "action_mask": ops.arange(3, dtype="int32") != state["last"],
        }


@pytest.mark.slow
def test_masks_and_dicts_are_heeded_in_the_graph() -> None:
    env = rl.envs.GraphVectorEnv(Masked, num_envs=4)
    data = rl.RolloutDataset(env, horizon=18, passes=1, batch_size=24, seed=0)
    agent = rl.PPO.for_env(env, hidden=(8,), seed=0)
    history = agent.fit(data, epochs=3, verbose=0).history
    assert isinstance(agent.rounds, GraphRound)
    # No forbidden action was ever taken.
    assert history["episode_return"] == [9.0] * 3
    assert history["episode_length"] == [9.0] * 3
