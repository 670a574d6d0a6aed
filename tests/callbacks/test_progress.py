import inspect
import io
import itertools

import gymnasium
import keras
import numpy as np

import keras_rl2 as rl
from keras_rl2.callbacks import Progress
from support.episodes import record
from support.errors import raises
from support.trainings import eager_dqn
from support.trainings import fit_plain_critic


class Clock:
    """Goes on by so many seconds with each round."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Rollouts:
    """The read members of a dataset: rounds of 100 steps and 4 updates."""

    steps_per_round = fewest_steps_per_round = 100
    updates_per_round = 4
    steps_before_first_round = 0
    steps_per_epoch = 8

    def __init__(self):
        self.episode_return = np.nan

    def logs(self):
        return {"episode_return": self.episode_return}

    def own_settings(self):
        return {}


class Agent:
    def __init__(self, env_steps=0):
        self.env_steps = env_steps
        self.rollouts = Rollouts()


def run(stream, epochs=2, seconds_per_round=1.0, agent=None, **arguments):
    """Goes through the rounds of a `fit`, two in each epoch.

    Returns:
        The text that was written by the end of each round.
    """
    clock, agent = Clock(), agent or Agent()
    progress = Progress(stream=stream, clock=clock, **arguments)
    progress.set_model(agent)
    progress.set_params({"epochs": epochs, "steps": 8})
    progress.on_train_begin()
    written = []
    for epoch in range(epochs):
        progress.on_epoch_begin(epoch)
        for batch in (0, 4):
            clock.now += seconds_per_round
            agent.env_steps += 100
            progress.on_train_batch_end(batch + 3)
            written.append(stream.getvalue())
        progress.on_epoch_end(epoch, {})
    progress.on_train_end()
    return written


def test_lines_come_every_so_many_seconds():
    stream = io.StringIO()
    run(stream, seconds=2.0)
    # 100 steps a second.
    assert stream.getvalue().splitlines() == [
        "200/400 steps   50%  100 steps/s  0:02 left",
        "400/400 steps  100%  100 steps/s  0:00 left",
        "400 steps in 0:04 (100 steps/s)",
    ]
    assert stream.getvalue().endswith("\n")


def test_a_terminal_has_one_line_that_is_rewritten(monkeypatch):
    stream = Terminal()
    written = run(stream)
    assert written[0] == "\r100/400 steps   25%"
    assert "\n" not in written[-1]
    *before, last = stream.getvalue().split("\r")
    assert len(before) == 5
    # Nothing of a longer line before it is left.
    assert last == "400 steps in 0:04 (100 steps/s)".ljust(len(before[-1])) + (
        "\n"
    )
    monkeypatch.setenv("COLUMNS", "20")
    run(stream := Terminal())
    *lines, summary = stream.getvalue().split("\r")
    assert max(map(len, lines)) == 19
    assert summary == last.rstrip(" \n") + "\n"


def test_progress_limits_the_number_of_its_lines():
    stream = Terminal()
    # 4000 rounds in four seconds: a terminal is drawn ten times a second.
    run(stream, epochs=2000, seconds_per_round=0.001)
    assert 35 <= stream.getvalue().count("\r") <= 42
    stream = io.StringIO()
    # A file, in twenty seconds.
    run(stream, epochs=10_000, seconds_per_round=0.001)
    assert len(stream.getvalue().splitlines()) == 5


def test_the_return_is_shown_from_the_first_episode_on():
    stream = Terminal()
    agent = Agent()
    agent.rollouts.episode_return = 21.26
    run(stream, agent=agent)
    assert "0:02 left  episode_return 21.3" in stream.getvalue()
    last = stream.getvalue().split("\r")[-1]
    assert last.split(", ")[-1].split() == ["episode_return", "21.3"]


def first_line(agent=None, **arguments):
    stream = io.StringIO()
    run(stream, agent=agent, **{"seconds": 1.0, **arguments})
    return stream.getvalue().splitlines()[0]


def test_the_total():
    # Of this `fit`.
    assert first_line(Agent(env_steps=1000)).startswith("100/400 steps")
    # As given; 999 700 steps at 100 a second are 9997 seconds.
    line = first_line(total_steps=1_000_000, seconds=3.0)
    assert line == "300/1,000,000 steps    0%  100 steps/s  2:46:37 left"
    # The warm-up of a replay counts.
    agent = Agent()
    agent.rollouts.steps_before_first_round = 600
    assert first_line(agent).startswith("100/1,000 steps")
    # Whole episodes and other data leave it open.
    for name, value in (("fewest_steps_per_round", 1), ("rollouts", None)):
        agent = Agent()
        setattr(agent.rollouts if value else agent, name, value)
        assert first_line(agent, seconds=2.0) == "200 steps  100 steps/s"


def test_speed_is_that_of_the_last_half_minute_after_the_first_round():
    progress = Progress(stream=io.StringIO(), clock=(clock := Clock()))
    progress.set_model(agent := Agent())
    agent.rollouts = None
    progress.on_train_begin()
    progress.on_epoch_begin(0)
    # Half an hour of compilation, then 10 steps a second.
    clock.now += 1800.0
    for _ in range(8):
        clock.now += 10.0
        agent.env_steps += 100
        progress.on_train_batch_end(0)
    last = progress.stream.getvalue().splitlines()[-1]
    assert last == "800 steps  10 steps/s"


def test_a_fit_of_an_agent(agent, rollouts):
    stream = Terminal()
    progress = Progress(stream=stream, clock=Clock())
    agent.fit(rollouts, total_steps=192, callbacks=[progress], verbose=0)
    chosen, rest = stream.getvalue().split("\n", maxsplit=1)
    assert chosen == "\rDefaults of PPO: scale_rewards=True"
    assert rest.startswith("\r64/192 steps   33%  ")
    assert stream.getvalue().split("\r")[-1].startswith("192 steps in 0:00")
    agent.fit(rollouts, total_steps=60, callbacks=[progress], verbose=0)
    assert "\r64 steps (whole epochs) in 0:00" in stream.getvalue()
    agent.fit(rollouts, epochs=1, callbacks=[progress], verbose=0)
    assert stream.getvalue().split("\r")[-1].startswith("64 steps in 0:00")


def test_a_replay_is_counted_with_its_warm_up():
    env = gymnasium.make("CartPole-v1")
    agent, replay = eager_dqn(env, warm_up=32)
    stream = Terminal()
    progress = Progress(stream=stream, clock=Clock())
    agent.fit(replay, total_steps=96, callbacks=[progress], verbose=0)
    # 32 of the warm-up and 16 of the first round.
    assert stream.getvalue().startswith("\r48/96 steps   50%")
    assert "\r96 steps in" in stream.getvalue()


def test_a_plain_keras_model_is_shown_by_epochs(agent, rollouts, capsys):
    fit_plain_critic(agent, rollouts, Progress(clock=Clock()))
    assert capsys.readouterr().out.startswith("128 steps in 0:00")


def test_the_total_is_constant_and_each_line_appears_once():
    """Resets of this vector environment take steps."""
    env = gymnasium.make_vec("CartPole-v1", num_envs=4)
    rollouts = rl.RolloutDataset(
        env, 64, passes=2, rounds_per_epoch=2, batch_size=256, seed=0
    )
    stream = io.StringIO()
    ticks = itertools.count()
    progress = Progress(
        stream=stream, seconds=1e-9, clock=lambda: float(next(ticks))
    )
    agent = rl.PPO.for_env(env, hidden=(4,), seed=0)
    agent.compile(run_eagerly=True)
    agent.fit(rollouts, total_steps=1000, callbacks=[progress])
    lines = stream.getvalue().splitlines()[1:-1]
    places = [line.split()[0].split("/") for line in lines]
    steps = [taken for taken, _ in places]
    assert len(steps) == len(set(steps)) == 4
    totals = [total for _, total in places]
    assert totals == ["1,000"] * 4


def test_numbers_out_of_range_are_refused():
    with raises("`total_steps`", "total_steps=0"):
        Progress(0)
    with raises("`seconds`", "seconds=0.0"):
        Progress(seconds=0.0)


def test_fit_shows_progress_unless_verbose_is_0(
    agent, rollouts, capsys, monkeypatch
):
    # Of the one that `fit` makes. A slow machine would be told of each round.
    defaults = inspect.unwrap(Progress.__init__).__kwdefaults__
    monkeypatch.setitem(defaults, "clock", Clock())
    for arguments, lines in (
        # The first says which settings are the algorithm's own.
        ({}, 2),
        ({"verbose": "auto", "callbacks": Progress(seconds=600.0)}, 2),
        ({"verbose": 0}, 0),
        # Keras' own: a head and a line for each epoch.
        ({"verbose": 2}, 4),
    ):
        agent.fit(rollouts, epochs=2, **arguments)
        printed = capsys.readouterr().out.splitlines()
        assert len(printed) == lines, arguments
        if lines == 2:
            assert printed[0] == "Defaults of PPO: scale_rewards=True"
            assert "steps/s" in printed[1]


def test_updates_are_counted_where_no_steps_are_taken():
    offline = rl.OfflineDataset(record(), 8, updates_per_epoch=40)
    stream, clock = io.StringIO(), Clock()
    progress = Progress(stream=stream, seconds=1e-9, clock=clock)
    agent = rl.DQN(
        keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)]),
        observation_space=gymnasium.spaces.Box(-1e3, 1e3, (2,)),
        action_space=gymnasium.spaces.Discrete(2),
        seed=0,
    )
    tick = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda *_: setattr(clock, "now", clock.now + 2.0)
    )
    history = agent.fit(offline, epochs=2, callbacks=[tick, progress])
    lines = stream.getvalue().splitlines()
    assert "40/80 updates   50%" in lines
    assert "80/80 updates  100%  10 updates/s  0:00 left" in lines
    assert lines[-1] == "80 updates in 0:04 (20 updates/s)"
    assert "steps_per_second" not in history.history
    assert history.history["updates_per_second"][0] > 0
