"""What a dataset of replayed rounds refuses, and when."""

import pytest

import keras_rl2 as rl
from keras_rl2.replay import ring
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
    monkeypatch.setattr(ring, "available_memory", lambda: 2**30)
    with pytest.raises(
        MemoryError, match=r"(?s)2000000 transitions .* 1.00 GiB.* 2\.\d+ GiB"
    ):
        agent.fit(replay, verbose=0)
    assert agent.env_steps == env.resets == 0
    assert replay.buffer is None
    monkeypatch.setattr(ring, "available_memory", lambda: 2**33)
    agent.fit(replay, verbose=0)
    assert agent.env_steps == 16


INTEGERS = (
    "capacity",
    "batch_size",
    "steps_per_round",
    "updates_per_round",
    "n_step",
    "rounds_per_epoch",
    "num_envs",
)


@pytest.mark.parametrize("key", INTEGERS)
@pytest.mark.parametrize("value", [0, -1, 1.5, "8"])
def test_sizes(key, value):
    with raises(f"`{key}` to be an integer of at least 1", f"{key}="):
        rl.ReplayDataset("CartPole-v1", **{key: value})


@pytest.mark.parametrize(
    ("arguments", "expected", "received"),
    [
        (
            {"warm_up": -1},
            "`warm_up` to be an integer of at least 0",
            "warm_up=-1",
        ),
        ({"capacity": 7}, "`capacity` to be at least 8", "capacity=7"),
        (
            {"n_step": 5, "capacity": 9},
            "`capacity` to be at least 10, .*n_step=5 in each of 2",
            "capacity=9",
        ),
        (
            {"steps_per_round": 15},
            "a multiple of the number of environments, 2",
            "steps_per_round=15",
        ),
        (
            {"n_step": 9, "warm_up": 1},
            "fill a window of n_step=9 in each of 2",
            "warm_up=1, steps_per_round=16",
        ),
    ],
)
def test_numbers_that_do_not_fit(arguments, expected, received):
    env = make_env("act_discrete")
    with raises(expected, received):
        make_replay(env, **arguments)
    assert env.resets == 0


@pytest.mark.parametrize(
    ("arguments", "received"),
    [
        ({"alpha": -0.1}, "alpha=-0.1"),
        ({"alpha": float("nan")}, "alpha=nan"),
        ({"beta": -0.1}, "beta=-0.1"),
        ({"beta": lambda batches: -1.0}, "beta=-1.0"),
    ],
)
def test_numbers_of_priorities(arguments, received):
    env = make_env("act_discrete")
    with raises("(finite )?number", received):
        make_eager_agent(DQN, env).fit(
            make_replay(env, prioritized=True, **arguments), verbose=0
        )
    assert env.resets == 0


def test_nothing_is_drawn_before_anything_is_stored():
    env = make_env("act_discrete")
    replay = make_replay(env)
    with raises("a ReplayDataset with stored transitions", "no buffer"):
        replay.sample(1)
    replay.bind(make_eager_agent(DQN, env))
    with raises("at least one transition", "0 transitions"):
        replay.sample(1)
    with raises("`prioritized=True`", "prioritized=False"):
        replay.update_priorities([0], [1.0])
