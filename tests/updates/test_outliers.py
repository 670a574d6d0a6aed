"""A single outlier among the observations or rewards of a run."""

import types

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import keras_rl2 as rl
from support.agents import EITHER_DATASET
from support.agents import assert_equal_weights
from support.agents import make_eager_agent
from support.agents import make_env
from support.any_space_env import AnySpaceEnv
from support.errors import raises

SPACE = spaces.Dict(
    {
        "noise": spaces.Box(-np.inf, np.inf, (2,), np.float32),
        "place": spaces.Box(-np.inf, np.inf, (1,), np.float32),
    }
)
KEYS = {"clipped_observations", "clipped_rewards"}


class OutlierEnv(gymnasium.Env):
    """Episodes of 20 steps; in step 305 of its life, `key` is `value`."""

    observation_space = SPACE
    action_space = spaces.Discrete(2)

    def __init__(self, key=None, value=0.0):
        self._key, self._value = key, value
        self._taken = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._observe(), {}

    def step(self, action):
        self._taken += 1
        reward, observation = float(action), self._observe()
        if self._taken == 305 and self._key == "reward":
            reward = self._value
        if self._taken == 305 and self._key == "observation":
            observation["place"][:] = self._value
        return observation, reward, False, self._taken % 20 == 0, {}

    def _observe(self):
        normal = self.np_random.normal
        return {
            "noise": normal(size=2).astype(np.float32),
            "place": normal(size=1).astype(np.float32),
        }


def test_an_outlier_is_counted_and_named():
    given = (), (), ("observation", 1e8), ("reward", 1e6)
    env = gymnasium.vector.SyncVectorEnv(
        [lambda arguments=each: OutlierEnv(*arguments) for each in given],
        autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP,
    )
    agent = rl.PPO.for_env(env, normalize_observations=True, seed=0)
    agent.compile(run_eagerly=True)
    rollouts = rl.RolloutDataset(
        env,
        horizon=128,
        passes=1,
        batch_size=None,
        rounds_per_epoch=3,
        scale_rewards=True,
        seed=0,
    )
    diagnostics = rl.callbacks.Diagnostics()
    with pytest.warns(rl.callbacks.TrainingWarning, match="far from") as warned:
        history = agent.fit(
            rollouts, callbacks=[diagnostics], verbose=0
        ).history
    messages = [str(each.message) for each in warned]
    observation, reward = sorted(x for x in messages if "far from all" in x)
    assert (
        "observation place=1e+08 (number 0 of 1) from environment 2 at step "
        "49 of its rollout, clipped_observations=1."
    ) in observation
    assert (
        "reward=1e+06 from environment 3 at step 48 of its rollout, "
        "clipped_rewards=1."
    ) in reward
    assert [history[name] for name in KEYS] == [[1.0], [1.0]]


@pytest.fixture
def agent():
    """An agent that has seen 4000 rows, of a deviation of 1."""
    agent = rl.PPO.for_env(OutlierEnv(), normalize_observations=True, seed=0)
    for seed in range(2):
        agent.observe(rollout(seed))
    return agent


def rollout(seed=0, steps=1000):
    """Two environments' observations, all of them valid."""
    generator = np.random.default_rng(seed)
    shape = (steps + 1, 2)
    return types.SimpleNamespace(
        observation={
            name: generator.normal(size=(*shape, size)).astype("float32")
            for name, size in (("noise", 2), ("place", 1))
        },
        valid=np.ones((steps, 2), bool),
    )


def layers_of(agent):
    return [x for x in agent.normalizing.layers if x.key == "noise"]


def counted(agent):
    return agent.outliers["clipped_observations"].count


def test_statistics_are_those_of_the_layer_alone(agent):
    seen = rollout(3, steps=20)
    seen.observation["noise"][4, 1] = [-1e8, 1e5]
    seen.observation["noise"][9, 0, 1] = 1e4
    alone = rl.layers.ObservationNormalization()
    alone.build((None, 2))
    alone.set_weights(layers_of(agent)[0].get_weights())
    rows = seen.observation["noise"][:-1].reshape(-1, 2)
    assert alone.accumulate(rows, np.ones(len(rows)))
    agent.observe(seen)
    # Actor and critic.
    assert len(layers_of(agent)) == 2
    for layer in layers_of(agent):
        assert_equal_weights(layer.get_weights(), alone.get_weights())
        assert np.array(layer.running_variance).max() < 10.0
    assert counted(agent) == 2


def test_rows_are_counted_once_and_the_largest_is_named(agent):
    before, seen = agent.get_weights(), rollout(3, steps=20)
    seen.observation["noise"][3, 1, 1] = 1e8
    # One that is refused leaves all as it was.
    seen.observation["place"][7, 0] = 1e30
    with raises(
        "squares must be finite",
        r"place=1e\+30 \(number 0 of 1\) from environment 0",
    ):
        agent.observe(seen)
    assert_equal_weights(agent.get_weights(), before)
    assert counted(agent) == 0
    seen.observation["place"][7, 0] = -3e5
    # In both.
    seen.observation["place"][9, 1] = seen.observation["noise"][9, 1] = 1e7
    # Of steps that were only resets, and of the next round.
    seen.observation["place"][11] = seen.observation["place"][20] = 1e9
    seen.valid[11] = False
    agent.observe(seen)
    assert counted(agent) == 3
    newest = agent.normalizing.outliers.newest
    assert newest == (
        "observation noise=1e+08 (number 1 of 2) from environment 1 at step 3 "
        "of its rollout"
    )
    # The number is saved.
    agent.compile()
    agent.build_optimizer()
    state = agent.get_state()
    agent.normalizing.outliers.add(2, "others")
    agent.set_state(state)
    assert counted(agent) == 3


def test_bytes_and_choices_are_never_far_off():
    """A state that is seldom seen is 1 of n, however seldom."""
    env = AnySpaceEnv(
        gymnasium.spaces.Discrete(3), gymnasium.spaces.Discrete(2)
    )
    agent = rl.PPO.for_env(env, normalize_observations=True, seed=0)
    seen = types.SimpleNamespace(
        observation=np.zeros((20_001, 2), "int32"),
        valid=np.ones((20_000, 2), bool),
    )
    seen.observation[7, 0] = 1
    agent.observe(seen)
    seen.observation[:] = 1
    agent.observe(seen)
    assert counted(agent) == 0
    (layer, _) = agent.normalizing.layers
    np.testing.assert_allclose(layer.running_mean[1], 0.5, atol=1e-3)


@pytest.mark.parametrize(
    "name", ["PPO", pytest.param("SAC", marks=pytest.mark.slow)]
)
def test_keys_are_there_where_there_are_statistics(name):
    case = EITHER_DATASET[name]
    env = make_env(case.pair)
    settings = {"scale_rewards": False} if case.on_policy else {}
    plain = make_eager_agent(case, env)
    keys = keys_of_logs(case, plain, env, **settings)
    assert not keys & KEYS
    normal = make_eager_agent(case, env, normalize_observations=True)
    keys = keys_of_logs(case, normal, env, **settings)
    assert keys & KEYS == {"clipped_observations"}
    for layer in normal.normalizing.layers:
        layer.trainable = False
    assert not normal.outliers
    if case.on_policy:
        keys = keys_of_logs(case, plain, env, scale_rewards=True)
        assert keys & KEYS == {"clipped_rewards"}


def keys_of_logs(case, agent, env, **settings):
    """Returns the keys of the logs."""
    dataset = case.make_dataset(env, **{**case.one_update, **settings})
    history = agent.fit(dataset, epochs=1, verbose=0)
    return set(history.history)
