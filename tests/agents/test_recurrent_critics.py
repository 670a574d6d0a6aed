"""Actors and critics that remember: SAC and TD3 on sequences from replay."""

import gymnasium as gym
import numpy as np
import pytest

import keras_rl2 as rl
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


def made(kind, cell="lstm", burn_in=BURN_IN, wrappers=(Short,), **settings):
    """Returns an agent, and replay that it is bound to and that is filled."""
    env = gym.make_vec(
        "Pendulum-v1",
        num_envs=2,
        vectorization_mode="sync",
        wrappers=wrappers,
        vector_kwargs={"autoreset_mode": "NextStep"},
    )
    settings = {"hidden": (6,), "seed": 0, "gamma": 0.5, **settings}
    agent = kind.for_env(env, memory=CELLS[cell](), **settings)
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
    """Runs a network through burn-in and sequences, one step at a time.

    Returns:
        Outputs `[M, L + n, ...]`, of actions `[M, L + n, A]`.
    """
    outputs = []
    for part in (batch["burn_in"], batch):
        for t in range(part["begins"].shape[1]):
            now = slice(t, t + 1)
            taken = {} if action is None else {"action": action[:, now]}
            found, state = network(
                *(part["observation"][:, now], part["begins"][:, now], state),
                # They enter after the memory.
                **taken,
            )
            if part is batch:
                outputs.append(found[:, 0])
    return np.stack(outputs, axis=1)


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


@pytest.mark.parametrize(("cell", "burn_in"), [("lstm", 3), *slow(("gru", 0))])
def test_losses_of_sac_over_sequences_are_those_of_their_steps(cell, burn_in):
    agent, replay = made(rl.SAC, cell, burn_in, temperature=0.3)
    unlike(agent)
    batch = replay.sample(ROWS)
    assert 0 < batch["weight"].sum() < ROWS * LENGTH
    assert (batch["span"] == 1).any()
    assert (batch["discount"] == 0).any()
    del batch["index"]
    critic, actor = (each.terms(batch) for each in agent.objectives().values())
    states, alpha = states_of(agent, batch["state"]), 0.3
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
