"""Datasets take whatever has the members that they say they ask for."""

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.distributions import policy_head
from keras_rl2.policies import agent_protocols
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.training.devices import Devices
from support.agents import make_env
from support.agents import make_replay
from support.agents import make_rollouts


def members(protocol):
    """Returns the names of all that a protocol asks for."""
    names = set()
    for base in protocol.__mro__:
        if base.__module__ == agent_protocols.__name__:
            names |= {*vars(base), *vars(base).get("__annotations__", ())}
    return {name for name in names if not name.startswith("_")}


class PreferringPolicy:
    """Prefers some actions, whatever it observes."""

    def __init__(self, units):
        self.acting_variables = [keras.Variable(np.zeros(units, "float32"))]
        self.trainable_variables = self.acting_variables
        self.observation_space = self.action_space = self.head = None

    @property
    def collecting(self):
        return self

    @property
    def observation_spec(self):
        return ArraySpec(self.observation_space.shape, "float32")

    @property
    def noise(self):
        return self.head.noise

    def _policy(self, observation):
        (preferences,) = self.acting_variables
        batch = keras.ops.shape(observation)[0]
        return self.head(keras.ops.tile(preferences[None], (batch, 1)))

    def sample_action(self, observation, noise):
        return self._policy(observation).sample(noise)

    def greedy_action(self, observation):
        return self._policy(observation).mode()

    def initial_state(self, batch_size):
        return ()

    def policy_step(self, observation, begins, state):
        raise NotImplementedError("It remembers nothing.")


class Preferring:
    """An agent with such a policy, which learns nothing."""

    on_policy = True
    whole_episodes = False
    gamma = 0.9
    devices = Devices()

    def __init__(self, units):
        self.policy = PreferringPolicy(units)
        self.env_steps = self.offline_updates = 0

    def bind(self, observation_space, action_space):
        self.policy.observation_space = observation_space
        self.policy.action_space = action_space
        self.policy.head = policy_head(action_space)

    def begin_round(self):
        pass

    def exploration_logs(self):
        return {"preference": 1.0}

    def observe(self, trajectory):
        pass


class PreferringRollouts(Preferring):
    """The same with the members that a `RolloutDataset` requires."""

    def own_rollout(self, observation_space):
        return rl.data.OwnRollout(steps=16, passes=1, batch_size=8)

    def prepare(self, trajectory):
        samples = {"reward": trajectory.reward.reshape(-1)}
        return samples, {"mean_reward": float(trajectory.reward.mean())}

    def sample_spec(self, length=None):
        return {"reward": ArraySpec((), "float32")}


class PreferringReplay(Preferring):
    """The same with the members that a `ReplayDataset` requires."""

    on_policy = False
    default_batch_size = 8
    updates_per_step = 0.125
    updates = 0

    def keep_td_errors(self, td_errors):
        self._td_errors = td_errors


@pytest.mark.parametrize(
    ("kind", "protocol"),
    [
        (PreferringPolicy, agent_protocols.ActingPolicy),
        (Preferring, agent_protocols.CollectingAgent),
        (PreferringRollouts, agent_protocols.RolloutAgent),
        (PreferringReplay, agent_protocols.ReplayAgent),
    ],
)
def test_the_classes_have_nothing_more(kind, protocol):
    """Further members would hide a gap in the protocols."""
    agent = kind(3)
    public = {name for name in dir(agent) if not name.startswith("_")}
    assert public == members(protocol)


def test_acting_and_evaluation():
    agent, env = Preferring(3), make_env()
    results = rl.EvaluationDataset(env, episodes=4, seed=0).play(agent)
    assert results["episode_length"] == 5.0
    actor = rl.data.ActorSnapshot(agent.policy, 2)
    assert actor.backend == "litert"
    agent.policy.acting_variables[0].assign([0.0, 0.0, 99.0])
    actor.sync()
    noise, _ = agent.policy.noise.draw(np.random.default_rng(0), (2,))
    action, _ = actor(np.zeros((2, 3), "float32"), noise)
    assert action.tolist() == [2, 2]


def test_rollouts():
    agent = PreferringRollouts(3)
    rollouts = make_rollouts(make_env(), scale_rewards=True)
    (batch,) = _one_round(rollouts, agent)
    assert sorted(batch) == ["reward", "weight"]
    assert agent.env_steps == 16
    assert {"mean_reward", "preference"} <= {*rollouts.logs()}
    resumed = make_rollouts(make_env(), scale_rewards=True)
    resumed.bind(PreferringRollouts(3))
    resumed.set_state(rollouts.get_state())
    agent.on_policy = False
    with pytest.raises(ValueError, match="ReplayDataset` for Preferring"):
        make_rollouts(make_env()).bind(agent)


def test_replay():
    agent = PreferringReplay(3)
    arguments = {
        "prioritized": True,
        "warm_up": 16,
        "batch_size": "auto",
        "updates_per_round": None,
    }
    replay = make_replay(make_env(), **arguments)
    (batch,) = _one_round(replay, agent)
    assert batch["observation"].shape == (8, 3)
    assert replay.updates_per_round == 2
    assert agent.env_steps == 32
    assert replay.logs()["preference"] == 1.0
    agent._td_errors.assign(np.ones((2, 8), "float32"))
    replay.refresh()
    assert replay.buffer.largest_priority > 1.0
    resumed = make_replay(make_env(), **arguments)
    resumed.bind(PreferringReplay(3))
    resumed.set_state(replay.get_state())
    assert len(resumed.buffer) == len(replay.buffer)
    agent.on_policy = True
    with pytest.raises(ValueError, match="RolloutDataset` for Preferring"):
        make_replay(make_env()).bind(agent)


def _one_round(dataset, agent):
    """Returns the first minibatch of a round."""
    batches = dataset.as_dataset(agent)
    dataset.refresh()
    return list(batches.take(1).as_numpy_iterator())
