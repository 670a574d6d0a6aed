"""Training goes on where environments fail, and learns nothing bad."""

import functools
import multiprocessing

import gymnasium
import keras
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv

import keras_rl2 as rl
from keras_rl2.envs import WorkerError
from support import failing_envs
from support.datasets import episodes_of
from support.datasets import state_of
from support.failing_envs import LENGTH
from support.failing_envs import FailingEnv
from support.failing_envs import assert_trajectory
from support.failing_envs import assert_transitions
from support.probe_envs import EnvCrash

ROLLOUTS = {"horizon": 48, "passes": 1, "batch_size": None, "seed": 0}
REPLAY = {
    "capacity": 600,
    "batch_size": 32,
    "warm_up": 96,
    "steps_per_round": 48,
    "updates_per_round": 1,
    "seed": 0,
}
AGENTS = {
    "PPO": (rl.PPO, {}, ROLLOUTS),
    "PPO that remembers": (rl.PPO, {"memory": True}, ROLLOUTS),
    "REINFORCE": (rl.REINFORCE, {}, ROLLOUTS),
    "DQN": (rl.DQN, {}, {**REPLAY, "n_step": 3}),
    "DQN, prioritized": (rl.DQN, {}, {**REPLAY, "prioritized": True}),
    "DQN that remembers": (
        rl.DQN,
        {"memory": True},
        {**REPLAY, "sequence_length": 6, "burn_in": 2},
    ),
}


def environments(form, probability=0.01, **kwargs):
    make = [
        functools.partial(FailingEnv, probability=probability, seed=i, **kwargs)
        for i in range(1 if form is None else 3)
    ]
    if form is None:
        return make[0]()
    return SyncVectorEnv(make, autoreset_mode=form)


def made(name, env, **kwargs):
    kind, given, settings = AGENTS[name]
    remembers = "memory" in given
    given = {"memory": keras.layers.GRUCell(4)} if remembers else {}
    agent = kind.for_env(env, hidden=(8,), seed=0, **given)
    # What remembers takes longer step by step than to be traced.
    agent.compile(keras.optimizers.SGD(0.01), run_eagerly=not remembers)
    dataset = rl.RolloutDataset if kind.on_policy else rl.ReplayDataset
    data = dataset(env, **{**settings, "on_env_error": "restart", **kwargs})
    return agent, data


def watched(agent):
    """Checks whatever an agent is shown, and notes how many steps it was."""
    counts = []
    agent.observers.add(
        lambda trajectory: counts.append(assert_trajectory(trajectory))
    )
    return counts


def check_draws(replay):
    """Checks every minibatch that is drawn from now on."""
    sample = replay.buffer.sample

    def checked(batch_size):
        batch = sample(batch_size)
        if "begins" not in batch:
            assert_n_steps(batch)
            return batch
        # Of terminated ones there is no next observation.
        counted = (batch["weight"] > 0) & (batch["discount"] > 0)
        steps = np.arange(counted.shape[1])
        observation = batch["observation"]
        rows = np.arange(len(counted))[:, None]
        following = observation[rows, steps + batch["span"]]
        assert_transitions(
            {
                "observation": observation[:, : len(steps)][counted],
                "next_observation": following[counted],
                "reward": batch["reward"][counted],
            }
        )
        return batch

    replay.buffer.sample = checked


def assert_n_steps(batch):
    observation, following = batch["observation"], batch["next_observation"]
    assert (observation[:, 0] == following[:, 0]).all()
    span = following[:, 1] - observation[:, 1]
    assert ((span >= 1) & (span <= 3)).all()
    failed = [*failing_envs.FAILED_EPISODES]
    assert not np.isin(observation[:, 0], failed).any()


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("PPO", AutoresetMode.NEXT_STEP),
        ("DQN, prioritized", AutoresetMode.SAME_STEP),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in (
                ("PPO that remembers", AutoresetMode.DISABLED),
                ("REINFORCE", None),
                ("DQN", None),
                ("DQN that remembers", AutoresetMode.NEXT_STEP),
            )
        ),
    ],
)
def test_a_hundredth_of_all_steps_fails(name, form):
    # Ten short episodes of one environment are a hundred steps.
    few = name == "REINFORCE" and form is None
    env = environments(form, 0.03 if few else 0.01)
    agent, data = made(name, env, rounds_per_epoch=1)
    counts = watched(agent)
    data.bind(agent)
    if not agent.on_policy:
        check_draws(data)
    history = agent.fit(data, epochs=10, verbose=0).history
    assert history["env_restarts"][-1] >= 2
    assert agent.env_steps == sum(counts)
    assert np.isfinite(history["loss"]).all()
    for variable in agent.variables:
        assert np.isfinite(variable.numpy()).all()
    # None that broke off counts as an episode.
    assert {*episodes_of(data)["episode_lengths"]} == {LENGTH}


@pytest.mark.parametrize("name", ["PPO", "DQN, prioritized", "REINFORCE"])
def test_resets_that_fail(name):
    env = environments(None, 0.05, reset_fails=True)
    agent, data = made(name, env)
    data.bind(agent)
    counts = watched(agent)
    for _ in range(12 if name == "REINFORCE" else 4):
        data.refresh()
    assert sum(counts) == agent.env_steps
    assert data.logs()["env_restarts"] > 2


def test_environments_of_an_id_are_made_again_and_repeat():
    made_so_far = []

    def make(**kwargs):
        made_so_far.append(1)
        return FailingEnv(at=20, **kwargs)

    def actions():
        agent, data = made("PPO", "Failing-v0", num_envs=2)
        data.bind(agent)
        watched(agent)
        seen = []
        agent.observers.add(lambda trajectory: seen.append(trajectory.action))
        before = len(made_so_far)
        data.refresh()
        # Two at a time, at steps 20 and 40.
        assert len(made_so_far) == before + 4
        assert data.logs()["env_restarts"] == 2
        return seen

    gymnasium.register("Failing-v0", entry_point=make)
    try:
        np.testing.assert_array_equal(actions(), actions())
    finally:
        del gymnasium.registry["Failing-v0"]


def test_by_default_it_is_raised_and_nothing_is_left():
    env = failing_envs.in_processes(
        [functools.partial(FailingEnv, failing_envs.is_killed, at=30)]
    )
    agent, data = made("PPO", env, on_env_error="raise")
    with pytest.raises(WorkerError, match="exit code -9"):
        agent.fit(data, epochs=1, verbose=0)
    assert not multiprocessing.active_children()
    assert agent.env_steps == 0


def test_an_environment_that_always_fails_is_raised():
    env = FailingEnv(probability=1.0)
    agent, data = made("PPO", env)
    with pytest.raises(EnvCrash) as caught:
        agent.fit(data, epochs=1, verbose=0)
    notes = " ".join(caught.value.__notes__)
    assert "after 5 new beginnings in a row" in notes
    assert agent.optimizer.iterations.numpy() == 0


def test_an_environment_without_usable_steps_is_refused():
    class Short(FailingEnv):
        def step(self, action):
            if self._step == 2:
                self._fail(self)
            return super().step(action)

    agent, data = made("PPO", Short())
    with pytest.raises(RuntimeError, match="without a usable step"):
        agent.fit(data, epochs=1, verbose=0)


def test_numbers_that_are_not_finite_are_no_failure():
    class NotFinite(FailingEnv):
        def _observation(self):
            if self._steps > 5:
                self._fail(self)
            return super()._observation() * (
                np.nan if self._steps == 5 else 1.0
            )

    agent, data = made("PPO", NotFinite())
    with pytest.raises(ValueError, match="finite observation"):
        agent.fit(data, epochs=1, verbose=0)


def test_rewards_are_scaled_apart_from_what_failed():
    """A return that is accumulated never goes on after a failure."""
    env = FailingEnv(at=7)
    agent, data = made("PPO", env, scale_rewards=True, horizon=10)
    data.bind(agent)
    data.refresh()
    # Three steps of the second episode.
    rewards = [failing_envs.reward_of(env.episode, step) for step in (1, 2, 3)]
    expected = 0.0
    for reward in rewards:
        expected = agent.gamma * expected + reward
    np.testing.assert_allclose(
        state_of(data)["scaler"]["returns"], [expected], rtol=1e-6
    )


def test_state_has_the_number_of_failures():
    agent, data = made("PPO", FailingEnv(at=7))
    data.bind(agent)
    data.refresh()
    _, other = made("PPO", FailingEnv())
    other.bind(agent)
    with pytest.warns(UserWarning, match="FailingEnv has no methods"):
        other.set_state(data.get_state())
    assert other.logs()["env_restarts"] == 1
