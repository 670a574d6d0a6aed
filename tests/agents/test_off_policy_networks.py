"""Networks that a user brings to agents that learn from replay."""

import keras
import numpy as np
import pytest

from keras_rl2.networks import network_copies
from support.agents import EITHER_KIND
from support.agents import OFF_POLICY
from support.agents import assert_equal_weights
from support.agents import differ
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_replay
from support.errors import raises
from support.plain_networks import dense
from support.plain_networks import dense_of_both
from support.plain_networks import plain_networks

over_agents = pytest.mark.parametrize("name", OFF_POLICY)
CRITICS = {
    name: case.make.number_of_critics
    for name, case in OFF_POLICY.items()
    if "q_network" not in case.networks
}
with_critics = pytest.mark.parametrize("name", CRITICS)
with_twins = pytest.mark.parametrize(
    "name", [name for name, count in CRITICS.items() if count == 2]
)


def unbuilt(inputs, units):
    return keras.Sequential(
        [keras.layers.Dense(8, "tanh"), keras.layers.Dense(units)]
    )


@keras.saving.register_keras_serializable(package="test_off_policy_networks")
class Subclassed(keras.Model):
    """A network as a user would write it, of one input or of two."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.hidden = keras.layers.Dense(8, "tanh")
        self.out = keras.layers.Dense(units)

    def call(self, inputs):
        if isinstance(inputs, list):
            inputs = keras.ops.concatenate(inputs, axis=-1)
        return self.out(self.hidden(inputs))

    def get_config(self):
        return {**super().get_config(), "units": self.units}


def subclassed(inputs, units):
    return Subclassed(units)


BUILDERS = {
    "sequential": (dense, dense_of_both),
    "unbuilt_sequential": (unbuilt, subclassed),
    "subclassed": (subclassed, subclassed),
}


def networks_by(case, builder):
    """Makes the networks of an agent, by its constructor's arguments."""
    acting, valuing = BUILDERS[builder]
    if "q_network" in case.networks:
        return {"q_network": acting((3,), case.units)}
    networks = {"actor": acting((3,), case.units), "critic": valuing((3,), 1)}
    if "value_network" in case.networks:
        networks["value_network"] = acting((3,), 1)
    return networks


@pytest.mark.spread(builder=["unbuilt_sequential", "subclassed"])
@pytest.mark.rotate(name=EITHER_KIND)
@over_agents
@pytest.mark.parametrize("builder", BUILDERS)
def test_networks_of_the_user(name, builder, tmp_path):
    case = OFF_POLICY[name]
    agent = case.make(**networks_by(case, builder), seed=0)
    agent.compile(keras.optimizers.Adam(1e-2), run_eagerly=True)
    agent.fit(make_replay(make_env(case.pair)), verbose=0)
    assert agent.optimizer.iterations.numpy() == 2
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert_equal_weights(loaded, agent)
    batch = np.random.default_rng(0).uniform(-1, 1, (5, 3))
    np.testing.assert_array_equal(
        *(one.act(batch, deterministic=True) for one in (loaded, agent))
    )


@pytest.mark.rotate(name=EITHER_KIND)
@over_agents
@pytest.mark.parametrize("builder", BUILDERS)
def test_targets_begin_as_copies_that_are_not_trained(name, builder):
    case, env = OFF_POLICY[name], make_env(OFF_POLICY[name].pair)
    agent = case.make(**networks_by(case, builder))
    agent.bind(env.observation_space, env.action_space)
    trained = {id(variable) for variable in agent.trainable_variables}
    for target, source in agent.target_pairs:
        assert_equal_weights(target.get_weights(), source.get_weights())
        assert not trained & {id(variable) for variable in target.variables}


@pytest.mark.spread
@with_twins
@pytest.mark.parametrize("builder", BUILDERS)
def test_one_critic_gets_a_twin_with_weights_of_its_own(name, builder):
    case, env = OFF_POLICY[name], make_env(OFF_POLICY[name].pair)
    agent = case.make(**networks_by(case, builder))
    agent.bind(env.observation_space, env.action_space)
    one, other = (critic.get_weights() for critic in agent.critics)
    assert [w.shape for w in one] == [w.shape for w in other]
    assert differ(one, other)
    owned = [id(variable) for variable in agent.variables]
    for network in (*agent.critics, *agent.target_critics):
        for variable in network.variables:
            assert owned.count(id(variable)) == 1


def test_a_twin_of_a_network_with_fixed_seeds_has_others():
    start = keras.initializers.GlorotUniform(seed=3)
    network = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(2, kernel_initializer=start)]
    )
    twins = [network_copies.sibling(network, index) for index in (1, 1, 2)]
    kernels = [each.get_weights()[0] for each in (network, *twins)]
    np.testing.assert_array_equal(kernels[1], kernels[2])
    assert (kernels[0] != kernels[1]).any()
    assert (kernels[1] != kernels[3]).any()


@with_critics
def test_critics_that_are_given_stay_as_they_are(name):
    case, env = OFF_POLICY[name], make_env(OFF_POLICY[name].pair)
    critics = [dense_of_both((3,), 1) for _ in range(2)]
    critics = critics[: case.make.number_of_critics]
    agent = case.make(**{**plain_networks(case), "critic": critics})
    agent.bind(env.observation_space, env.action_space)
    assert all(a is b for a, b in zip(agent.critics, critics, strict=True))


@with_critics
def test_too_many_critics(name):
    case = OFF_POLICY[name]
    critics = [dense_of_both((3,), 1) for _ in range(3)]
    with raises("Expected one `critic`", "3"):
        case.make(**{**plain_networks(case), "critic": critics})


def bind(case, networks):
    env = make_env(case.pair)
    agent = case.make(**networks)
    agent.bind(env.observation_space, env.action_space)


@over_agents
def test_output_of_another_width(name):
    case = OFF_POLICY[name]
    who = "q_network" if "q_network" in case.networks else "actor"
    with raises(rf"the {who}'s output .*\(batch, {case.units}\)", "7"):
        bind(case, plain_networks(case, units=7))


@with_critics
def test_critic_of_another_width(name):
    case = OFF_POLICY[name]
    with raises(r"the critic's output .*\(batch, 1\)", r"\(None, 2\)"):
        bind(case, plain_networks(case, value_units=2))


@with_critics
def test_critic_that_does_not_take_actions(name):
    networks = {**plain_networks(OFF_POLICY[name]), "critic": dense((3,), 1)}
    with raises("the critic to take a list of observations .* and actions", ""):
        bind(OFF_POLICY[name], networks)


def test_critics_of_discrete_actions_value_each_of_them():
    case, env = OFF_POLICY["SAC"], make_env("act_discrete")
    agent = case.make(dense((3,), 3), dense((3,), 3), seed=0)
    agent.compile(run_eagerly=True)
    agent.fit(make_replay(env), verbose=0)
    wrong = case.make(dense((3,), 3), dense((3,), 1))
    with raises(r"the critic's output .*\(batch, 3\)", r"\(None, 1\)"):
        wrong.bind(env.observation_space, env.action_space)


@pytest.mark.rotate(name=EITHER_KIND)
@with_critics
def test_two_optimizers_are_saved(name, tmp_path):
    case, env = OFF_POLICY[name], make_env(OFF_POLICY[name].pair)
    agent = make_eager_agent(
        case,
        env,
        compile_arguments={
            "optimizer": keras.optimizers.Adam(1e-2),
            "critic_optimizer": keras.optimizers.SGD(1e-2),
        },
    )
    agent.fit(make_replay(env), verbose=0)
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    for one in (agent, loaded):
        adam, sgd = one.optimizer.optimizers
        assert isinstance(adam, keras.optimizers.Adam)
        # The rate and a count, no moments.
        assert len(sgd.variables) == 2
        one.fit(make_replay(env, seed=1), verbose=0)
    assert_equal_weights(loaded, agent)


def test_a_second_optimizer_needs_critics():
    case = OFF_POLICY["DQN"]
    agent = make_eager_agent(case, make_env(case.pair))
    with raises("one `optimizer`", "`critic_optimizer`"):
        agent.compile("adam", critic_optimizer="sgd")
