"""Actors and critics that remember: SAC and TD3 on sequences from replay."""

import gymnasium as gym
import keras
import numpy as np
import pytest
from keras import layers

import keras_rl2 as rl
from keras_rl2.networks import with_memory
from support.agents import slow
from support.remembering import CELLS

LENGTH, BURN_IN, N, ROWS = 5, 3, 2, 4


class Short(gym.Wrapper):
    """Ends episodes of Pendulum after seven steps, every second one for good.

    Its states are new each time.
    """

    def __init__(self, env):
        super().__init__(env)
        self.episodes = self.steps = 0

    def reset(self, **kwargs):
        self.episodes += 1
        self.steps = 0
        return self.env.reset(**kwargs)

    def step(self, action):
        observation, reward, *_, info = self.env.step(action)
        self.steps += 1
        over = self.steps == 7
        ends = over and self.episodes % 2 == 0
        return observation, reward, ends, over and not ends, info


def made(kind, burn_in=BURN_IN, wrappers=(Short,), **settings):
    """Returns an agent, and replay that it is bound to and that is filled."""
    env = gym.make_vec(
        "Pendulum-v1",
        num_envs=2,
        vectorization_mode="sync",
        wrappers=wrappers,
        vector_kwargs={"autoreset_mode": "NextStep"},
    )
    settings = {"hidden": (6,), "seed": 0, "gamma": 0.5, **settings}
    agent = kind.for_env(env, memory=CELLS["lstm"](), **settings)
    agent.compile(run_eagerly=True)
    replay = rl.ReplayDataset(
        env,
        capacity=1000,
        warm_up=80,
        steps_per_round=40,
        updates_per_round=1,
        batch_size=ROWS,
        rounds_per_epoch=1,
        sequence_length=LENGTH,
        burn_in=burn_in,
        n_step=N,
        seed=0,
    )
    replay.bind(agent)
    replay.fill(replay.warm_up)
    return agent, replay


def unlike(agent):
    """Moves all weights, so that it matters which network runs on which."""
    generator = np.random.default_rng(0)
    agent.set_weights(
        [
            weight + 0.2 * generator.normal(size=weight.shape)
            for weight in agent.get_weights()
        ]
    )


def by_steps(network, batch, state, action=None):
    """Runs an LSTM through burn-in and sequences by hand.

    Returns:
        Outputs `[M, L + n, ...]`, of actions `[M, L + n, A]`.
    """
    kernel, recurrent, bias = network.cell.get_weights()
    (hidden, hidden_bias, output, output_bias) = network.head.get_weights()
    (memory, carry), outputs = state, []
    for part in (batch["burn_in"], batch):
        for t in range(part["begins"].shape[1]):
            goes_on = 1.0 - part["begins"][:, t, None]
            gates = part["observation"][:, t] @ kernel + bias
            gates = gates + (goes_on * memory) @ recurrent
            written, kept, new, shown = np.split(gates, 4, axis=1)
            carry = sigmoid(kept) * goes_on * carry
            carry = carry + sigmoid(written) * np.tanh(new)
            memory = sigmoid(shown) * np.tanh(carry)
            if part is batch:
                seen = memory
                if action is not None:
                    seen = np.concatenate([memory, action[:, t]], axis=1)
                seen = np.maximum(seen @ hidden + hidden_bias, 0.0)
                outputs.append(seen @ output + output_bias)
    return np.stack(outputs, axis=1)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def states_of(agent, state):
    """Returns the stored state of each network, also of targets."""
    rest = iter(state)
    own = [
        [next(rest) for _ in network.initial_state(1)]
        for network in (agent.actor, *agent.critics)
    ]
    assert not [*rest]
    return {"actor": own[0], "critics": own[1:]}


def following(batch, values):
    """Returns values `[M, L + n]` where the L transitions bootstrap."""
    places = np.arange(LENGTH) + batch["span"]
    return np.take_along_axis(values, places, axis=1)


def squared_error(batch, targets, values):
    """Returns half the mean square of errors that count."""
    errors = batch["reward"] + batch["discount"] * targets - values
    return np.mean(batch["weight"] * 0.5 * errors**2)


@pytest.mark.parametrize("burn_in", [3, *slow(0)])
def test_losses_of_sac_over_sequences_are_those_of_their_steps(burn_in):
    agent, replay = made(rl.SAC, burn_in)
    unlike(agent)
    batch = replay.sample(ROWS)
    assert 0 < batch["weight"].sum() < ROWS * LENGTH
    assert (batch["span"] == 1).any()
    assert (batch["discount"] == 0).any()
    del batch["index"]
    critic, actor = (each.terms(batch) for each in agent.objectives().values())
    states = states_of(agent, batch["state"])
    alpha = float(np.exp(agent.log_temperature))
    parameters = by_steps(agent.actor, batch, states["actor"])
    mean, log_std = np.split(parameters, 2, axis=-1)

    def soft(networks, rows, stream):
        """Returns soft values of `[M, L]` steps of sequences."""
        noise = agent.draw_normal((ROWS * LENGTH, 1), stream)
        noise = np.reshape(noise, (ROWS, LENGTH, 1))
        values = np.empty((ROWS, LENGTH))
        log_probs = np.empty((ROWS, LENGTH))
        for k in range(LENGTH):
            at = np.arange(ROWS), rows[:, k]
            policy = rl.distributions.SquashedGaussian(mean[at], log_std[at])
            drawn, log_prob = policy.sample_and_log_prob(noise[:, k])
            action = np.zeros((ROWS, LENGTH + N, 1), np.float32)
            action[at] = drawn
            each = [
                by_steps(network, batch, state, action)[at][:, 0]
                for network, state in zip(
                    networks, states["critics"], strict=True
                )
            ]
            values[:, k] = np.min(each, axis=0) - alpha * np.array(log_prob)
            log_probs[:, k] = log_prob
        return values, log_probs

    steps = np.tile(np.arange(LENGTH), (ROWS, 1))
    next_values, _ = soft(agent.target_critics, steps + batch["span"], 0)
    taken = np.concatenate([batch["action"], batch["action"][:, :N]], axis=1)
    losses = [
        squared_error(
            batch,
            next_values,
            by_steps(network, batch, state, taken)[:, :LENGTH, 0],
        )
        for network, state in zip(agent.critics, states["critics"], strict=True)
    ]
    np.testing.assert_allclose(critic["loss"], sum(losses), rtol=1e-4)
    values, log_probs = soft(agent.critics, steps, 1)
    loss = -np.mean(batch["weight"] * values)
    np.testing.assert_allclose(actor["actor_loss"], loss, rtol=1e-4)
    np.testing.assert_allclose(actor["entropy"], -log_probs.mean(), rtol=1e-4)


def test_losses_of_td3_over_sequences_are_those_of_their_steps():
    agent, replay = made(rl.TD3, target_noise=0.0)
    unlike(agent)
    batch = replay.sample(ROWS)
    del batch["index"]
    found = {k: each.terms(batch) for k, each in agent.objectives().items()}
    states = states_of(agent, batch["state"])
    target = np.tanh(by_steps(agent.target_actor, batch, states["actor"]))
    next_values = np.min(
        [
            by_steps(network, batch, state, target)[..., 0]
            for network, state in zip(
                agent.target_critics, states["critics"], strict=True
            )
        ],
        axis=0,
    )
    taken = np.concatenate([batch["action"], batch["action"][:, :N]], axis=1)
    losses = [
        squared_error(
            batch,
            following(batch, next_values),
            by_steps(network, batch, state, taken)[:, :LENGTH, 0],
        )
        for network, state in zip(agent.critics, states["critics"], strict=True)
    ]
    np.testing.assert_allclose(found["critic"]["loss"], sum(losses), rtol=1e-4)
    action = np.tanh(by_steps(agent.actor, batch, states["actor"]))
    values = by_steps(agent.critics[0], batch, states["critics"][0], action)
    loss = -np.mean(batch["weight"] * values[:, :LENGTH, 0])
    np.testing.assert_allclose(found["actor"]["loss"], loss, rtol=1e-4)


@keras.saving.register_keras_serializable("tests")
class Forgetful(keras.layers.Layer):
    """An RNN cell that returns its inputs, whatever its state."""

    state_size = 1
    output_size = 3

    def call(self, inputs, states):
        return inputs, states


def head(units, further=(), seed=0):
    """Returns a network of observations and, for a critic, actions."""
    given = [keras.Input((size,)) for size in (3, *further)]
    seen = layers.Concatenate()(given) if further else given[0]
    start = keras.initializers.GlorotUniform(seed)
    hidden = layers.Dense(8, "tanh", kernel_initializer=start)(seen)
    outputs = layers.Dense(units, kernel_initializer=start)(hidden)
    return keras.Model(given if further else given[0], outputs)


@pytest.mark.parametrize(("kind", "width"), [(rl.SAC, 2), (rl.TD3, 1)])
def test_a_memory_that_ignores_its_state_changes_no_update(kind, width):
    def remembering(network):
        seen = keras.Input((3,))
        encoder = keras.Model(seen, layers.Identity()(seen))
        return with_memory(encoder, Forgetful(), network)

    def agent_of(wrapped):
        networks = head(width), [head(1, (1,), seed) for seed in (1, 2)]
        networks = keras.tree.map_structure(wrapped, networks)
        env = gym.make("Pendulum-v1")
        spaces = {
            "observation_space": env.observation_space,
            "action_space": env.action_space,
        }
        settings = {"policy_delay": 1} if kind is rl.TD3 else {}
        agent = kind(*networks, seed=0, **spaces, **settings)
        agent.compile(run_eagerly=True)
        return agent

    _, replay = made(kind)
    sequences = replay.sample(ROWS)
    # The first state of each network.
    sequences["state"] = tuple(np.zeros((ROWS, 1), np.float32) for _ in "abc")
    del sequences["index"]
    rows = {
        key: np.reshape(sequences[key], (-1, *sequences[key].shape[2:]))
        for key in ("action", "reward", "discount", "weight")
    }
    seen, steps = sequences["observation"], np.arange(LENGTH)
    at = (steps + sequences["span"])[..., None]
    single = {
        **rows,
        "observation": seen[:, :LENGTH].reshape(-1, 3),
        "next_observation": np.take_along_axis(seen, at, axis=1).reshape(-1, 3),
    }
    with_states, without = agent_of(remembering), agent_of(lambda each: each)
    logs, expected = (
        agent.train_on_batch(
            keras.tree.map_structure(keras.ops.convert_to_tensor, batch),
            return_dict=True,
        )
        for agent, batch in ((with_states, sequences), (without, single))
    )
    assert logs.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(logs[key], value, rtol=1e-5, err_msg=key)
    for one, other in zip(
        with_states.trainable_variables,
        without.trainable_variables,
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_replay_stores_the_states_of_actor_and_critics():
    agent, replay = made(rl.SAC, wrappers=())
    # Half the length of a sequence divides the steps of a round.
    stride = 2
    batch = replay.sample(200)
    row_of = {int(each): row for row, each in enumerate(batch["index"])}
    first = np.array([row for at, row in row_of.items() if at + 4 in row_of])
    later = [row_of[int(at) + 2 * stride] for at in batch["index"][first]]
    before = batch["burn_in"]
    states = states_of(agent, [each[first] for each in batch["state"]])
    expected = states_of(agent, [each[later] for each in batch["state"]])
    assert len(first) > 10
    networks = {
        "actor": [agent.actor.remember],
        "critics": [each.remember for each in agent.critics],
    }
    for name, bodies in networks.items():
        given, wanted = states[name], expected[name]
        if name == "actor":
            given, wanted = [given], [wanted]
        for body, state, after in zip(bodies, given, wanted, strict=True):
            _, found = body(
                before["observation"][first, :stride],
                before["begins"][first, :stride],
                state,
            )
            for one, other in zip(found, after, strict=True):
                np.testing.assert_allclose(one, other, atol=1e-5)
                assert np.abs(other).max() > 0


@pytest.mark.parametrize(
    ("kind", "settings"),
    [(rl.TD3, {}), *slow((rl.SAC, {"exploration": 0.3}), (rl.SAC, {}))],
)
def test_it_acts_by_its_state_and_with_the_noise_of_its_kind(kind, settings):
    agent, _ = made(kind, wrappers=(), **settings)
    unlike(agent)
    generator = np.random.default_rng(0)
    seen = generator.normal(size=(5, 4, 3)).astype("float32")
    noise, _ = agent.noise.draw(generator, (5, 4))
    state, found = agent.initial_state(5), []
    function = agent.policy.function(deterministic=False)
    for t in range(4):
        begins = np.float32([t == 0] * 5)
        # The action of the policy, that of the environment, and the state.
        action, _, *state = function(seen[:, t], noise[:, t], begins, *state)
        found.append(action)
    begins = np.tile(np.arange(4) == 0, (5, 1)).astype("float32")
    output, _ = agent.actor(seen, begins, agent.initial_state(5))
    if kind is rl.TD3:
        expected = np.tanh(output) + noise
    else:
        mean, log_std = np.split(np.array(output), 2, axis=-1)
        expected = np.tanh(mean + np.exp(log_std) * noise[..., :1])
        if settings:
            expected = expected + noise[..., 1:]
    expected = np.clip(expected, -1.0, 1.0)
    np.testing.assert_allclose(np.stack(found, axis=1), expected, atol=1e-5)


def test_networks_of_one_agent_are_all_recurrent_or_none():
    plain = rl.SAC.for_env("Pendulum-v1", hidden=(4,), seed=0)
    cell = keras.layers.GRUCell(3)
    other = rl.SAC.for_env("Pendulum-v1", memory=cell, hidden=(4,), seed=0)
    spaces = {
        "observation_space": plain.observation_space,
        "action_space": plain.action_space,
    }
    for actor, critic in ((plain, other), (other, plain)):
        with pytest.raises(ValueError, match="all recurrent, or none"):
            rl.SAC(actor.actor, critic.critics[0], **spaces)


class Unregistered(Forgetful):
    """A cell that Keras cannot make again."""

    state_size = output_size = 4


def test_a_memory_that_has_no_copy_is_refused():
    with pytest.raises(ValueError, match="register its classes"):
        rl.DQN.for_env("CartPole-v1", memory=Unregistered(), hidden=(4,))


class Recall(gym.Env):
    """The first observation says where to go at the end."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.cue = self.np_random.choice([-0.7, 0.7])
        self.time = 0
        return np.array([self.cue, 0.0], np.float32), {}

    def step(self, action):
        self.time += 1
        last = self.time == 6
        reward = -abs(float(action[0]) - self.cue) if last else 0.0
        seen = np.array([0.0, self.time == 5], np.float32)
        return seen, reward, last, False, {}


@pytest.mark.learning
@pytest.mark.parametrize("kind", [rl.SAC, rl.TD3])
def test_a_cue_is_remembered(kind):
    """Without a memory, nothing is above -0.7."""
    replay = rl.ReplayDataset(
        gym.vector.SyncVectorEnv([Recall] * 8),
        capacity=50_000,
        warm_up=512,
        steps_per_round=128,
        updates_per_round=16,
        batch_size=16,
        sequence_length=8,
        burn_in=0,
        seed=0,
    )
    cell = keras.layers.GRUCell(16)
    agent = kind.for_env(replay.env, memory=cell, hidden=(32,), seed=0)
    agent.compile(keras.optimizers.Adam(3e-3))
    agent.fit(replay, total_steps=16_000, verbose=0)
    result = agent.evaluate(Recall(), episodes=50, seed=0)
    assert result["episode_return"] >= -0.3
