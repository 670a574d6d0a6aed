"""Agents on observations of several arrays."""

import functools

import gymnasium
import keras
import numpy as np
import pytest
from gymnasium import spaces

import keras_rl2 as rl
from keras_rl2.envs import as_vector_env
from keras_rl2.layers import ObservationNormalization
from keras_rl2.networks.inputs import run_network
from keras_rl2.spaces.supported import network_shape
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves
from support.agents import AGENTS
from support.agents import EVERY_AGENT
from support.agents import assert_equal_weights
from support.agents import fit_twice
from support.agents import make_agent
from support.agents import make_eager_agent
from support.agents import slow
from support.agents import weights_of
from support.errors import raises
from support.structured_envs import ACTIONS
from support.structured_envs import OBSERVATIONS
from support.structured_envs import MaskedEnv
from support.structured_envs import StructuredEnv
from support.structured_envs import assert_members
from support.structured_envs import batch_of
from support.structured_envs import masked_batch
from support.structured_envs import row
from support.structured_envs import structured
from support.structured_envs import vector


def env_for(name, observed="dict"):
    """Makes two environments that an agent can act in."""
    return structured(observed, EVERY_AGENT[name].actions[0])


def trained_on(name, observed):
    """Returns an agent after two rounds, its history, and weights before."""
    case, env = EVERY_AGENT[name], env_for(name, observed)
    # Of an update that is not traced, Adam would take the half.
    agent = make_eager_agent(
        case, env, compile_arguments={"optimizer": keras.optimizers.SGD(0.1)}
    )
    return agent, *fit_twice(case, agent, env)


@pytest.fixture(scope="module")
def trained():
    """Agents after two rounds, by agent and observation; made once."""
    return functools.cache(trained_on)


def assert_learned(agent, history, before):
    """Asserts that all weights were changed, and nothing is infinite."""
    assert agent.env_steps > 0
    for key in (*agent.statistics_names, "episode_return"):
        assert np.isfinite(history[key]).all(), key
    for old, new in zip(before, agent.get_weights(), strict=True):
        assert np.isfinite(new).all()
        # Nothing is changed only where nothing was seen, in a picture's
        # corner say; a whole array would be what no network is given.
        assert (old != new).any()


over_cases = pytest.mark.parametrize(
    ("name", "observed"),
    [
        ("PPO", "dict"),
        *slow(
            ("DQN", "tuple"),
            ("SAC", "nested"),
            ("TD3", "dict"),
            ("PPO", "multi_discrete"),
            ("DQN", "multi_binary"),
        ),
    ],
)


@over_cases
def test_every_array_is_learned_from_and_matters(name, observed, trained):
    agent, history, before = trained(name, observed)
    assert_learned(agent, history, before)
    batch = batch_of(agent.observation_space, 8)
    others = batch_of(agent.observation_space, 8, seed=1)
    given = agent(map_leaves(np.array, batch)).numpy()
    for path, _ in named_leaves(batch):
        changed = dict(named_leaves(others))[path]
        mixed = map_leaves(
            lambda one, other, changed=changed: (
                other if other is changed else one
            ),
            batch,
            others,
        )
        assert np.abs(agent(mixed).numpy() - given).max() > 1e-7, path


@over_cases
def test_acts_is_evaluated_saved_and_loaded(name, observed, trained, tmp_path):
    agent = trained(name, observed)[0]
    batch = batch_of(agent.observation_space, 6)
    for deterministic in (False, True):
        actions = agent.act(batch, deterministic=deterministic)
        assert_members(agent.action_space, actions, (6,))
    for index in range(6):
        one = agent.act(row(batch, index), deterministic=True)
        assert_members(agent.action_space, one)
        np.testing.assert_allclose(one, actions[index], rtol=1e-5, atol=1e-6)
    before = weights_of(agent)
    results = agent.evaluate(env_for(name, observed), episodes=4, seed=0)
    # Two environments with episodes of 3 and 1 steps.
    assert results["episode_length"] == 2.0
    assert_equal_weights(agent, before)
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert loaded.observation_space == agent.observation_space
    assert_equal_weights(loaded, agent)
    batch = batch_of(agent.observation_space, 20)
    np.testing.assert_array_equal(
        *(one.act(batch, deterministic=True) for one in (loaded, agent))
    )


# Default networks.


def test_one_encoder_for_each_array():
    space = spaces.Dict(
        {
            "far": spaces.Box(0, 255, (40, 40, 3), np.uint8),
            "near": spaces.Box(0, 255, (5, 5, 3), np.uint8),
            "tiny": spaces.Box(0, 255, (4, 4, 3), np.uint8),
            "speed": spaces.Box(-1.0, 1.0, (2,)),
            "gears": spaces.MultiDiscrete([2, 3]),
        }
    )
    agent = make_eager_agent(AGENTS["PPO"], StructuredEnv(space))
    names = [layer.name for layer in agent.actor.layers]
    inputs = {tensor.name: tensor.shape[1:] for tensor in agent.actor.inputs}
    assert inputs == {
        path: network_shape(leaf)
        for path, leaf in named_leaves(space_tree(space))
    }
    assert "far_convolution_2" in names
    assert "near_convolution_1" in names
    assert "near_convolution_2" not in names
    assert "tiny_convolution_0" not in names
    # Two pictures of 256 features, 48 numbers, 2, and 5 of one-hot rows.
    (joined,) = [each for each in agent.actor.layers if each.name == "joined"]
    assert joined.output.shape == (None, 256 + 256 + 48 + 2 + 5)


# Normalization.


def test_normalization_that_is_meant_for_no_array():
    position = keras.Input((3,), name="position")
    gear = keras.Input((4,), name="gear")
    both = keras.layers.Concatenate()(
        [ObservationNormalization(name="norm")(position), gear]
    )
    actor, critic = (
        keras.Model([position, gear], keras.layers.Dense(units)(both))
        for units in (3, 1)
    )
    env = structured("dict")
    with raises(
        r"`key` of 'norm' .* \['camera', 'gear', 'position'\]", "key=''"
    ):
        rl.PPO(actor, critic).bind(env.observation_space, env.action_space)


# Networks of the user.


def by_names(units):
    """A functional model of some of the arrays, by the names of its inputs."""
    gear = keras.Input((4,), name="gear")
    position = keras.Input((3,), name="position")
    x = keras.layers.Concatenate()([position, gear])
    return keras.Model([gear, position], keras.layers.Dense(units)(x))


def by_keys(units):
    """A functional model that takes a dict."""
    inputs = {
        "camera": keras.Input((6, 5, 3), dtype="uint8", name="camera"),
        "position": keras.Input((3,), name="position"),
    }
    picture = keras.layers.Rescaling(1 / 255)(inputs["camera"])
    picture = keras.layers.Flatten()(picture)
    x = keras.layers.Concatenate()([picture, inputs["position"]])
    return keras.Model(inputs, keras.layers.Dense(units)(x))


def by_one_name(units):
    """A functional model of one of the arrays."""
    position = keras.Input((3,), name="position")
    return keras.Model(position, keras.layers.Dense(units)(position))


@keras.saving.register_keras_serializable(package="test_structured")
class Subclassed(keras.Model):
    """A subclassed model, which is given all arrays, and an action if any."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.out = keras.layers.Dense(units)

    def call(self, inputs):
        action = []
        if not isinstance(inputs, dict):
            inputs, *action = inputs
        assert set(inputs) == {"camera", "position", "gear"}
        return self.out(
            keras.ops.concatenate(
                [inputs["position"], inputs["gear"], *action], axis=-1
            )
        )

    def get_config(self):
        return {**super().get_config(), "units": self.units}


def critic_by_names():
    """A critic of one array and the action, by the names of its inputs."""
    action = keras.Input((1,), name="action")
    position = keras.Input((3,), name="position")
    x = keras.layers.Concatenate()([position, action])
    return keras.Model([action, position], keras.layers.Dense(1)(x))


def critic_by_keys():
    """A critic that takes a dict."""
    inputs = {
        "action": keras.Input((1,), name="action"),
        "gear": keras.Input((4,), name="gear"),
    }
    x = keras.layers.Concatenate()([inputs["gear"], inputs["action"]])
    return keras.Model(inputs, keras.layers.Dense(1)(x))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "networks"),
    [
        ("TD3", lambda: [by_keys(1), critic_by_keys()]),
        ("PPO", lambda: [by_names(3), by_one_name(1)]),
        ("SAC", lambda: [Subclassed(2), Subclassed(1)]),
    ],
    ids=["TD3", "PPO", "SAC"],
)
def test_networks_of_the_user(name, networks, tmp_path):
    case, env = EVERY_AGENT[name], env_for(name)
    agent = case.make(*networks(), seed=0, **case.every_update)
    agent.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    agent.bind(env.observation_space, env.action_space)
    before = weights_of(agent)
    agent.fit(case.make_dataset(env), verbose=0)
    for old, new in zip(before, agent.get_weights(), strict=True):
        assert (old != new).any()
    batch = batch_of(env.observation_space, 5)
    assert_members(agent.action_space, agent.act(batch), (5,))
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    np.testing.assert_array_equal(
        *(one.act(batch, deterministic=True) for one in (loaded, agent))
    )
    assert_equal_weights(loaded, agent)


def test_an_input_gets_the_array_that_it_is_named_after():
    env = structured("dict")
    batch = batch_of(env.observation_space, 5)
    gear = np.eye(4, dtype="float32")[batch["gear"] - 1]
    position = batch["position"].astype("float32")
    for make, given in (
        (by_names, [gear, position]),
        (by_keys, {"camera": batch["camera"], "position": position}),
        (by_one_name, position),
    ):
        agent = rl.PPO(make(3), make(1), seed=0)
        agent.bind(env.observation_space, env.action_space)
        np.testing.assert_allclose(agent(batch), agent.actor(given), rtol=1e-6)
    # And those of critics the action.
    env = structured("dict", "box")
    agent = rl.SAC(by_names(2), [critic_by_names(), critic_by_keys()])
    agent.bind(env.observation_space, env.action_space)
    batch = batch_of(env.observation_space, 3)
    actions = keras.ops.ones((3, 1))
    encoded = agent.policy.encode(batch)
    first = agent.critics[0]([actions, encoded["position"]])
    second = agent.critics[1]({"action": actions, "gear": encoded["gear"]})
    values = agent.values(agent.critics, batch, actions)
    np.testing.assert_allclose(values[0], first[:, 0], rtol=1e-6)
    np.testing.assert_allclose(values[1], second[:, 0], rtol=1e-6)

    # Names may be paths, and positions.
    env = structured("nested")
    angle = keras.Input((2,), name="arm.angle")
    choices = keras.Input((5,), name="hands.0")
    x = keras.layers.Concatenate()([choices, angle])
    agent = rl.DQN(keras.Model([choices, angle], keras.layers.Dense(3)(x)))
    agent.bind(env.observation_space, env.action_space)
    batch = batch_of(env.observation_space, 4)
    encoded = agent.policy.encode(batch)
    expected = agent.q_network([encoded["hands"][0], encoded["arm"]["angle"]])
    np.testing.assert_allclose(agent(batch), expected, rtol=1e-6)

    env = structured("tuple")
    matrix = keras.Input((2, 2), name="1")
    x = keras.layers.Flatten()(matrix)
    agent = rl.DQN(keras.Model(matrix, keras.layers.Dense(3)(x)))
    agent.bind(env.observation_space, env.action_space)
    batch = batch_of(env.observation_space, 4)
    np.testing.assert_allclose(agent(batch), agent.q_network(batch[1]))


def test_an_only_array_needs_no_name():
    """A mask beside the array changes nothing."""

    class Own(keras.Model):
        def __init__(self, units):
            super().__init__()
            self.out = keras.layers.Dense(units)

        def call(self, position):
            return self.out(position)

    def sequential(units):
        return keras.Sequential([keras.Input((3,)), keras.layers.Dense(units)])

    alone = StructuredEnv(spaces.Dict({"only": spaces.Box(-1.0, 1.0, (3,))}))
    agent = rl.PPO(sequential(3), sequential(1), seed=0)
    agent.bind(alone.observation_space, alone.action_space)
    assert_members(alone.action_space, agent.act({"only": np.zeros(3)}))
    for make in (Own, sequential):
        env = MaskedEnv()
        agent = rl.PPO(make(5), make(1), seed=0)
        agent.bind(env.observation_space, env.action_space)
        batch = masked_batch(count=4)
        expected = agent.critic(keras.ops.convert_to_tensor(batch["position"]))
        np.testing.assert_allclose(
            agent.value(batch), expected[:, 0], rtol=1e-6
        )


def test_networks_get_the_mask_only_if_they_ask_for_it():
    for name in ("PPO", "SAC"):
        agent = make_eager_agent(EVERY_AGENT[name], MaskedEnv())
        critics = [agent.critic] if name == "PPO" else agent.critics
        for network in (agent.actor, *critics):
            assert [each.name for each in network.inputs] == ["position"]

    class Asking(keras.Model):
        def __init__(self, units):
            super().__init__()
            self.out = keras.layers.Dense(units)

        def call(self, observation):
            assert set(observation) == {"position", "more"}
            return self.out(observation["position"])

    class More(MaskedEnv):
        def __init__(self):
            super().__init__()
            self.observation_space["more"] = spaces.Discrete(2)

        def _observation(self, over):
            return {**super()._observation(over), "more": 1}

    env, agent = More(), rl.A2C(Asking(5), Asking(1), seed=0)
    agent.bind(env.observation_space, env.action_space)
    assert agent.value(batch_of(agent.observation_space, 2)).shape == (2,)

    mask = keras.Input((5,), name="action_mask")
    position = keras.Input((3,), name="position")
    x = keras.layers.Concatenate()([position, mask])
    agent = rl.DQN(keras.Model([position, mask], keras.layers.Dense(5)(x)))
    env = MaskedEnv()
    agent.bind(env.observation_space, env.action_space)
    batch = batch_of(env.observation_space, 3)
    batch["action_mask"][:] = [[1, 0, 1, 0, 1]]
    as_floats = batch["action_mask"].astype("float32")
    np.testing.assert_allclose(
        agent(batch), agent.q_network([batch["position"], as_floats])
    )


def test_targets_of_networks_that_configs_cannot_describe():
    """The code of the network runs them, with inputs by their names."""
    one = keras.Input((3,), name="gear")
    other = keras.Input((3,), name="arm.angle")
    x = keras.layers.Lambda(lambda both: both[0] - 2.0 * both[1])([one, other])
    network = keras.Model([one, other], keras.layers.Dense(3)(x))
    space = spaces.Dict(
        {
            "arm": spaces.Dict({"angle": spaces.Box(-1.0, 1.0, (3,))}),
            "gear": spaces.Discrete(3),
        }
    )
    agent = rl.DQN(network)
    agent.bind(space, ACTIONS["discrete"])
    encoded = agent.policy.encode(batch_of(space, 5))
    np.testing.assert_allclose(
        run_network(agent.target_network, encoded),
        network([encoded["gear"], encoded["arm"]["angle"]]),
    )


def test_an_array_that_is_called_action():
    """The last action, say. Critics of actions have that name already."""
    space = spaces.Dict(
        {"action": spaces.Box(-1.0, 1.0, (1,)), "at": spaces.Discrete(2)}
    )
    env = StructuredEnv(space, ACTIONS["box"])
    agent = make_eager_agent(AGENTS["PPO"], env)
    names = [tensor.name for tensor in agent.actor.inputs]
    assert names == ["action", "at"]
    for make in (rl.SAC, rl.TD3):
        with raises(
            "no array of the observation to be called 'action'", "Dict"
        ):
            make.for_env(env)


def test_inputs_that_fit_no_array_are_refused():
    env = structured("dict")
    wrong = keras.Input((3,), name="speed")
    gear = keras.Input((4,), name="gear")
    x = keras.layers.Concatenate()([wrong, gear])
    for what, units in (("actor", 3), ("critic", 1)):
        networks = {"actor": by_names(3), "critic": by_names(1)}
        networks[what] = keras.Model(
            [wrong, gear], keras.layers.Dense(units)(x), name="mine"
        )
        with raises(
            "inputs of 'mine' to be named after .* 'gear', 'position'", "speed"
        ):
            rl.PPO(**networks).bind(env.observation_space, env.action_space)
    position = keras.Input((4,), name="position")
    network = keras.Model(position, keras.layers.Dense(3)(position))
    with raises(
        r"q_network to take observations of shape .*'position': \(None, 3\)",
        "Error",
    ):
        rl.DQN(network).bind(env.observation_space, env.action_space)


# What does not fit its space.


def without(key):
    return lambda tree: {k: v for k, v in tree.items() if k != key}


def with_change(key, change):
    return lambda tree: {**tree, key: change(tree[key])}


#: What is done to an observation; what is expected then, and received.
BAD = {
    "missing": (without("gear"), "gear", "camera"),
    "additional": (
        lambda tree: {**tree, "speed": np.zeros(1, "float32")},
        "gear",
        "speed",
    ),
    "no dict": (lambda tree: tree["position"], "position", "array"),
    "a branch": (
        with_change("gear", lambda leaf: {"now": leaf}),
        "gear",
        "(now|object)",
    ),
    "shape": (
        with_change("position", lambda leaf: leaf[..., :2]),
        r"position.*\(3,\)",
        r"\(([0-9], )?2,?\)",
    ),
    "dtype": (
        with_change("gear", lambda leaf: np.float32(leaf)),
        "gear.*int32",
        "float32",
    ),
    "text": (
        with_change("position", lambda leaf: np.full(leaf.shape, "far")),
        "position.*float32",
        "<U3",
    ),
}


@pytest.fixture(scope="module")
def untrained():
    return make_agent(AGENTS["PPO"], structured("dict"))


def test_observations_that_do_not_match_the_space_are_refused(untrained):
    batch = batch_of(untrained.observation_space, 4)
    for change, expected, received in BAD.values():
        for observation in (batch, row(batch, 0)):
            with raises(expected, received):
                untrained.act(change(observation))
    with raises("'position' of .*'B', 3", r"\(3, 3\)"):
        untrained.act({**batch, "position": batch["position"][:3]})
    agent = make_eager_agent(AGENTS["PPO"], structured("tuple"))
    observation = row(batch_of(agent.observation_space, 1), 0)
    with raises("an array, an array, an array", "an array, an array"):
        agent.act(observation[:2])
    with raises("an array, an array, an array", "an array"):
        agent.act(np.zeros(3))
    # Agents are bound to a tree.
    agent = make_eager_agent(AGENTS["PPO"], structured("dict"))
    for other in ("nested", "tuple", "multi_binary"):
        env = structured(other)
        with raises("observation space that", "."):
            agent.evaluate(env, episodes=1)
    assert sorted(agent.policy.observation_spec) == [
        "camera",
        "gear",
        "position",
    ]
    assert [spec.dtype for spec in leaves(agent.policy.observation_spec)] == [
        "uint8",
        "int32",
        "float32",
    ]


def test_act_casts_lists_and_wider_dtypes(untrained):
    """Wider numbers, lists and integers for floats are no mistakes."""
    batch = batch_of(untrained.observation_space, 4)
    expected = untrained.act(batch, deterministic=True)
    for change in (
        lambda leaf: leaf.tolist(),
        lambda leaf: leaf.astype("int64") if leaf.dtype.kind != "f" else leaf,
        lambda leaf: leaf.astype("float64") if leaf.dtype.kind == "f" else leaf,
    ):
        np.testing.assert_array_equal(
            untrained.act(map_leaves(change, batch), deterministic=True),
            expected,
        )


class Misfit(StructuredEnv):
    """Observes something else than its space says.

    Args:
        change: Function of an observation to its replacement.
    """

    def __init__(self, change):
        super().__init__(OBSERVATIONS["dict"])
        self._change = change

    def reset(self, **kwargs):
        observation, info = super().reset(**kwargs)
        return self._change(observation), info


def test_environments_that_violate_their_space_are_refused(untrained):
    before = weights_of(untrained)
    for what in ("no dict", "dtype"):
        change, expected, received = BAD[what]
        env = Misfit(change)
        with raises(f"(Misfit.*)?{expected}.*", received):
            untrained.evaluate(env, episodes=1)
    for what in ("missing", "shape"):
        env = vector(functools.partial(Misfit, BAD[what][0]))
        # Gymnasium's own error, with a note.
        with pytest.raises((KeyError, ValueError)) as caught:
            untrained.fit(AGENTS["PPO"].make_dataset(env), verbose=0)
        notes = "".join(caught.value.__notes__)
        assert "Expected observations of Dict(camera: Box" in notes
        assert "environments of Misfit" in notes
    assert_equal_weights(untrained, before)


def test_spaces_that_cannot_be_used_are_refused():
    text, choice = spaces.Text(3), spaces.Discrete(2)
    for space in (
        spaces.Dict({"a": choice, "say": text}),
        spaces.Tuple([spaces.Sequence(choice), choice]),
        spaces.Dict({"deep": spaces.Dict({"say": text}), "b": choice}),
    ):
        with raises(
            "gymnasium.wrappers.FilterObservation",
            "(say|0|deep.say): (Text|Sequence)",
        ):
            rl.PPO.for_env(StructuredEnv(space))
    env = StructuredEnv(spaces.Dict({"a": choice, "say": text}))
    env = gymnasium.wrappers.FilterObservation(env, ["a"])
    agent = make_eager_agent(AGENTS["PPO"], env)
    assert_members(env.action_space, agent.act({"a": 1}))
    # Nor can they be used without names, or with those of others.
    for space in (
        spaces.Dict({}),
        spaces.Tuple([]),
        spaces.Dict({"a": spaces.Dict({})}),
        spaces.Dict({1: spaces.Discrete(2)}),
    ):
        with raises("Expected", "Dict|Tuple|keys"):
            as_vector_env(StructuredEnv(space))
    box = spaces.Box(-1.0, 1.0, (2,))
    space = spaces.Dict({"a.b": box, "a": spaces.Dict({"b": box})})
    with raises("told apart", "a.b"):
        rl.PPO.for_env(StructuredEnv(space))


def assert_litert_acts_alike(agent, batch):
    """Asserts the same greedy actions on each row."""
    expected = agent.act(batch, deterministic=True).tolist()
    policy = agent.policy.litert()
    actions = [int(policy(row(batch, i))) for i in range(len(expected))]
    assert actions == expected
    assert len(set(expected)) > 1


def test_any_key_will_do(tmp_path):
    box = spaces.Box(-1.0, 1.0, (2,))
    keys = ("arm/angle", "an arm", "ärm", "_", "0", "a-b")
    space = spaces.Dict(
        # The last two are alike as names of files.
        {**dict.fromkeys(keys, box), "a_b": box, "a": spaces.Dict({"b": box})}
    )
    agent = make_eager_agent(EVERY_AGENT["DQN"], StructuredEnv(space))
    network = agent.q_network
    network.set_weights([9.0 * w for w in network.get_weights()])
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    batch = batch_of(space, 20)
    np.testing.assert_array_equal(
        *(one.act(batch, deterministic=True) for one in (loaded, agent))
    )
    assert_litert_acts_alike(agent, batch)
