"""Critics: their number, the meaning of their outputs, and delayed policies."""

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

import keras_rl2 as rl
from keras_rl2.losses import value_distribution
from keras_rl2.networks.inputs import one_value_each
from support import deterministic
from support.agents import EVERY_AGENT
from support.agents import assert_equal_weights
from support.agents import differ
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_replay
from support.agents import slow
from support.deterministic import BATCH
from support.deterministic import UNIT
from support.deterministic import linear_actor
from support.deterministic import linear_critic
from support.deterministic import linear_network
from support.deterministic import small_agent
from support.errors import raises
from support.plain_networks import dense
from support.plain_networks import dense_of_both
from support.plain_networks import plain_networks

over_critics = pytest.mark.parametrize(
    "name", ["SAC", "TD3", *slow("CrossQ", "IQL", "TQC", "DDPG", "BoxCQL")]
)
MINIBATCH = {
    key: ops.convert_to_tensor(value, "float32")
    for key, value in {
        **BATCH,
        "action": np.array([[0.5], [-1.0], [0.2]]),
    }.items()
}

# Their number.


@over_critics
def test_any_number_of_critics_learns_and_is_saved(name, tmp_path):
    case, env = EVERY_AGENT[name], make_env("act_box")
    agent = make_eager_agent(case, env, num_critics=3)
    assert len(agent.critics) == agent.num_critics == 3
    starts = {each.get_weights()[-2].tobytes() for each in agent.critics}
    assert len(starts) == 3
    before = [each.get_weights() for each in agent.critics]
    agent.fit(make_replay(env), verbose=0)
    for network, old in zip(agent.critics, before, strict=True):
        assert differ(old, network.get_weights())
    pairs = [one for _, one in agent.target_pairs if one in agent.critics]
    assert len(pairs) == (0 if name == "CrossQ" else 3)
    agent.save(tmp_path / "agent.keras")
    loaded = rl.load(tmp_path / "agent.keras")
    assert loaded.num_critics == 3
    assert_equal_weights(loaded, agent)


@pytest.mark.parametrize("name", ["SAC", *slow("TD3", "TQC")])
def test_one_network_is_copied_or_has_the_outputs_of_all(name, tmp_path):
    case, env = EVERY_AGENT[name], make_env("act_box")
    own = case.widths["critic"]
    seen, action = ops.ones((5, 3)), ops.ones((5, 1))
    for width, networks in ((own, 3), (3 * own, 1)):
        given = plain_networks(case, value_units=width)
        agent = case.make(**given, num_critics=3, seed=0)
        agent.compile(run_eagerly=True)
        agent.fit(make_replay(env, updates_per_round=1), verbose=0)
        assert len(agent.critics) == networks
        values = agent.values_of_taken(seen, action)
        assert [each.shape for each in values] == [(5,)] * 3
        assert len({float(each[0]) for each in values}) == 3
        agent.save(tmp_path / "agent.keras")
        assert_equal_weights(rl.load(tmp_path / "agent.keras"), agent)


def test_critics_in_one_network_learn_as_those_of_two():
    first, second = (1.0, 2.0, 0.5), (0.3, 1.0, 0.0)
    agents = []
    for given in (
        [first, second],
        [tuple(map(list, zip(first, second, strict=True)))],
    ):
        agent = deterministic.linear_agent(
            rl.TD3, (0.5, 0.2), given, policy_delay=1, target_noise=0.0
        )
        logs = agent.train_step(MINIBATCH)
        agents.append((agent, {k: float(v) for k, v in logs.items()}))
    (two, expected), (one, logs) = agents
    assert logs == pytest.approx(expected, rel=1e-5)
    for index in range(2):
        for both, own in zip(
            one.critics[0].get_weights(),
            two.critics[index].get_weights(),
            strict=True,
        ):
            np.testing.assert_allclose(
                both[..., index], own[..., 0], rtol=1e-5, atol=1e-6
            )


def test_critics_in_one_network_value_discrete_actions():
    env = make_env("act_discrete")
    agent = rl.SAC(dense((3,), 3), dense((3,), 6), seed=0)
    agent.compile(run_eagerly=True)
    agent.fit(make_replay(env, updates_per_round=1), verbose=0)
    seen = np.ones((2, 3), "float32")
    outputs = np.array(agent.critics[0](seen))
    taken = agent.values_of_taken(seen, np.array([2, 0]))
    np.testing.assert_array_equal(taken[0], outputs[[0, 1], [2, 0]])
    np.testing.assert_array_equal(taken[1], outputs[[0, 1], [5, 3]])


def test_a_wrong_number_of_critics_is_refused():
    for number in (0, 1.5):
        with raises("num_critics", str(number)):
            small_agent(rl.SAC, num_critics=number)
    two = [dense_of_both((3,), 1) for _ in range(2)]
    with raises("Expected one `critic` or 3", "2"):
        rl.SAC(dense((3,), 2), two, num_critics=3)


def test_several_values_of_a_sample_are_refused():
    for one in (np.ones((3, 1)), np.ones(3)):
        assert one_value_each(ops.convert_to_tensor(one)).shape == (3,)
    with raises("one value for each sample", r"\(3, 2\)"):
        one_value_each(ops.ones((3, 2)))


# A part of them in the target: REDQ.


def redq(**settings):
    """Four critics of constant values 0 to 3, and nearly no temperature."""
    return rl.SAC(
        linear_network([0.0, 0.0], [0.0, 0.0], "actor"),
        [linear_critic(bias=float(i), name=f"critic_{i}") for i in range(4)],
        observation_space=UNIT,
        action_space=UNIT,
        temperature=1e-12,
        **{"num_critics": 4, "critics_in_target": 2, "seed": 0, **settings},
    )


def targets_of(agent, updates):
    """The target values of so many updates, all those of one are equal."""
    draw = tf.function(lambda: agent.next_value(MINIBATCH), autograph=False)
    found = []
    for update in range(updates):
        agent.updates.assign(update)
        value = np.array(draw())
        np.testing.assert_allclose(value, value[0], atol=1e-6)
        found.append(round(float(value[0])))
    return found


def test_targets_are_of_critics_that_are_drawn_at_each_update():
    found = targets_of(redq(), 120)
    # Of 6 pairs, 3 have the minimum 0, 2 have 1, and 1 has 2.
    share = np.bincount(found, minlength=4) / len(found)
    np.testing.assert_allclose(share, [1 / 2, 1 / 3, 1 / 6, 0], atol=0.12)
    assert targets_of(redq(), 9) == found[:9]
    assert targets_of(redq(seed=1), 9) != found[:9]
    assert set(targets_of(redq(critics_in_target=4), 5)) == {0}
    assert set(targets_of(redq(critics_in_target=None), 5)) == {0}


def test_the_policy_follows_the_mean_of_all_critics():
    loss = redq().actor_terms(MINIBATCH)["actor_loss"]
    assert float(loss) == pytest.approx(-1.5 * np.mean(BATCH["weight"]))
    for number in (0, 5):
        with raises("critics_in_target", str(number)):
            redq(critics_in_target=number)


# Distributions as critics: FastTD3.


def test_the_target_is_the_distribution_of_the_smaller_mean():
    # The first is sure of 2, the second of 1; of the atoms 0, 1 and 2.
    critics = [(0.0, 0.0, [0.0, 0.0, 99.0]), (0.0, 0.0, [0.0, 99.0, 0.0])]
    agent = deterministic.linear_agent(
        rl.TD3,
        (0.0, 0.0),
        critics,
        distributional="categorical",
        atoms=3,
        support=(0.0, 2.0),
        policy_delay=1,
        target_noise=0.0,
    )
    batch = {key: value[:1] for key, value in MINIBATCH.items()}
    batch["reward"], batch["discount"] = ops.array([0.75]), ops.array([0.5])
    # 0.75 + 0.5 * 1 lies at 1.25: 3/4 of it goes to 1 and 1/4 to 2.
    expected = [[0.0, 0.75, 0.25]]
    np.testing.assert_allclose(agent.targets(batch), expected, atol=1e-6)
    for critic in agent.critics:
        critic.set_weights([np.zeros((2, 3)), np.log([0.25, 0.5, 0.25])])
    logs = agent.update(batch)
    loss = 0.75 * np.log(2) + 0.25 * np.log(4)
    assert float(logs["critic_loss"]) == pytest.approx(2 * loss)
    assert float(logs["q_value"]) == pytest.approx(1.0)
    assert float(logs["actor_loss"]) == pytest.approx(-1.0)
    # The gradient of the logits is p - target.
    np.testing.assert_allclose(
        agent.critics[0].get_weights()[1] - np.log([0.25, 0.5, 0.25]),
        [-0.25, 0.25, 0.0],
        atol=1e-6,
    )


@pytest.mark.parametrize("kind", ["categorical", *slow("quantile")])
def test_distributional_critics_are_made_trained_and_saved(kind, tmp_path):
    env = make_env("act_box")
    agent = make_eager_agent(
        EVERY_AGENT["TD3"], env, distributional=kind, atoms=5
    )
    assert agent.critics[0].output_shape == (None, 5)
    agent.fit(make_replay(env, prioritized=True), verbose=0)
    agent.save(tmp_path / "agent.keras")
    loaded = rl.load(tmp_path / "agent.keras")
    assert_equal_weights(loaded, agent)
    assert (loaded.distributional, loaded.atoms) == (kind, 5)
    with raises("distributional", "normal"):
        small_agent(rl.TD3, distributional="normal")
    with raises("critic's output to have 51 or 102 units", "1 units"):
        rl.TD3(
            linear_actor(),
            linear_critic(),
            distributional=kind,
            observation_space=UNIT,
            action_space=UNIT,
        )


# A policy that is updated less often.


def logs_of(agent):
    agent.statistics.reset_state()
    return {k: float(v) for k, v in agent.train_step(MINIBATCH).items()}


@pytest.mark.parametrize("eager", [True, *slow(False)])
def test_updates_between_report_the_last_ones_of_the_policy(eager, tmp_path):
    agent = rl.SAC(
        linear_network([0.3, -0.2], [0.1, -0.5], "actor"),
        linear_critic(0.5, 1.0, 0.2),
        observation_space=UNIT,
        action_space=UNIT,
        policy_delay=2,
        seed=0,
    )
    agent.compile(run_eagerly=eager)
    actor, critic = agent.compile_arguments.optimizers
    first, second, third, fourth = (logs_of(agent) for _ in range(4))
    keys = ("actor_loss", "entropy", "temperature")
    for key in keys:
        assert first[key] == 0.0
        assert second[key] == third[key] != 0.0
        assert fourth[key] != third[key]
    assert [each.iterations.numpy() for each in (actor, critic)] == [2, 4]
    agent.save(tmp_path / "agent.keras")
    loaded = rl.load(tmp_path / "agent.keras")
    for key, value in logs_of(loaded).items():
        if key in keys:
            assert value == fourth[key]


def test_a_statistic_that_no_loss_returns_is_named():
    class Wrong(rl.SAC):
        statistics_names = (*rl.SAC.statistics_names, "kl")

    class Late(rl.SAC):
        actor_statistics = (*rl.SAC.actor_statistics, "kl")

    for make, delay in ((Wrong, 1), (Late, 2)):
        agent = small_agent(make, policy_delay=delay)
        agent.compile(run_eagerly=True)
        with raises("`loss_terms`, or a function .* return `kl`", "entropy"):
            agent.fit(deterministic.small_replay(), verbose=0)


# Classes of a user's own.


class OneCritic(rl.TD3):
    """Trains the first of its critics alone."""

    def critic_terms(self, outputs, batch):
        return super().critic_terms(outputs[:1], batch)


class OwnValues(rl.TD3):
    """Sets what its critics' outputs mean."""

    def __init__(self, actor, critic, **kwargs):
        super().__init__(actor, critic, **kwargs)
        self.value_distribution = value_distribution("quantile", 5, (0, 1))


class Stochastic(rl.agents.StochasticPolicy, rl.agents.CriticAgent):
    """Maximises the value and the entropy of a policy with a log std."""

    def next_value(self, batch):
        seen = batch["next_observation"]
        action = self.greedy_action(seen)
        return self.values(self.target_critics, seen, action)[0]

    def actor_terms(self, batch):
        policy = self.distribution(batch["observation"], training=True)
        noise = ops.zeros_like(batch["action"]) + 0.5
        action, log_prob = policy.sample_and_log_prob(noise)
        [value] = self.values(self.critics[:1], batch["observation"], action)
        return {"loss": ops.mean(log_prob - value)}


def trained(kind):
    agent = kind.for_env(make_env("act_box"), hidden=(4,), seed=0)
    agent.compile(run_eagerly=True)
    before = [each.get_weights() for each in agent.critics]
    agent.fit(make_replay(make_env("act_box")), verbose=0)
    return agent, before


def test_a_network_that_no_loss_has_stays_as_it_is():
    agent, before = trained(OneCritic)
    assert differ(before[0], agent.critics[0].get_weights())
    assert not differ(before[1], agent.critics[1].get_weights())


def test_the_meaning_of_outputs_is_an_attribute():
    given = plain_networks(EVERY_AGENT["TD3"], value_units=5)
    agent = OwnValues(**given, seed=0)
    agent.compile(run_eagerly=True)
    agent.fit(make_replay(make_env("act_box")), verbose=0)
    batch = {"next_observation": ops.ones((7, 3))}
    assert agent.next_value(batch).shape == (7, 5)


def test_a_log_std_apart_from_the_networks_is_trained():
    agent, _ = trained(Stochastic)
    assert (ops.convert_to_numpy(agent.log_std) != 0.0).all()
