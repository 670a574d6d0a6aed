"""Agents that remember: by steps and over sequences, within an episode."""

import functools
import warnings

import gymnasium as gym
import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl
from keras_rl2.collecting.trajectory import as_sequences
from support.agents import assert_equal_weights
from support.agents import slow
from support.memory_envs import PositionsOnly
from support.memory_envs import RememberTheCue
from support.remembering import CELLS
from support.remembering import stepwise

LENGTH = 8

#: For learning.
LARGE = {
    "lstm": lambda: keras.layers.LSTMCell(32),
    "gru": lambda: keras.layers.GRUCell(32),
}


def envs(mode, num_envs=3, **kwargs):
    return gym.make_vec(
        "CartPole-v1",
        num_envs=num_envs,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        **kwargs,
    )


def made(mode="SameStep", kind=rl.PPO, cell="lstm", **compile_arguments):
    """Returns an agent that remembers, and rollouts that it is bound to."""
    env = envs(mode)
    agent = kind.for_env(env, memory=CELLS[cell](), seed=0)
    agent.compile(jit_compile=False, **compile_arguments)
    rollouts = rl.RolloutDataset(
        env,
        horizon=2 * LENGTH,
        passes=1,
        batch_size=2 * LENGTH,
        rounds_per_epoch=1,
        sequence_length=LENGTH,
        seed=0,
    )
    rollouts.bind(agent)
    return agent, rollouts


def make_sure(network):
    """Moves all weights: new policies are nearly indifferent."""
    generator = np.random.default_rng(0)
    network.set_weights(
        [
            2.0 * weight + 0.1 * generator.normal(size=weight.shape)
            for weight in network.get_weights()
        ]
    )


@functools.cache
def acting(mode="SameStep", cell="lstm"):
    """Returns an agent that acts already, for tests that do not train it."""
    agent, rollouts = made(mode, cell=cell)
    make_sure(agent.actor)
    # Rounds after the first begin within episodes.
    rollouts.collect()
    return agent, rollouts


@pytest.mark.parametrize(
    ("cell", "mode"),
    [
        ("lstm", "SameStep"),
        *slow(
            ("stacked", "Disabled"),
            ("gru", "NextStep"),
        ),
    ],
)
def test_stepwise_equals_sequence(cell, mode):
    agent, rollouts = acting(mode, cell)
    trajectory = rollouts.collect()
    assert trajectory.ended.any()
    before = ~trajectory.valid if mode == "NextStep" else trajectory.ended
    np.testing.assert_array_equal(trajectory.begins[1:].astype(bool), before)
    samples, _ = agent.prepare(trajectory)
    log_probs, values, states = stepwise(agent, trajectory)
    counted = as_sequences(trajectory.valid, LENGTH)
    for name, array in (("log_prob", log_probs), ("value", values)):
        difference = as_sequences(array, LENGTH) - samples[name]
        assert np.abs(difference[counted]).max() < 1e-5
    # What acting kept is what the sequences start from.
    for index, kept in enumerate(trajectory.state):
        for k, start in enumerate(kept):
            expected = np.asarray(states[k * LENGTH][index])
            np.testing.assert_allclose(start, expected, atol=1e-5)


def test_training_sees_the_policy_that_acted():
    agent, rollouts = acting()
    batches = rollouts.as_dataset(agent)
    rollouts.refresh()
    batch = next(iter(batches))
    assert batch["observation"].shape == (2, LENGTH, 4)
    assert batch["weight"].shape == (2, LENGTH)
    parameters, _ = agent.run_sequences(
        batch["observation"], batch["begins"], batch["state"]
    )
    flat = tf.reshape(parameters, (-1, 2))
    policy = agent.policy_of(flat, tf.reshape(batch["observation"], (-1, 4)))
    log_prob = policy.log_prob(tf.reshape(batch["action"], (-1,)))
    counted = tf.reshape(batch["weight"], (-1,)) > 0
    difference = log_prob - tf.reshape(batch["log_prob"], (-1,))
    assert np.abs(difference[counted]).max() < 1e-5


def test_the_tensorflow_actor_has_the_memory_of_the_litert_actor(monkeypatch):
    agent, _ = acting()
    snapshot = rl.data.ActorSnapshot(agent.policy, 3, deterministic=True)
    assert snapshot.backend == "litert"

    def refuse(function):
        raise ValueError("not today")

    monkeypatch.setattr("keras_rl2.policies.actors._conversions", {})
    monkeypatch.setattr("keras_rl2.policies.actors.convert", refuse)
    other = rl.data.ActorSnapshot(agent.policy, 3, deterministic=True)
    assert other.backend == "tensorflow"
    generator = np.random.default_rng(0)
    for step in range(6):
        observation = generator.normal(size=(3, 4)).astype("float32")
        np.testing.assert_array_equal(
            snapshot(observation)[0], other(observation)[0]
        )
        for ours, theirs in zip(snapshot.state, other.state, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-5)
        begins = np.array([step == 2, False, step == 4])
        snapshot.begin(begins)
        other.begin(begins)
    for env in (0, 2):
        snapshot.begin(np.arange(3) == env)
    assert snapshot.begins.tolist() == [1.0, 0.0, 1.0]


# Where a memory begins anew.


def cut_off(mode):
    """Returns an agent and rollouts of ten steps, of episodes of three."""
    env = envs(mode, 2, max_episode_steps=3)
    settings = {"gamma": 0.5, "gae_lambda": 0.0}
    agent = rl.PPO.for_env(env, memory=CELLS["gru"](), seed=0, **settings)
    rollouts = rl.RolloutDataset(
        env, horizon=10, passes=1, scale_rewards=False, seed=0
    )
    rollouts.bind(agent)
    return agent, rollouts


@pytest.mark.parametrize(
    ("mode", "after_truncations"),
    [
        ("NextStep", [0, 4, 8]),
        ("SameStep", [0, 3, 6, 9]),
    ],
)
def test_begins_marks_the_first_step_of_each_episode(mode, after_truncations):
    _, rollouts = cut_off(mode)
    expected = np.isin(np.arange(11), after_truncations)
    np.testing.assert_array_equal(
        rollouts.collect().begins, np.stack([expected] * 2, axis=1)
    )


def assert_memory_begins_anew(cell):
    agent = rl.PPO.for_env("CartPole-v1", memory=cell(), seed=0)
    generator = np.random.default_rng(0)
    observation = generator.normal(size=(2, 5, 4)).astype("float32")
    state = [np.ones_like(each) for each in agent.initial_state(2)]
    on = np.zeros((2, 5), np.float32)
    anew = np.where(np.arange(5) == 3, np.float32(1.0), on)
    initial = agent.initial_state(2)
    _, values = agent.run_sequences(observation, anew, state)
    _, alone = agent.run_sequences(observation[:, 3:], on[:, 3:], initial)
    np.testing.assert_allclose(values[:, 3:], alone, atol=1e-6)
    _, after = agent.actor(observation, anew, state)
    _, expected = agent.actor(observation[:, 3:], on[:, 3:], initial)
    for one, other in zip(after, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    _, values = agent.run_sequences(observation, on, state)
    assert np.abs(values[:, 3:] - alone).min() > 1e-3


@pytest.mark.parametrize("cell", ["lstm", "stacked"])
def test_an_episode_begins_without_a_memory(cell):
    assert_memory_begins_anew(CELLS[cell])


@pytest.mark.parametrize(
    ("mode", "beginnings"),
    [
        ("SameStep", [1, 0, 0, 1, 0, 0, 1]),
        *slow(("NextStep", [1, 0, 0, 0, 1, 0, 0, 0])),
    ],
)
def test_episodes_of_an_evaluation_begin_without_a_memory(
    mode, beginnings, monkeypatch
):
    begin, begun = rl.data.ActorSnapshot.begin, []
    agent, rollouts = cut_off(mode)
    rollouts.collect()
    assert not rollouts.collect().begins[0].any()

    def noted(actor, envs):
        begun.append(np.array(envs))
        begin(actor, envs)

    with monkeypatch.context() as patch:
        patch.setattr(rl.data.ActorSnapshot, "begin", noted)
        agent.evaluate(rollouts.env, episodes=4)
    np.testing.assert_array_equal(begun, np.stack([beginnings] * 2, axis=1))
    # It has reset the environments that are trained on.
    assert rollouts.collect().begins[0].all()


def test_resets_within_a_sequence_are_not_learned_from():
    agent, rollouts = cut_off("NextStep")
    batches = rollouts.as_dataset(agent)
    rollouts.refresh()
    (batch,) = batches.take(rollouts.updates_per_round)
    expected = np.tile(~np.isin(np.arange(10), [3, 7]), (2, 1))
    np.testing.assert_array_equal(batch["weight"], expected)


def test_truncated_episodes_are_valued_with_their_memory():
    agent, rollouts = cut_off("SameStep")
    trajectory = rollouts.collect()
    samples, _ = agent.prepare(trajectory)
    _, values, states = stepwise(agent, trajectory)
    steps, envs = np.divmod(trajectory.final_index, 2)
    assert steps.tolist() == [2, 2, 5, 5, 8, 8]
    for row, (t, b) in enumerate(zip(steps, envs, strict=True)):
        _, value = agent.run_sequences(
            trajectory.final_observation[row][None, None],
            np.zeros((1, 1), np.float32),
            [each[b : b + 1] for each in states[t + 1]],
        )
        np.testing.assert_allclose(
            samples["advantage"][b, t],
            1.0 + 0.5 * value[0, 0] - values[t, b],
            rtol=1e-4,
        )


# Acting.


def test_act_takes_a_state_and_gives_one():
    agent, _ = acting()
    observation = np.ones(4, np.float32)
    state = agent.initial_state(1)
    assert [each.shape for each in state] == [(1, 6), (1, 6)]
    action, first = agent.act(observation, state, deterministic=True)
    assert agent.action_space.contains(action)
    _, second = agent.act(observation, first, deterministic=True)
    assert np.abs(second[0] - first[0]).max() > 0
    # Without a state a call keeps none, which is said once.
    with pytest.warns(
        UserWarning, match="was called without a `state`"
    ) as caught:
        alone = agent.act(observation, None, True, return_log_prob=True)
    (told,) = [each for each in caught if each.category is UserWarning]
    assert "agent.initial_state(1)" in str(told.message)
    assert told.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        again = agent.act(observation, None, True, return_log_prob=True)
    assert alone == again
    batch = np.ones((5, 4), np.float32)
    actions, after = agent.act(batch, agent.initial_state(5))
    assert actions.shape == (5,)
    assert after[0].shape == (5, 6)


def test_states_and_sequences_have_to_fit():
    agent, _ = acting()
    with pytest.raises(ValueError, match=r"\(1, 6\).*Received.*\(1, 3\)"):
        agent.act(np.ones(4), (np.zeros((1, 3)), np.zeros((1, 6))))
    with pytest.raises(ValueError, match="divide `horizon`"):
        rl.RolloutDataset("CartPole-v1", horizon=10, sequence_length=4)
    rollouts = rl.RolloutDataset("CartPole-v1", horizon=8, batch_size=6)
    with pytest.raises(ValueError, match="multiple of the steps"):
        rollouts.bind(agent)


def test_agents_without_memory_refuse_states_and_sequences():
    for kind in (rl.CQL, rl.CrossQ, rl.IQL, rl.TD3BC):
        with pytest.raises(ValueError, match="memory=None"):
            kind.for_env("Pendulum-v1", memory=keras.layers.LSTMCell(4))
    plain = rl.PPO.for_env("CartPole-v1", hidden=(4,), seed=0)
    with pytest.raises(ValueError, match="Expected a state"):
        plain.act(np.ones(4), (np.zeros((1, 3)),))
    assert plain.initial_state(2) == ()
    rollouts = rl.RolloutDataset("CartPole-v1", horizon=8, sequence_length=4)
    with pytest.raises(ValueError, match="not recurrent"):
        rollouts.bind(plain)


def test_evaluation_and_other_players_remember(tmp_path):
    env = RememberTheCue(steps=4)
    agent = rl.PPO.for_env(env, memory=CELLS["gru"](), seed=0)
    agent.evaluate(env, episodes=2)
    policy = agent.policy.litert()
    expected, found = [], []
    for seed in range(3):
        observation, _ = env.reset(seed=seed)
        policy.begin()
        state = agent.initial_state(1)
        for _ in range(4):
            action, state = agent.act(observation, state, deterministic=True)
            expected.append(int(action))
            found.append(int(policy(observation)))
            observation, *_ = env.step(action)
    assert found == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        (rl.PPO, "NextStep"),
        (rl.APPO, "NextStep"),
        (rl.A2C, "SameStep"),
        (rl.REINFORCE, "SameStep"),
    ],
)
def test_all_on_policy_agents_train(kind, mode):
    agent, rollouts = made(mode, kind)
    before = agent.get_weights()
    agent.fit(rollouts, epochs=2, verbose=0)
    for old, new in zip(before, agent.get_weights(), strict=True):
        assert np.isfinite(new).all()
        assert (old != new).any()


def test_a_cell_with_dropout_is_traced_again():
    cell = keras.layers.LSTMCell(4, dropout=0.5, recurrent_dropout=0.5)
    agent = rl.A2C.for_env("CartPole-v1", memory=cell, seed=0)
    for horizon in (4, 8):
        rollouts = rl.RolloutDataset("CartPole-v1", horizon=horizon, seed=0)
        agent.fit(rollouts, epochs=1, verbose=0)


def test_a_network_of_the_user():
    class Averages(keras.Model):
        """Remembers the mean of its inputs."""

        def __init__(self):
            super().__init__()
            self.policy = keras.layers.Dense(2)
            self.value = keras.layers.Dense(1)

        def initial_state(self, batch_size):
            return (np.zeros((batch_size, 4), np.float32),)

        def call(self, observation, begins, state, training=False):
            (mean,) = state
            means = []
            for t in range(begins.shape[1] or 1):
                goes_on = 1.0 - begins[:, t, None]
                mean = 0.5 * mean * goes_on + 0.5 * observation[:, t]
                means.append(mean)
            seen = keras.ops.stack(means, axis=1)
            return (self.policy(seen), self.value(seen)), (mean,)

    agent = rl.PPO(Averages(), seed=0)
    agent.compile(run_eagerly=True)
    rollouts = rl.RolloutDataset(
        envs("SameStep"),
        horizon=4,
        passes=1,
        batch_size=6,
        rounds_per_epoch=1,
        sequence_length=2,
        seed=0,
    )
    agent.fit(rollouts, epochs=1, verbose=0)
    _, state = agent.act(np.ones(4, "float32"), agent.initial_state(1))
    np.testing.assert_allclose(state[0], 0.5)


def from_replay(
    mode="SameStep", cell="lstm", burn_in=3, run_eagerly=False, **kwargs
):
    """Returns an agent, and replay that it is bound to and that is filled."""
    env = envs(mode)
    agent = rl.DQN.for_env(env, memory=CELLS[cell](), seed=0, **kwargs)
    agent.compile(jit_compile=False, run_eagerly=run_eagerly)
    replay = rl.ReplayDataset(
        env,
        capacity=3000,
        warm_up=240,
        steps_per_round=24 * 3,
        updates_per_round=1,
        batch_size=4,
        rounds_per_epoch=1,
        sequence_length=LENGTH,
        burn_in=burn_in,
        n_step=2,
        seed=0,
    )
    replay.bind(agent)
    replay.fill(replay.warm_up)
    return agent, replay


@pytest.mark.parametrize(("burn_in", "double"), [(3, True), *slow((0, False))])
def test_a_loss_over_sequences_is_that_of_their_steps(burn_in, double):
    agent, replay = from_replay(
        burn_in=burn_in, double=double, gamma=0.5, loss="mse"
    )
    # Far from the network: else it would make no difference whose memory is
    # which.
    target = agent.target_network
    target.set_weights([2.0 * weight for weight in target.get_weights()])
    batch = replay.sample(6)
    del batch["index"]
    found = agent.objectives()["q"].terms(batch)
    values = {}
    for network in (agent.q_network, agent.target_network):
        state = batch["state"]
        parts = {"before": batch["burn_in"], "after": batch}
        values[network.name] = []
        for name, part in parts.items():
            for t in range(part["begins"].shape[1]):
                outputs, state = network(
                    part["observation"][:, t : t + 1],
                    part["begins"][:, t : t + 1],
                    state,
                )
                if name == "after":
                    values[network.name].append(np.array(outputs)[:, 0])
    # [B, T, A]
    every_own, every_target = (
        np.stack(each, axis=1) for each in values.values()
    )
    losses, counted = [], []
    for row in range(6):
        own, target = every_own[row], every_target[row]
        for k in range(LENGTH):
            following = k + batch["span"][row, k]
            best = np.argmax((own if double else target)[following])
            bootstrap = target[following, best]
            wanted = batch["reward"][row, k]
            wanted += batch["discount"][row, k] * bootstrap
            error = wanted - own[k, batch["action"][row, k]]
            losses.append(batch["weight"][row, k] * 0.5 * error**2)
            counted.append(abs(error))
    np.testing.assert_allclose(found["loss"], np.mean(losses), rtol=1e-4)
    np.testing.assert_allclose(found["td_error"], counted, rtol=1e-3)


def test_no_gradient_flows_through_the_burn_in():
    # The target is still a copy, for which the network's memory will do.
    agent, replay = from_replay(burn_in=3)
    batch = replay.sample(4)
    del batch["index"]
    burn_in, network = batch["burn_in"], agent.q_network
    _, warm = network(**burn_in, state=batch["state"])
    none = {key: each[:, :0] for key, each in burn_in.items()}
    gradients = []
    for given in (batch, batch | {"burn_in": none, "state": tuple(warm)}):
        with tf.GradientTape() as tape:
            loss = agent.objectives()["q"].terms(given)["loss"]
        variables = network.trainable_variables
        gradients.append(tape.gradient(loss, variables))
    for one, other in zip(*gradients, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "run_eagerly", "dueling", "distributional"),
    [
        ("NextStep", True, True, "quantile"),
        ("SameStep", False, False, "categorical"),
    ],
)
def test_dqn_with_memory_trains_in_all_its_forms(
    mode, run_eagerly, dueling, distributional, tmp_path
):
    agent, replay = from_replay(
        mode,
        run_eagerly=run_eagerly,
        dueling=dueling,
        distributional=distributional,
        atoms=5,
        burn_in=0,
        tau=1.0,
    )
    before = agent.get_weights()
    agent.fit(replay, epochs=1, verbose=0)
    changed = [
        (old != new).any()
        for old, new in zip(before, agent.get_weights(), strict=True)
    ]
    assert sum(changed) > len(agent.trainable_variables)
    assert_equal_weights(agent.target_network, agent.q_network)
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    state = agent.initial_state(2)
    observation = np.ones((2, 4), np.float32)
    ours = agent.act(observation, state, deterministic=True)
    theirs = loaded.act(observation, state, deterministic=True)
    keras.tree.map_structure(np.testing.assert_array_equal, ours, theirs)


def falling(rate, steps, dataset):
    """Returns Adam with a rate that falls to 0, so that learning converges."""
    rounds = steps // dataset.steps_per_round
    schedule = keras.optimizers.schedules.PolynomialDecay(
        rate, rounds * dataset.updates_per_round, 0.0
    )
    return keras.optimizers.Adam(schedule)


@pytest.mark.learning
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("kind", "steps", "cell"),
    [
        ("PPO", 200_000, "lstm"),
        ("PPO", 200_000, "gru"),
        ("DQN", 60_000, "gru"),
    ],
)
def test_a_cue_is_remembered(kind, steps, cell, seed):
    if kind == "PPO":
        dataset = rl.RolloutDataset(
            gym.vector.SyncVectorEnv([RememberTheCue] * 16),
            horizon=80,
            passes=4,
            batch_size=320,
            sequence_length=20,
            seed=seed,
        )
        # Nearly all rewards come at once at the end, alike in all that is
        # right: by their deviation, the last few errors would count for most.
        # Without an entropy bonus, 3 of 16 trainings ended with a policy that
        # gives one answer to both cues; with it, 17 of 17 remember.
        settings = {"normalize_advantages": False, "entropy_coefficient": 0.01}
    else:
        dataset = rl.ReplayDataset(
            gym.vector.SyncVectorEnv([RememberTheCue] * 8),
            capacity=100_000,
            warm_up=2000,
            steps_per_round=64 * 8,
            updates_per_round=32,
            batch_size=32,
            sequence_length=24,
            burn_in=0,
            seed=seed,
        )
        settings = {}
    agent = getattr(rl, kind).for_env(
        dataset.env, memory=LARGE[cell](), seed=seed, **settings
    )
    agent.compile(falling(1e-3, steps, dataset))
    agent.fit(dataset, total_steps=steps, verbose=0)
    result = agent.evaluate(RememberTheCue(), episodes=50, seed=seed)
    assert result["episode_return"] == 1.0


@pytest.mark.learning
@pytest.mark.parametrize(
    ("cell", "rate", "steps"),
    [
        (keras.layers.LSTMCell, 1e-3, 200_000),
        (keras.layers.GRUCell, 3e-4, 300_000),
        (None, 1e-3, 200_000),
    ],
)
def test_cartpole_without_velocities(cell, rate, steps):
    """A cell of 64 units and a usual learning rate are enough."""
    hidden = {"wrappers": [PositionsOnly], "num_envs": 8}
    rollouts = rl.RolloutDataset("CartPole-v1", seed=0, **hidden)
    agent = rl.PPO.for_env(rollouts.env, memory=cell and cell(64), seed=0)
    agent.compile(keras.optimizers.Adam(rate))
    agent.fit(rollouts, total_steps=steps, verbose=0)
    result = agent.evaluate("CartPole-v1", seed=0, **hidden)
    print(result["episode_return"])
    assert (result["episode_return"] >= 450) == (cell is not None)
