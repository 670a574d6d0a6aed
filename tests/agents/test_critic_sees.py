"""Critics that see entries of a Dict observation that the actor does not."""

import functools

import gymnasium
import keras
import numpy as np
import pytest
from gymnasium import spaces

import keras_rl2 as rl
from keras_rl2.layers import ObservationNormalization
from keras_rl2.networks import MemoryNetwork
from keras_rl2.networks import mlp
from support.agents import ACTION_SPACES
from support.agents import EVERY_AGENT
from support.agents import KINDS
from support.agents import RECURRENT_KINDS
from support.agents import make_eager_agent
from support.errors import raises
from support.structured_envs import StructuredEnv

OBSERVATION = spaces.Box(-1.0, 1.0, (3,), np.float32)
ENTRIES = {
    "observation": OBSERVATION,
    "state": spaces.Box(4.0, 6.0, (2,), np.float32),
}
SEEING = {
    name: case
    for name, case in EVERY_AGENT.items()
    if case.make.takes_critic_sees
}
OTHERS = {k: case for k, case in EVERY_AGENT.items() if k not in SEEING}
MORE = dict(RECURRENT_KINDS)
TRAINED = {
    **{name: KINDS[name] for name in ("PPO", "SAC", "TD3")},
    "recurrent PPO": MORE.pop("recurrent PPO"),
}
LSTM = {"memory": keras.layers.LSTMCell(4)}


def env_of(case, **entries):
    """Makes an environment of these entries, in which the agent can act."""
    return StructuredEnv(
        spaces.Dict(entries or ENTRIES), ACTION_SPACES[case.actions[0]]
    )


def seeing(case, env, make=make_eager_agent, **settings):
    """Makes an agent whose critics alone see the state."""
    settings = {"critic_sees": "state", **settings}
    return make(case, as_two(env), **settings)


def as_two(env):
    """Makes two of the environment."""
    make = functools.partial(
        StructuredEnv, env.observation_space, env.action_space
    )
    return rl.envs.as_vector_env(make, num_envs=2)


def inputs_of(network):
    return [each.name for each in getattr(network, "encoder", network).inputs]


class StateProbe(gymnasium.Env):
    """One step, whose reward is the state, which no observation shows."""

    observation_space = spaces.Dict(
        {"observation": OBSERVATION, "state": OBSERVATION}
    )
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        seen, state = self.np_random.choice([-1.0, 1.0], (2, 3))
        self.seen = {
            "observation": np.float32(seen),
            "state": np.float32(state),
        }
        return self.seen, {}

    def step(self, action):
        reward = float(self.seen["state"][0])
        return self.seen, reward, True, False, {}


@pytest.mark.parametrize("case", SEEING.values(), ids=SEEING)
def test_critics_see_what_the_actor_sees_and_more(case):
    agent = seeing(case, env_of(case))
    actor, *critics = keras.tree.flatten(agent.given_networks())
    assert inputs_of(actor) == ["observation"]
    for critic in critics:
        assert inputs_of(critic)[:2] == ["observation", "state"]


@pytest.mark.parametrize("case", OTHERS.values(), ids=OTHERS)
def test_agents_without_an_actor_and_a_critic_refuse_it(case):
    expected = f"`critic_sees=None` for {case.make.__name__}"
    with raises(expected, "critic_sees=state"):
        seeing(case, env_of(case))


@pytest.mark.parametrize(
    "given", ["position", ["state", "position"], "action_mask", [*ENTRIES]]
)
def test_other_keys_are_refused_with_those_there_are(given):
    env = env_of(KINDS["PPO"], **ENTRIES, action_mask=spaces.MultiBinary(3))
    with raises("keys of a Dict observation", r"Dict\(action_mask.*state"):
        seeing(KINDS["PPO"], env, critic_sees=given)


def test_it_needs_a_dict_and_networks_of_their_own():
    with raises("keys of a Dict observation", r"of Box\(\[-1, 1\], \(3,\)"):
        seeing(KINDS["PPO"], StructuredEnv(OBSERVATION))
    with raises("no `shared=True`", "shared=True"):
        seeing(KINDS["PPO"], env_of(KINDS["PPO"]), shared=True)


@pytest.mark.parametrize(
    "case",
    [
        *TRAINED.values(),
        *(pytest.param(case, marks=pytest.mark.slow) for case in MORE.values()),
    ],
    ids=[*TRAINED, *MORE],
)
def test_the_agent_trains_and_acts_without_the_entry(case, tmp_path):
    env = env_of(case)
    agent = seeing(case, env, **(LSTM if case.recurrent else {}))
    agent.fit(case.make_dataset(as_two(env)), epochs=1, verbose=0)
    agent.evaluate(as_two(env), episodes=1)
    seen, _ = env.reset(seed=1)
    state = agent.initial_state(1)
    act = functools.partial(agent.act, state=state, deterministic=True)
    action = act(seen)[0]
    np.testing.assert_array_equal(act(seen["observation"])[0], action)
    del seen["state"]
    np.testing.assert_array_equal(act(seen)[0], action)
    batch = np.stack([seen["observation"]] * 2)
    with_log_prob = hasattr(agent, "distribution")
    both = agent.initial_state(2)
    agent.act(batch, both, return_log_prob=with_log_prob)
    agent.save(tmp_path / "agent.keras")
    loaded = rl.load(tmp_path / "agent.keras")
    found = loaded.act(seen["observation"], state, deterministic=True)[0]
    np.testing.assert_array_equal(found, action)


def test_what_the_policy_reads_is_needed():
    env = env_of(KINDS["PPO"], **ENTRIES, action_mask=spaces.MultiBinary(3))
    agent = seeing(KINDS["PPO"], env)
    mask = np.array([0, 0, 1], np.int8)
    seen = {"observation": np.zeros(3, np.float32), "action_mask": mask}
    assert agent.act(seen) == 2
    assert agent.act({**seen, "state": np.full(2, 5.0)}) == 2
    for less in ({"observation": seen["observation"]}, seen["observation"]):
        with raises("'action_mask': an array, 'observation': an array", ""):
            agent.act(less)


def test_entries_of_any_form_can_be_those_of_the_critic():
    entries = {
        "arm": spaces.Dict({"angle": OBSERVATION, "gear": spaces.Discrete(3)}),
        "camera": spaces.Box(0, 255, (36, 36, 1), np.uint8),
        "map": spaces.Box(0, 255, (6, 6), np.uint8),
        "weight": spaces.Box(0.0, 1.0, (), np.float32),
    }
    env = env_of(KINDS["PPO"], **entries)
    agent = seeing(KINDS["PPO"], env, critic_sees=["arm", "map"])
    assert inputs_of(agent.actor) == ["camera", "weight"]
    expected = ["arm.angle", "arm.gear", "camera", "map", "weight"]
    assert inputs_of(agent.critic) == expected
    seen, _ = env.reset(seed=0)
    action = agent.act(seen, deterministic=True)
    less = {name: seen[name] for name in ("camera", "weight")}
    assert agent.act(less, deterministic=True) == action


@pytest.mark.parametrize(
    ("format", "memory"),
    [("tf_saved_model", {}), ("litert", {}), ("litert", LSTM), ("onnx", {})],
)
def test_an_exported_policy_has_no_such_input(format, memory, tmp_path):
    if format == "onnx":
        pytest.importorskip("tf2onnx")
        pytest.importorskip("onnxruntime")
    case = KINDS["PPO"]
    agent = seeing(case, env_of(case), **memory)
    endings = {"litert": ".tflite", "onnx": ".onnx"}
    path = tmp_path / f"policy{endings.get(format, '')}"
    agent.export(path, format=format)
    file = rl.PolicyFile(path, trusted=True)
    inputs = file.manifest["inputs"]
    assert [e["name"] for e in inputs if e["role"] == "observation"] == [
        "observation"
    ]
    assert file.observation_space == OBSERVATION
    file.act(np.zeros((2, 3), np.float32))
    assert agent.check_export(path, as_two(env_of(case)), episodes=2).passed


def test_recorded_observations_can_represent_those_of_a_small_file(tmp_path):
    case = KINDS["TD3"]
    env = env_of(case)
    agent = seeing(case, env)
    seen = [env.reset(seed=k)[0] for k in range(20)]
    agent.export(
        tmp_path / "policy.tflite",
        format="litert",
        quantize="int8",
        representative={
            name: np.stack([each[name] for each in seen]) for name in ENTRIES
        },
    )
    manifest = rl.read_manifest(tmp_path / "policy.tflite")
    assert [each["name"] for each in manifest["inputs"]] == ["observation"]


def test_actor_and_critic_normalize_what_each_of_them_sees():
    case = KINDS["PPO"]
    env = as_two(env_of(case))
    agent = seeing(case, env_of(case), normalize_observations=True)
    rollouts = case.make_dataset(env)
    seen = []
    agent.observers.add(lambda trajectory: seen.append(trajectory))
    agent.fit(rollouts, epochs=1, verbose=0)
    # As the next round does.
    agent.normalizing.commit()
    [trajectory] = seen
    means = {
        key: each[:-1][trajectory.valid].mean(axis=0)
        for key, each in trajectory.observation.items()
    }
    for network, keys in (
        (agent.actor, ["observation"]),
        (agent.critic, ["observation", "state"]),
    ):
        layers = [
            each
            for each in network.layers
            if isinstance(each, ObservationNormalization)
        ]
        assert [each.key for each in layers] == keys
        for each in layers:
            np.testing.assert_allclose(each.mean, means[each.key], rtol=1e-5)


@pytest.mark.parametrize(
    "memory", [{}, pytest.param(LSTM, marks=pytest.mark.slow)]
)
def test_only_a_critic_that_sees_the_state_explains_the_returns(memory):
    explained = {}
    for keys in (["state"], None):
        env = StateProbe if keys else NoState
        rollouts = rl.RolloutDataset(
            env, horizon=64, num_envs=4, scale_rewards=False, seed=0
        )
        agent = rl.PPO.for_env(
            env, critic_sees=keys, hidden=(32,), seed=0, **memory
        )
        agent.compile(keras.optimizers.Adam(1e-2), jit_compile=False)
        history = agent.fit(rollouts, epochs=4, verbose=0).history
        explained[bool(keys)] = history["explained_variance"][-1]
    assert explained[True] > 0.95
    assert explained[False] < 0.3


def NoState():
    return gymnasium.wrappers.FilterObservation(StateProbe(), ["observation"])


def remembering(units, seed):
    return MemoryNetwork(
        mlp((3,), 8, seed=seed),
        keras.layers.LSTMCell(4, kernel_initializer="ones"),
        mlp((4,), units, seed=seed),
    )


def test_a_recurrent_actor_learns_from_a_critic_without_memory():
    critic = mlp((3,), 1, seed=3)
    agent = rl.PPO(remembering(3, 0), critic, seed=0)
    agent.compile(run_eagerly=True)
    env = StructuredEnv(OBSERVATION, ACTION_SPACES["discrete"])
    rollouts = KINDS["PPO"].make_dataset(as_two(env))
    agent.fit(rollouts, epochs=1, verbose=0)
    seen = np.random.default_rng(0).normal(size=(2, 5, 3)).astype(np.float32)
    state = agent.initial_state(2)
    _, value = agent.run_sequences(seen, np.zeros((2, 5)), state)
    expected = np.reshape(critic(seen.reshape(10, 3)), (2, 5))
    np.testing.assert_allclose(value, expected, rtol=1e-5)


@pytest.mark.parametrize("actor", [remembering(3, 0), mlp((3,), 3, seed=0)])
def test_a_critic_of_rollouts_with_memory_is_refused(actor):
    with raises("a critic without memory", "'memory_network'"):
        rl.PPO(
            actor,
            remembering(1, 1),
            observation_space=OBSERVATION,
            action_space=ACTION_SPACES["discrete"],
        )


class Picking(keras.Model):
    """A network of a user that reads one entry of the dict it gets."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(3)

    def call(self, observation):
        return self.dense(observation["observation"])


def named():
    seen = keras.Input((3,), name="observation")
    return keras.Model([seen], keras.layers.Dense(3)(seen))


@pytest.mark.parametrize("network", [named, Picking])
def test_own_networks_act_without_entries_that_they_do_not_read(network):
    env = env_of(KINDS["DQN"])
    agent = rl.DQN(
        network(),
        observation_space=env.observation_space,
        action_space=env.action_space,
        seed=0,
    )
    seen, _ = env.reset(seed=0)
    batch = {name: each[None] for name, each in seen.items()}
    expected = agent(batch)
    for given in (seen, seen["observation"]):
        action = agent.act(given, deterministic=True)
        assert action == np.argmax(expected)
