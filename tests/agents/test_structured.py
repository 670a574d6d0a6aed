"""Every agent on observations of several arrays."""

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
from keras_rl2.updates.critics import action_values
from support.agents import AGENTS
from support.agents import EVERY_AGENT
from support.agents import assert_equal_weights
from support.agents import fit_twice
from support.agents import make_agent
from support.agents import make_eager_agent
from support.agents import networks_of
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

over_agents = pytest.mark.parametrize("name", EVERY_AGENT)
over_spaces = pytest.mark.parametrize("observed", OBSERVATIONS)
in_part = pytest.mark.spread(
    name=["PPO", "DQN"], observed=["dict", "tuple", "nested"]
)


def plain_descent():
    """Returns an optimizer that is quick where updates are not traced."""
    return keras.optimizers.SGD(0.1)


def env_for(name, observed="dict"):
    """Makes two environments that an agent can act in."""
    return structured(observed, EVERY_AGENT[name].actions[0])


@pytest.fixture(scope="module")
def trained():
    """Agents after two rounds, by agent and observation; made once."""
    made = {}

    def get(name, observed):
        if (name, observed) not in made:
            case, env = EVERY_AGENT[name], env_for(name, observed)
            # Of an update that is not traced, Adam would take the half.
            agent = make_eager_agent(
                case, env, compile_arguments={"optimizer": plain_descent()}
            )
            made[name, observed] = agent, *fit_twice(case, agent, env)
        return made[name, observed]

    return get


@in_part
@over_agents
@over_spaces
def test_fit_changes_every_weight(name, observed, trained):
    agent, history, before = trained(name, observed)
    assert agent.env_steps > 0
    for key in (*agent.statistics_names, "episode_return"):
        assert np.isfinite(history[key]).all(), key
    for old, new in zip(before, agent.get_weights(), strict=True):
        assert np.isfinite(new).all()
        # Nothing is changed only where nothing was seen, in a picture's
        # corner say; a whole array would be what no network is given.
        assert (old != new).any()


@in_part
@over_agents
@over_spaces
def test_act_on_one_and_on_many(name, observed, trained):
    agent = trained(name, observed)[0]
    batch = batch_of(agent.observation_space, 6)
    for deterministic in (False, True):
        actions = agent.act(batch, deterministic=deterministic)
        assert_members(agent.action_space, actions, (6,))
    for index in range(6):
        one = agent.act(row(batch, index), deterministic=True)
        assert_members(agent.action_space, one)
        np.testing.assert_allclose(one, actions[index], rtol=1e-5, atol=1e-6)


@in_part
@over_agents
@over_spaces
def test_every_array_matters(name, observed, trained):
    """What the network that acts gives depends on each of them."""
    agent = trained(name, observed)[0]
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


@in_part
@over_agents
@over_spaces
def test_evaluate(name, observed, trained):
    agent = trained(name, observed)[0]
    before = weights_of(agent)
    results = [
        agent.evaluate(env_for(name, observed), episodes=4, seed=0)
        for _ in range(2)
    ]
    # Two environments with episodes of 3 and 1 steps.
    assert results[0]["episode_length"] == 2.0
    assert results[0] == results[1]
    assert_equal_weights(agent, before)


@in_part
@over_agents
@over_spaces
def test_saved_and_loaded_agent_is_the_same(name, observed, trained, tmp_path):
    agent = trained(name, observed)[0]
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert loaded.observation_space == agent.observation_space
    assert_equal_weights(loaded, agent)
    batch = batch_of(agent.observation_space, 20)
    np.testing.assert_array_equal(
        loaded.act(batch, deterministic=True),
        agent.act(batch, deterministic=True),
    )


@pytest.mark.spread(name=["PPO"])
@over_agents
@pytest.mark.parametrize("observed", ["dict", "nested"])
def test_actors_run_by_litert(name, observed):
    env, case = env_for(name, observed), EVERY_AGENT[name]
    agent = make_agent(case, env)
    actor = rl.data.ActorSnapshot(agent, num_envs=4, deterministic=True)
    assert actor.backend == "litert"
    batch = map_leaves(
        lambda spec, array: array.astype(spec.dtype),
        agent.observation_spec,
        batch_of(agent.observation_space, 4),
    )
    _, actions = actor(batch)
    expected = agent.act(batch, deterministic=True)
    np.testing.assert_allclose(actions, expected, rtol=1e-4, atol=1e-5)


# Default networks.


def all_networks(agent):
    """Returns the networks that an agent was given."""
    given = networks_of(agent)
    critics = given.pop("critic", [])
    return [*given.values()] + (
        critics if isinstance(critics, list) else [critics]
    )


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


@pytest.mark.parametrize("name", ["PPO", "SAC"])
def test_a_mask_is_no_input_of_default_networks(name):
    agent = make_eager_agent(EVERY_AGENT[name], MaskedEnv())
    for network in all_networks(agent):
        assert [tensor.name for tensor in network.inputs] == ["position"]


# Normalisation.


def layers_by_key(network):
    return {
        layer.key: layer
        for layer in network.layers
        if isinstance(layer, ObservationNormalization)
    }


@pytest.mark.spread(name=["PPO"])
@over_agents
def test_normalization_of_each_array(name, monkeypatch):
    case, env = EVERY_AGENT[name], env_for(name, "dict")
    agent = make_eager_agent(case, env, normalize_observations=True)
    seen, observe = [], agent.observe

    def keep(trajectory):
        seen.append(
            map_leaves(
                lambda array: array[:-1][trajectory.valid],
                trajectory.observation,
            )
        )
        observe(trajectory)

    monkeypatch.setattr(agent, "observe", keep)
    dataset = case.make_dataset(env)
    dataset.bind(agent)
    for _ in range(2):
        dataset.collect()
    position = np.concatenate([each["position"] for each in seen])
    gear = np.concatenate([np.eye(4)[each["gear"] - 1] for each in seen])
    network = agent.acting_networks[0]
    layers = layers_by_key(network)
    # Pictures are scaled by themselves.
    assert set(layers) == {"position", "gear"}
    for layer, expected in (
        (layers["position"], position),
        (layers["gear"], gear),
    ):
        assert float(layer.count) == len(expected) >= 8
        np.testing.assert_allclose(
            layer.running_mean, expected.mean(0), rtol=1e-4, atol=1e-6
        )
        np.testing.assert_allclose(
            layer.running_variance, expected.var(0), rtol=1e-3, atol=1e-6
        )


@pytest.mark.spread(observed=["multi_discrete"])
@pytest.mark.parametrize("observed", ["multi_discrete", "multi_binary"])
def test_normalization_of_the_only_array(observed):
    case, env = AGENTS["PPO"], structured(observed)
    agent = make_eager_agent(case, env, normalize_observations=True)
    dataset = case.make_dataset(env)
    dataset.bind(agent)
    dataset.refresh()
    (layer,) = layers_by_key(agent.actor).values()
    rows = map_leaves(
        lambda array: array[dataset.valid_rows], dataset.samples["observation"]
    )
    expected = agent.task.encode(rows).numpy().mean(0)
    np.testing.assert_allclose(
        layer.running_mean, expected, rtol=1e-4, atol=1e-6
    )


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


# Networks of somebody's own.


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


class Subclassed(keras.Model):
    """A model of one's own, which is given all arrays."""

    def __init__(self, units):
        super().__init__()
        self.out = keras.layers.Dense(units)

    def call(self, observation):
        assert set(observation) == {"camera", "position", "gear"}
        return self.out(
            keras.ops.concatenate(
                [observation["position"], observation["gear"]], axis=-1
            )
        )


OWN = {
    "by_names": by_names,
    "by_keys": by_keys,
    "by_one_name": by_one_name,
    "subclassed": Subclassed,
}


class OwnCritic(keras.Model):
    """A critic of one's own, of all arrays and the action."""

    def __init__(self, units):
        super().__init__()
        self.out = keras.layers.Dense(units)

    def call(self, inputs):
        observation, action = inputs
        assert set(observation) == {"camera", "position", "gear"}
        return self.out(
            keras.ops.concatenate([observation["position"], action], axis=-1)
        )


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


CRITICS = {
    "by_names": critic_by_names,
    "by_keys": critic_by_keys,
    "by_one_name": critic_by_names,
    "subclassed": functools.partial(OwnCritic, 1),
}


def own_agent(name, kind):
    """Makes an agent of networks of somebody's own."""
    case, make = EVERY_AGENT[name], OWN[kind]
    if "q_network" in case.networks:
        agent = case.make(make(3), seed=0)
    elif case.on_policy:
        agent = case.make(make(3), make(1), seed=0)
    elif case.networks == ("actor",):
        agent = case.make(make(case.units), seed=0)
    else:
        values = [make(1)] if "value_network" in case.networks else []
        networks = (make(case.units), CRITICS[kind](), *values)
        agent = case.make(*networks, seed=0, **case.every_update)
    agent.compile(plain_descent(), run_eagerly=True)
    return agent


@pytest.mark.spread(name=["DQN"])
@over_agents
@pytest.mark.parametrize("kind", OWN)
def test_networks_of_ones_own(name, kind):
    case, env = EVERY_AGENT[name], env_for(name, "dict")
    agent = own_agent(name, kind)
    agent.bind(env.observation_space, env.action_space)
    before = weights_of(agent)
    agent.fit(case.make_dataset(env), verbose=0)
    for old, new in zip(before, agent.get_weights(), strict=True):
        assert (old != new).any()
    batch = batch_of(env.observation_space, 5)
    assert_members(agent.action_space, agent.act(batch), (5,))


@pytest.mark.parametrize("kind", ["by_names", "by_keys", "by_one_name"])
def test_an_input_gets_the_array_that_it_is_named_after(kind):
    env = structured("dict")
    agent = own_agent("PPO", kind)
    agent.bind(env.observation_space, env.action_space)
    batch = batch_of(env.observation_space, 5)
    gear = np.eye(4, dtype="float32")[batch["gear"] - 1]
    position = batch["position"].astype("float32")
    given = {
        "by_names": [gear, position],
        "by_keys": {"camera": batch["camera"], "position": position},
        "by_one_name": position,
    }[kind]
    np.testing.assert_allclose(agent(batch), agent.actor(given), rtol=1e-6)


@pytest.mark.spread
@pytest.mark.parametrize("kind", ["by_names", "by_keys"])
@pytest.mark.parametrize("name", ["DQN", "TD3"])
def test_agents_of_own_networks_are_saved(name, kind, tmp_path):
    env = env_for(name, "dict")
    agent = own_agent(name, kind)
    agent.bind(env.observation_space, env.action_space)
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    batch = batch_of(env.observation_space, 20)
    np.testing.assert_array_equal(
        loaded.act(batch, deterministic=True),
        agent.act(batch, deterministic=True),
    )
    assert_equal_weights(loaded, agent)


def test_paths_are_names_of_inputs():
    env = structured("nested")
    angle = keras.Input((2,), name="arm.angle")
    choices = keras.Input((5,), name="hands.0")
    x = keras.layers.Concatenate()([choices, angle])
    agent = rl.DQN(keras.Model([choices, angle], keras.layers.Dense(3)(x)))
    agent.bind(env.observation_space, env.action_space)
    batch = batch_of(env.observation_space, 4)
    encoded = agent.task.encode(batch)
    expected = agent.q_network([encoded["hands"][0], encoded["arm"]["angle"]])
    np.testing.assert_allclose(agent(batch), expected, rtol=1e-6)


def test_positions_are_names_of_inputs():
    env = structured("tuple")
    matrix = keras.Input((2, 2), name="1")
    x = keras.layers.Flatten()(matrix)
    agent = rl.DQN(keras.Model(matrix, keras.layers.Dense(3)(x)))
    agent.bind(env.observation_space, env.action_space)
    batch = batch_of(env.observation_space, 4)
    np.testing.assert_allclose(agent(batch), agent.q_network(batch[1]))


def test_a_dict_of_one_array_needs_no_names():
    env = StructuredEnv(spaces.Dict({"only": spaces.Box(-1.0, 1.0, (2,))}))
    networks = [
        keras.Sequential([keras.Input((2,)), keras.layers.Dense(units)])
        for units in (3, 1)
    ]
    agent = rl.PPO(*networks, seed=0)
    agent.evaluate(env, episodes=2)
    assert_members(env.action_space, agent.act({"only": np.zeros(2)}))


@pytest.mark.parametrize("subclassed", [False, True])
def test_a_masked_observation_of_one_array_beside_the_mask(subclassed):
    """The mask is not in the way of a network that knows nothing of it."""

    class Own(keras.Model):
        def __init__(self, units):
            super().__init__()
            self.out = keras.layers.Dense(units)

        def call(self, position):
            return self.out(position)

    def make(units):
        if subclassed:
            return Own(units)
        return keras.Sequential([keras.Input((3,)), keras.layers.Dense(units)])

    env = MaskedEnv()
    agent = rl.PPO(make(5), make(1), seed=0)
    agent.bind(env.observation_space, env.action_space)
    assert agent.evaluate(env, episodes=3)["episode_length"] > 0
    batch = masked_batch(count=4)
    expected = agent.critic(keras.ops.convert_to_tensor(batch["position"]))
    np.testing.assert_allclose(agent.value(batch), expected[:, 0], rtol=1e-6)


def test_a_subclassed_model_gets_the_tree_without_the_mask():
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

    agent = rl.A2C(Asking(5), Asking(1), seed=0)
    agent.evaluate(More(), episodes=2)
    agent.value(batch_of(agent.observation_space, 2))


def test_a_network_may_ask_for_the_mask():
    mask = keras.Input((5,), name="action_mask")
    position = keras.Input((3,), name="position")
    x = keras.layers.Concatenate()([position, mask])
    agent = rl.DQN(keras.Model([position, mask], keras.layers.Dense(5)(x)))
    env = MaskedEnv()
    agent.evaluate(env, episodes=2)
    batch = batch_of(env.observation_space, 3)
    batch["action_mask"][:] = [[1, 0, 1, 0, 1]]
    as_floats = batch["action_mask"].astype("float32")
    np.testing.assert_allclose(
        agent(batch), agent.q_network([batch["position"], as_floats])
    )


@pytest.mark.spread(name=["SAC"])
@pytest.mark.parametrize("name", ["SAC", "TD3"])
def test_a_pair_of_critics_by_names(name):
    case, env = EVERY_AGENT[name], env_for(name, "dict")
    agent = case.make(
        by_names(case.units), [critic_by_names(), critic_by_keys()]
    )
    agent.compile(run_eagerly=True)
    agent.fit(case.make_dataset(env), verbose=0)
    batch = batch_of(env.observation_space, 3)
    actions = keras.ops.ones((3, 1))
    encoded = agent.task.encode(batch)
    first = agent.critics[0]([actions, encoded["position"]])
    second = agent.critics[1]({"action": actions, "gear": encoded["gear"]})
    values = action_values(agent.critics, encoded, actions)
    np.testing.assert_allclose(values[0], first[:, 0], rtol=1e-6)
    np.testing.assert_allclose(values[1], second[:, 0], rtol=1e-6)


def test_targets_of_networks_that_configs_cannot_describe():
    """They are run by the code of the network, with inputs by their names."""
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
    encoded = agent.task.encode(batch_of(space, 5))
    np.testing.assert_allclose(
        run_network(agent.target_network, encoded),
        network([encoded["gear"], encoded["arm"]["angle"]]),
    )


@pytest.mark.parametrize("name", ["SAC", "TD3", "DDPG", "PPO"])
def test_an_array_that_is_called_action(name):
    """The last action, say. Critics of actions have that name already."""
    case = EVERY_AGENT[name]
    space = spaces.Dict(
        {"action": spaces.Box(-1.0, 1.0, (1,)), "at": spaces.Discrete(2)}
    )
    env = StructuredEnv(space, ACTIONS["box"])
    if case.on_policy:
        agent = make_eager_agent(case, env)
        names = [tensor.name for tensor in agent.actor.inputs]
        assert names == ["action", "at"]
        return
    with raises("no array of the observation to be called 'action'", "Dict"):
        case.make.for_env(env)


@pytest.mark.parametrize("what", ["actor", "critic"])
def test_inputs_that_nothing_is_named_after(what):
    wrong = keras.Input((3,), name="speed")
    gear = keras.Input((4,), name="gear")
    x = keras.layers.Concatenate()([wrong, gear])
    env = structured("dict")
    networks = {"actor": by_names(3), "critic": by_names(1)}
    networks[what] = keras.Model(
        [wrong, gear],
        keras.layers.Dense(3 if what == "actor" else 1)(x),
        name="mine",
    )
    agent = rl.PPO(**networks)
    with raises(
        "inputs of 'mine' to be named after .* 'gear', 'position'", "speed"
    ):
        agent.bind(env.observation_space, env.action_space)


def test_an_input_of_another_shape_than_its_array():
    position = keras.Input((4,), name="position")
    network = keras.Model(position, keras.layers.Dense(3)(position))
    env = structured("dict")
    with raises(
        r"q_network to take observations of shapes .*'position': \(None, 3\)",
        "Error",
    ):
        rl.DQN(network).bind(env.observation_space, env.action_space)


# What does not fit its space.


def without(key):
    return lambda tree: {k: v for k, v in tree.items() if k != key}


def with_change(key, change):
    return lambda tree: {**tree, key: change(tree[key])}


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
def strict_agent():
    return make_agent(AGENTS["PPO"], structured("dict"))


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("count", [None, 4])
def test_act_on_what_does_not_fit(what, count, strict_agent):
    change, expected, received = BAD[what]
    batch = batch_of(strict_agent.observation_space, 4)
    observation = batch if count else row(batch, 0)
    with raises(expected, received):
        strict_agent.act(change(observation))


def test_act_on_arrays_of_different_lengths(strict_agent):
    batch = batch_of(strict_agent.observation_space, 4)
    with raises("'position' of .*'B', 3", r"\(3, 3\)"):
        strict_agent.act({**batch, "position": batch["position"][:3]})


def test_act_on_what_can_be_cast(strict_agent):
    """Wider numbers, lists and integers for floats are no mistakes."""
    batch = batch_of(strict_agent.observation_space, 4)
    expected = strict_agent.act(batch, deterministic=True)
    for change in (
        lambda leaf: leaf.tolist(),
        lambda leaf: leaf.astype("int64") if leaf.dtype.kind != "f" else leaf,
        lambda leaf: leaf.astype("float64") if leaf.dtype.kind == "f" else leaf,
    ):
        np.testing.assert_array_equal(
            strict_agent.act(map_leaves(change, batch), deterministic=True),
            expected,
        )


def test_act_on_a_tuple_of_another_length():
    agent = make_eager_agent(AGENTS["PPO"], structured("tuple"))
    observation = row(batch_of(agent.observation_space, 1), 0)
    with raises("an array, an array, an array", "an array, an array"):
        agent.act(observation[:2])
    with raises("an array, an array, an array", "an array"):
        agent.act(np.zeros(3))


class Misfit(StructuredEnv):
    """Observes something else than its space says.

    Args:
        change: Function of an observation to what is given instead.
    """

    def __init__(self, change):
        super().__init__(OBSERVATIONS["dict"])
        self._change = change

    def reset(self, **kwargs):
        observation, info = super().reset(**kwargs)
        return self._change(observation), info


@pytest.mark.parametrize("what", BAD)
def test_environments_that_give_what_does_not_fit(what, strict_agent):
    change, expected, received = BAD[what]
    env = Misfit(change)
    before = weights_of(strict_agent)
    with raises(f"(Misfit.*)?{expected}.*", received):
        strict_agent.evaluate(env, episodes=1)
    dataset = AGENTS["PPO"].make_dataset(env)
    dataset.bind(strict_agent)
    with raises(f"(Misfit.*)?{expected}.*", received):
        dataset.collect()
    assert_equal_weights(strict_agent, before)


@pytest.mark.parametrize("what", ["missing", "shape"])
def test_vectors_that_give_what_does_not_fit(what, strict_agent):
    change, expected, received = BAD[what]
    env = vector(functools.partial(Misfit, change))
    with raises(expected, received) as caught:
        strict_agent.fit(AGENTS["PPO"].make_dataset(env), verbose=0)
    assert "Misfit, environment 0 of SyncVectorEnv" in str(caught.value)


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (
            spaces.Dict({"a": spaces.Discrete(2), "say": spaces.Text(3)}),
            r"\['a'\]",
        ),
        (
            spaces.Tuple(
                [spaces.Sequence(spaces.Discrete(2)), spaces.Discrete(2)]
            ),
            r"\[1\]",
        ),
        (
            spaces.Dict(
                {
                    "deep": spaces.Dict({"say": spaces.Text(3)}),
                    "b": spaces.Discrete(2),
                }
            ),
            r"\['b'\]",
        ),
    ],
    ids=["text", "sequence", "nested"],
)
def test_what_nobody_can_use_is_refused_with_the_wrapper_that_removes_it(
    space, expected
):
    env = StructuredEnv(space)
    with raises(
        rf"gymnasium.wrappers.FilterObservation\(env, {expected}\)",
        "(say|0|deep.say): (Text|Sequence)",
    ):
        rl.PPO.for_env(env)


def test_the_wrapper_that_is_named_does_remove_it():
    space = spaces.Dict({"a": spaces.Discrete(2), "say": spaces.Text(3)})
    env = gymnasium.wrappers.FilterObservation(StructuredEnv(space), ["a"])
    agent = make_eager_agent(AGENTS["PPO"], env)
    assert_members(env.action_space, agent.act({"a": 1}))


@pytest.mark.parametrize(
    "space",
    [
        spaces.Dict({}),
        spaces.Tuple([]),
        spaces.Dict({"a": spaces.Dict({})}),
        spaces.Dict({1: spaces.Discrete(2)}),
    ],
    ids=["dict", "tuple", "nested", "keys"],
)
def test_empty_branches_and_keys_that_are_no_strings(space):
    env = StructuredEnv(space)
    with raises("Expected", "Dict|Tuple|keys"):
        as_vector_env(env)


@pytest.mark.spread(key=["arm/angle", "ärm"])
@pytest.mark.parametrize("key", ["arm/angle", "an arm", "ärm", "_", "0", "a-b"])
def test_any_key_will_do(key, tmp_path):
    space = spaces.Dict(
        {key: spaces.Box(-1.0, 1.0, (2,)), "other": spaces.Discrete(2)}
    )
    env = vector(functools.partial(StructuredEnv, space))
    agent = make_eager_agent(EVERY_AGENT["DQN"], env)
    replay = EVERY_AGENT["DQN"].make_dataset(env)
    replay.bind(agent)
    replay.collect()
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    batch = batch_of(space, 9)
    expected = agent.act(batch, deterministic=True)
    for one in (loaded, agent):
        np.testing.assert_array_equal(
            one.act(batch, deterministic=True), expected
        )
    policy = agent.litert_policy()
    assert [int(policy(row(batch, i))) for i in range(9)] == expected.tolist()


def test_keys_that_only_files_could_take_for_each_other():
    box = spaces.Box(-1.0, 1.0, (2,))
    space = spaces.Dict({"a_b": box, "a": spaces.Dict({"b": box})})
    agent = make_eager_agent(EVERY_AGENT["DQN"], StructuredEnv(space))
    network = agent.q_network
    network.set_weights([9.0 * w for w in network.get_weights()])
    batch = batch_of(space, 20)
    expected = agent.act(batch, deterministic=True)
    policy = agent.litert_policy()
    assert [int(policy(row(batch, i))) for i in range(20)] == expected.tolist()
    assert len(set(expected.tolist())) > 1


def test_keys_that_cannot_be_told_apart():
    box = spaces.Box(-1.0, 1.0, (2,))
    space = spaces.Dict({"a.b": box, "a": spaces.Dict({"b": box})})
    with raises("told apart", "a.b"):
        rl.PPO.for_env(StructuredEnv(space))


def test_agents_are_bound_to_a_tree():
    agent = make_eager_agent(AGENTS["PPO"], structured("dict"))
    for other in ("nested", "tuple", "multi_binary"):
        env = structured(other)
        with raises("observation space that", "."):
            agent.evaluate(env, episodes=1)
    assert sorted(agent.observation_spec) == ["camera", "gear", "position"]
    assert [spec.dtype for spec in leaves(agent.observation_spec)] == [
        "uint8",
        "int32",
        "float32",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("observed", OBSERVATIONS)
def test_a_second_run_of_the_same_seed_is_the_same(observed):
    weights = []
    for _ in range(2):
        env = structured(observed)
        agent = make_eager_agent(AGENTS["PPO"], env)
        agent.fit(AGENTS["PPO"].make_dataset(env), verbose=0)
        weights.append(weights_of(agent))
    assert_equal_weights(*weights)


def test_names_of_actions_are_those_of_the_support():
    assert {case.actions[0] for case in EVERY_AGENT.values()} <= set(ACTIONS)
