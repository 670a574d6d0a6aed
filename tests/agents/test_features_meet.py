"""Each feature of networks and optimizers with each kind of agent.

A training with a feature makes the same weights eagerly and in a graph, after
a checkpoint as without one, and acts the same once it is saved and loaded.
"""

import functools

import gymnasium
import keras
import numpy as np
import pytest
from gymnasium import spaces
from keras import layers

import keras_rl2 as rl
from support.agents import assert_equal_agents

pytestmark = pytest.mark.slow

VECTOR = spaces.Box(-1.0, 1.0, (4,), np.float32)
MASK = spaces.Box(1, 1, (2,), np.int8)
BOX = spaces.Box(-1.0, 1.0, (1,), np.float32)
AGENTS = ("PPO", "A2C", "DQN", "SAC", "CQL", "graph PPO")
STOCK = {
    "BatchNormalization": layers.BatchNormalization,
    "Dropout": lambda: layers.Dropout(0.1, seed=0),
    "GaussianNoise": lambda: layers.GaussianNoise(0.1, seed=0),
    "SpectralNormalization": lambda: layers.SpectralNormalization(
        layers.Dense(8)
    ),
}
OPTIMIZERS = {
    "EMA": {"use_ema": True},
    "accumulation": {"gradient_accumulation_steps": 2},
}
SETTINGS = {
    "memory": lambda: {"memory": layers.LSTMCell(4)},
    "normalized observations": lambda: {"normalize_observations": True},
    "mixed precision": lambda: {"dtype": "mixed_bfloat16"},
}
FEATURES = (*STOCK, *OPTIMIZERS, *SETTINGS, "mask", "Dict")
# No memory from recorded data, no mask for Box actions, and the graph's own
# environments observe a vector.
LEFT_OUT = {
    ("CQL", "memory"),
    ("SAC", "mask"),
    ("graph PPO", "mask"),
    ("graph PPO", "Dict"),
}
PAIRS = [
    (name, feature)
    for name in AGENTS
    for feature in FEATURES
    if (name, feature) not in LEFT_OUT
]
each_pair = pytest.mark.parametrize(("name", "feature"), PAIRS)


def observation_space(feature):
    if feature == "mask":
        return spaces.Dict(position=VECTOR, action_mask=MASK)
    if feature == "Dict":
        return spaces.Dict(position=VECTOR, speed=VECTOR)
    return VECTOR


class Drawn(gymnasium.Env):
    """Random observations and rewards; episodes of five steps."""

    def __init__(self, observation_space, action_space):
        self.observation_space = observation_space
        self.action_space = action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.elapsed = 0
        return self._observation(), {}

    def step(self, action):
        self.elapsed += 1
        reward = float(self.np_random.normal())
        return self._observation(), reward, False, self.elapsed == 5, {}

    def _observation(self):
        def drawn(space):
            low, high = space.low, space.high
            return self.np_random.uniform(low, high).astype(space.dtype)

        space = self.observation_space
        if isinstance(space, spaces.Dict):
            return {key: drawn(each) for key, each in space.items()}
        return drawn(space)

    def get_state(self):
        return self.elapsed, self.np_random.bit_generator.state

    def set_state(self, state):
        self.elapsed, self.np_random.bit_generator.state = state


class Killed(Exception):
    """Ends a training as an error does."""


class Kill(keras.callbacks.Callback):
    """Ends a training where its second epoch begins."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            raise Killed


def make_env(name, feature):
    if name == "graph PPO":
        return rl.envs.GraphVectorEnv("CartPole-v1", num_envs=2)
    action_space = BOX if name == "SAC" else spaces.Discrete(2)
    make = functools.partial(Drawn, observation_space(feature), action_space)
    return gymnasium.vector.SyncVectorEnv(
        [make] * 2, autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP
    )


def network(layer, units, seed, actions=0):
    """Makes a network with a stock layer after its first."""
    keras.utils.set_random_seed(seed)
    inputs = [keras.Input((4,))]
    hidden = layers.Dense(8, "tanh")(inputs[0])
    hidden = STOCK[layer]()(hidden)
    if actions:
        inputs.append(keras.Input((actions,)))
        hidden = layers.Concatenate()([hidden, inputs[1]])
    outputs = layers.Dense(units)(hidden)
    return keras.Model(inputs if actions else inputs[0], outputs)


def make_agent(name, feature, env, eager=False, rate=1e-3):
    kind = getattr(rl, name.removeprefix("graph "))
    kind = kind.for_action_space(env.single_action_space)
    if feature in STOCK:
        networks = [network(feature, 2, 0)]
        if name != "DQN" and name != "CQL":
            actions = int(name == "SAC")
            networks.append(network(feature, 1, 1, actions))
        agent = kind(
            *networks,
            seed=0,
            observation_space=env.single_observation_space,
            action_space=env.single_action_space,
        )
    else:
        settings = SETTINGS.get(feature, dict)()
        agent = kind.for_env(env, hidden=(8,), seed=0, **settings)
    optimizer = keras.optimizers.Adam(rate, **OPTIMIZERS.get(feature, {}))
    agent.compile(optimizer, run_eagerly=eager, jit_compile=False)
    return agent


def make_dataset(name, feature, env):
    if name == "CQL":
        return rl.OfflineDataset(
            recorded(feature), batch_size=8, updates_per_epoch=2, seed=0
        )
    if name in ("DQN", "SAC"):
        return rl.ReplayDataset(
            env,
            batch_size=8,
            capacity=256,
            steps_per_round=16,
            updates_per_round=2,
            rounds_per_epoch=1,
            warm_up=16,
            seed=0,
        )
    return rl.RolloutDataset(env, horizon=16, batch_size=16, passes=1, seed=0)


@functools.cache
def recorded(feature):
    """Returns recorded steps, as `OfflineDataset` takes them."""
    generator = np.random.default_rng(0)
    space, count = observation_space(feature), 64

    def observed():
        drawn = {
            key: generator.uniform(-1, 1, (count, 4)).astype("float32")
            for key in ("position", "speed")
        }
        if feature == "mask":
            return {
                "position": drawn["position"],
                "action_mask": np.ones((count, 2), np.int8),
            }
        return drawn if isinstance(space, spaces.Dict) else drawn["position"]

    return {
        "observations": observed(),
        "next_observations": observed(),
        "actions": generator.integers(2, size=count),
        "rewards": generator.normal(size=count).astype("float32"),
        "terminations": np.arange(count) % 8 == 7,
        "truncations": np.zeros(count, bool),
    }


def train(name, feature, epochs=2, callbacks=(), **settings):
    env = make_env(name, feature)
    agent = make_agent(name, feature, env, **settings)
    dataset = make_dataset(name, feature, env)
    history = agent.fit(dataset, epochs=epochs, callbacks=callbacks, verbose=0)
    return agent, history.history


@each_pair
def test_weights_are_equal_eagerly_and_in_a_graph(name, feature):
    if name == "graph PPO":
        pytest.skip("draws other noise eagerly")
    eager, _ = train(name, feature, eager=True)
    traced, _ = train(name, feature)
    tolerance = 1e-2 if feature == "mixed precision" else 1e-5
    assert int(eager.optimizer.iterations.numpy()) > 1
    for one, other in zip(
        eager.get_weights(), traced.get_weights(), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=tolerance)


@each_pair
def test_a_loaded_agent_acts_equally(name, feature, tmp_path):
    agent, _ = train(name, feature, epochs=1)
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert_equal_agents(loaded, agent)
    batch = make_env(name, feature).observation_space
    batch.seed(0)
    observation = batch.sample()
    np.testing.assert_array_equal(
        agent.act(observation, deterministic=True),
        loaded.act(observation, deterministic=True),
    )


@each_pair
def test_a_resumed_run_ends_as_a_whole_one(name, feature, tmp_path):
    whole, _ = train(name, feature, epochs=2)

    def checkpoint():
        return rl.callbacks.Checkpoint(tmp_path, every_steps=1)

    with pytest.raises(Killed):
        train(name, feature, callbacks=[checkpoint(), Kill()])
    resumed, _ = train(name, feature, callbacks=[checkpoint()])
    assert_equal_agents(resumed, whole)


@pytest.mark.parametrize("name", ["PPO", "graph PPO"])
@pytest.mark.parametrize("feature", FEATURES)
def test_the_ratio_of_an_unchanged_policy_is_one(name, feature, recwarn):
    if (name, feature) in LEFT_OUT:
        return
    _, history = train(name, feature, rate=0.0)
    unchanged = abs(history["approx_kl"][-1]) < 1e-6
    named = any("ratio" in str(each.message) for each in recwarn)
    assert unchanged or named
