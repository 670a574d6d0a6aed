"""Arguments and agents that `ReplayDataset` refuses, and the moment."""

import pytest

import keras_rl2 as rl
from keras_rl2.data import memory
from support.agents import OFF_POLICY
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_replay
from support.errors import raises

DQN = OFF_POLICY["DQN"]


def test_memory_is_checked_before_any_step(monkeypatch):
    env = make_env("observe_image")
    agent = make_eager_agent(DQN, env)
    replay = make_replay(env, capacity=2_000_000)
    monkeypatch.setattr(memory, "available_memory", lambda: 2**30)
    with pytest.raises(
        MemoryError, match=r"(?s)2000000 transitions .* 1.00 GiB.* 2\.\d+ GiB"
    ):
        agent.fit(replay, verbose=0)
    assert agent.env_steps == env.resets == 0
    assert replay.buffer is None
    monkeypatch.setattr(memory, "available_memory", lambda: 2**33)
    replay.bind(agent)
    assert replay.buffer.capacity == 2_000_000


@pytest.mark.parametrize(
    "key",
    [
        *("capacity", "batch_size", "steps_per_round", "updates_per_round"),
        *("n_step", "rounds_per_epoch", "num_envs"),
    ],
)
def test_sizes_are_integers_of_at_least_1(key):
    for value in (0, -1, 1.5, "8"):
        with raises(f"`{key}` to be an integer of at least 1", f"{key}="):
            rl.ReplayDataset("CartPole-v1", **{key: value})


def test_numbers_that_do_not_fit():
    env = make_env("act_discrete")
    for arguments, expected, received in (
        (
            {"steps_per_round": 15},
            "a multiple of the number of environments, 2",
            "steps_per_round=15",
        ),
    ):
        with raises(expected, received):
            make_replay(env, **arguments)
    agent = make_eager_agent(DQN, env)
    for arguments, received in (
        ({"n_step": 5, "capacity": 9}, "capacity=9"),
        ({"alpha": float("nan")}, "alpha=nan"),
        ({"beta": -0.1}, "beta=-0.1"),
    ):
        with raises("number|capacity of at least", received):
            agent.fit(
                make_replay(env, prioritized=True, **arguments), verbose=0
            )
    assert env.resets == 0


def test_sampling_before_the_first_round_is_refused():
    env = make_env("act_discrete")
    replay = make_replay(env)
    with raises("a ReplayDataset bound to an agent", "no agent"):
        replay.sample(1)
    replay.bind(make_eager_agent(DQN, env))
    with raises("at least one transition", "0 transitions"):
        replay.sample(1)
    with pytest.raises(AttributeError, match="update_priorities"):
        replay.update_priorities([0], [1.0])
