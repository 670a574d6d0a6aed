"""The TD errors of a round become the priorities of its transitions."""

import numpy as np
import pytest

from support.agents import OFF_POLICY
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_replay

DQN = OFF_POLICY["DQN"]
EPSILON = 1e-6


def prioritized(env, **arguments):
    """Makes a replay whose priorities are easy to read."""
    return make_replay(env, prioritized=True, alpha=1.0, **arguments)


def priorities(replay):
    """Returns p of each transition by its number, 0 where it waits."""
    state = replay.get_state()["buffer"]
    return state["priority"].reshape(-1)[: replay.buffer.steps]


def watch_updates(agent, monkeypatch):
    """Notes which transitions each update saw, and their TD errors."""
    seen, update = [], agent.update

    def watched(batch):
        terms = update(batch)
        seen.append((batch["index"].numpy(), terms["td_error"].numpy()))
        return terms

    monkeypatch.setattr(agent, "update", watched)
    return seen


@pytest.mark.parametrize(
    ("name", "n_step"),
    [
        ("DQN", 3),
        *(pytest.param(name, 1, marks=pytest.mark.slow) for name in OFF_POLICY),
    ],
)
def test_errors_of_a_round_are_its_priorities(name, n_step, monkeypatch):
    case = OFF_POLICY[name]
    env = make_env(case.pair)
    agent = make_eager_agent(case, env)
    # Surprising from the beginning.
    env.step = scaled_rewards(env.step, 5.0)
    replay = prioritized(env, n_step=n_step)
    seen = watch_updates(agent, monkeypatch)
    expected, largest = {}, 1.0
    for _ in range(3):
        seen.clear()
        agent.fit(replay, verbose=0)
        actual = priorities(replay)
        drawable = np.flatnonzero(actual).tolist()
        # New ones have the largest there ever was; others keep theirs.
        expected = {i: expected.get(i, largest) for i in drawable}
        assert len(seen) == 2
        for index, td_error in seen:
            # What comes twice has its last error.
            error = np.abs(td_error) + EPSILON
            expected.update(zip(index.tolist(), error, strict=True))
            largest = max(largest, error.max())
        assert len(drawable) == len(replay.buffer)
        wanted = [expected[i] for i in drawable]
        np.testing.assert_allclose(actual[drawable], wanted, rtol=1e-5)
    assert largest > 1.0
    assert len(set(wanted)) > 10


def scaled_rewards(step, scale):
    def scaled(action):
        observation, reward, *rest = step(action)
        return observation, scale * reward, *rest

    return scaled


def test_untrained_minibatches_change_no_priority():
    env = make_env(DQN.pair)
    agent, replay = make_eager_agent(DQN, env), prioritized(env)
    batches = iter(replay.as_dataset(agent))
    replay.refresh()
    first, second = next(batches), next(batches)
    agent.train_step(first)
    actual = priorities(replay)
    only_second = np.setdiff1d(second["index"], first["index"])
    assert (actual[only_second] == 1.0).all()
    assert (actual[first["index"].numpy()] != 1.0).all()


def test_each_of_two_replays_gets_its_own_errors(monkeypatch):
    """The last round of the one is fed back after rounds of the other."""
    env = make_env(DQN.pair)
    agent = make_eager_agent(DQN, env, compile_arguments={"optimizer": "sgd"})
    seen = watch_updates(agent, monkeypatch)
    one = prioritized(env)
    other = prioritized(make_env(DQN.pair), warm_up=32, updates_per_round=3)
    for replay in (one, other, one, other):
        agent.fit(replay, verbose=0)
    updates = other.updates_per_round
    for replay, rounds in (
        (one, seen[-updates - 2 : -updates]),
        (other, seen[-updates:]),
    ):
        actual, last = priorities(replay), {}
        for index, td_error in rounds:
            last.update(zip(index.tolist(), td_error, strict=True))
        for index, td_error in last.items():
            assert actual[index] == pytest.approx(
                abs(td_error) + EPSILON, rel=1e-5
            )


def test_errors_of_one_agent_count_when_the_next_one_takes_over(monkeypatch):
    env = make_env(DQN.pair)
    one, two = (make_eager_agent(DQN, env, seed=seed) for seed in (0, 1))
    replay = prioritized(env)
    seen = watch_updates(one, monkeypatch)
    one.fit(replay, verbose=0)
    replay.bind(two)
    index, td_error = seen[-1]
    assert priorities(replay)[index[-1]] == pytest.approx(
        abs(td_error[-1]) + EPSILON, rel=1e-5
    )


def test_an_error_that_is_not_finite_is_left_out():
    env = make_env(DQN.pair)
    agent, replay = make_eager_agent(DQN, env), prioritized(env)
    replay.bind(agent)
    # Of the network that values what follows, and does not act.
    agent.updates.assign(1)
    agent.target_network.layers[-1].bias.assign([np.nan] * 3)
    agent.fit(replay, verbose=0)
    np.testing.assert_array_equal(priorities(replay), np.ones(16))
