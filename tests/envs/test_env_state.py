"""Environments that are given their state back do the same again."""

import copy
import dataclasses
import enum
import functools
import gc
import itertools
import typing
from collections import deque

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import NormalizeObservation
from gymnasium.wrappers import TimeLimit
from gymnasium.wrappers import TransformReward

from keras_rl2.envs import as_vector_env
from keras_rl2.envs import env_state
from keras_rl2.envs import env_values
from keras_rl2.envs.state_keeper import StateKeeper
from keras_rl2.files import plain_data
from support.taxi import TAXI


def pendulums(mode=AutoresetMode.NEXT_STEP):
    make = functools.partial(gymnasium.make, "Pendulum-v1", max_episode_steps=9)
    return SyncVectorEnv([make] * 3, autoreset_mode=mode)


def play(env, steps=30):
    """Takes steps that are always the same, and returns what they gave."""
    space = copy.deepcopy(env.action_space)
    space.seed(1)
    given = []
    for _ in range(steps):
        action = np.stack([space.sample() for _ in range(env.num_envs)])
        given.append(copy.deepcopy(env.step(action)))
    return given


def begun(make, steps=4, seed=3):
    """Makes an environment, and takes steps of it."""
    env = as_vector_env(make())
    env.reset(seed=seed)
    play(env, steps)
    return env


def kept_of(env):
    """Returns an environment's state as it is kept."""
    keeper = StateKeeper(env)
    kept = keeper.read()
    assert keeper.refusal == ""
    return kept


def refusal_of(env):
    """Says why no state of an environment is kept."""
    keeper = StateKeeper(env)
    assert keeper.read() is None
    return keeper.refusal


def put(env, kept, adapter):
    """Gives an environment the state of another one."""
    env.set_state(adapter)
    assert StateKeeper(env).write(kept, None)


def assert_goes_on(make, steps=4):
    """Asserts that another one goes on where one was, and returns its state."""
    env = begun(make, steps)
    kept, adapter = kept_of(env), env.get_state()
    expected = play(env)
    other = as_vector_env(make())
    # As it is written to a file.
    put(other, plain_data.from_json(*plain_data.to_json(kept)), adapter)
    np.testing.assert_equal(play(other), expected)
    # It can be given more than once.
    put(env, kept, adapter)
    np.testing.assert_equal(play(env), expected)
    return kept


@pytest.mark.parametrize(
    "make",
    [
        lambda: gymnasium.make_vec("CartPole-v1", num_envs=3),
        lambda: gymnasium.make(TAXI),
        lambda: TransformReward(
            TimeLimit(gymnasium.make("CartPole-v1").unwrapped, 7), np.negative
        ),
        pendulums,
    ],
    ids=["native", "taxi", "wrapped", "vector"],
)
def test_another_one_goes_on_where_it_was(make):
    assert_goes_on(make, 20)


class Phase(enum.Enum):
    """What an environment may be at."""

    FIRST = 1
    SECOND = 2


@dataclasses.dataclass(frozen=True)
class Car:
    """Something that moves."""

    place: np.ndarray
    phase: Phase = Phase.FIRST


class Road(gymnasium.Env):
    """Holds its state in objects, and a setting."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, weight=1.0, lengths=(5, 9)):
        self.weight = weight
        self.lengths = list(lengths)
        self.last = deque(maxlen=3)
        # Nobody draws from it for a while.
        self.seldom = np.random.default_rng()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cars = [Car(self.np_random.normal(size=1)) for _ in range(3)]
        self.steps, self.draw = 0, self.np_random
        return self._seen(), {}

    def step(self, action):
        phase = Phase.SECOND if action else Phase.FIRST
        moved = self.draw.normal(size=(3, 1))
        self.cars = [
            Car(car.place + move, phase)
            for car, move in zip(self.cars, moved, strict=True)
        ]
        self.last.append(float(self.cars[0].place[0]))
        self.steps += 1
        reward = self.weight * (sum(self.last) + self.cars[0].phase.value)
        if self.steps == 4:
            reward += self.seldom.normal()
        return self._seen(), reward, False, self.steps == self.lengths[0], {}

    def _seen(self):
        return np.concatenate([car.place for car in self.cars]).astype("f")


def test_objects_that_are_their_values():
    assert assert_goes_on(lambda: Road, 8)["proven"]


def test_a_generator_that_nobody_has_drawn_from_so_far():
    assert_goes_on(lambda: Road, 0)


def test_settings_are_those_of_the_program():
    env = begun(lambda: Road)
    kept, adapter = kept_of(env), env.get_state()
    # Releases before kept all that was plain data.
    earlier = env_state.read(env.env)
    for state, settings in ((kept, (5.0, [50])), (earlier, (1.0, [5, 9]))):
        make = functools.partial(Road, weight=5.0, lengths=(50,))
        other = as_vector_env(make)
        put(other, state, adapter)
        assert (other.env.weight, other.env.lengths) == settings
        assert other.env.steps == env.env.steps == 4


def test_what_was_as_it_was_made_is_so_again():
    env = begun(lambda: Road, 0)
    kept, adapter = kept_of(env), env.get_state()
    assert "last" not in kept["state"]["attributes"]
    play(env, 3)
    put(env, kept, adapter)
    assert list(env.env.last) == []


SPACES = gymnasium.spaces.Dict(
    {"goal": gymnasium.spaces.Box(-1, 1, (3,), np.float32)}
)


class Goals(Road):
    """Draws from spaces: one of its own, one of its class, one of all."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        super().__init__()
        self.shared = SPACES
        self.own = gymnasium.spaces.Discrete(9)

    def step(self, action):
        np.random.rand()  # noqa: NPY002
        return super().step(action)

    def _seen(self):
        drawn = self.own.sample() + self.action_space.sample()
        return self.shared.sample()["goal"] + drawn


def test_what_is_drawn_from_spaces():
    env = begun(lambda: Goals)
    before = [env_state.read(env.env)["drawn"] for _ in range(2)]
    kept, adapter = kept_of(env), env.get_state()
    # Others have drawn from what they share.
    assert [env_state.read(env.env)["drawn"]] * 2 == before
    expected = play(env)
    other = as_vector_env(Goals)
    put(other, kept, adapter)
    np.testing.assert_equal(play(other), expected)


def test_what_is_drawn_elsewhere_is_not_drawn():
    env = begun(lambda: Goals)
    before = np.random.get_state()[2]  # noqa: NPY002
    kept_of(env)
    assert np.random.get_state()[2] == before  # noqa: NPY002


def test_what_others_hold_too_stays_what_it_is():
    env = begun(lambda: lambda: NormalizeObservation(Road()), 0)
    kept, adapter = kept_of(env), env.get_state()
    statistics, draw = env.env.obs_rms, env.env.unwrapped.np_random
    before = float(statistics.count), draw.bit_generator.state
    play(env, 4)
    put(env, kept, adapter)
    assert (statistics.count, draw.bit_generator.state) == before
    assert env.env.obs_rms is statistics
    assert env.env.unwrapped.np_random is draw


class Hidden(Road):
    """Keeps its step where nobody finds it."""

    def __init__(self):
        super().__init__(lengths=(10**6,))
        self.count = iter(range(10**6))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(3, np.float32), {}

    def step(self, action):
        _, *rest = super().step(action)
        return np.full(3, next(self.count), np.float32), *rest


def test_a_state_that_is_not_found():
    for make in (lambda: SyncVectorEnv([Hidden] * 2), lambda: Hidden, Hidden):
        env = begun(make)
        assert "Hidden.count" in refusal_of(env)
        # Nothing was changed by looking.
        assert env.step(np.zeros(env.num_envs, int))[0][0, 0] == 4


def test_one_that_differs_after_a_reset():
    class HiddenStart(Road):
        """Is another one from its fourth episode on."""

        def __init__(self):
            super().__init__(lengths=(10**6,))
            self.resets = iter(range(10**6))
            self.offset = itertools.repeat(0)

        def reset(self, *, seed=None, options=None):
            self.offset = itertools.repeat(int(next(self.resets) >= 3))
            return super().reset(seed=seed)

        def step(self, action):
            observation, *rest = super().step(action)
            return observation + next(self.offset), *rest

    env = begun(lambda: HiddenStart, 0)
    assert "do not repeat the steps" in refusal_of(env)


class Own(Hidden):
    """The same, but it says where it is."""

    def get_state(self):
        now = next(self.count)
        self.set_state(now)
        return now

    def set_state(self, state):
        self.count = iter(range(state, 10**6))


def test_methods_of_its_own():
    env = begun(lambda: TimeLimit(Own(), 9))
    kept, adapter = kept_of(env), env.get_state()
    assert kept["state"]["within"]["env"] == {"own": 4}
    expected = [step[0] for step in play(env)]
    other = begun(lambda: TimeLimit(Own(), 9), 0)
    put(other, kept, adapter)
    np.testing.assert_equal([step[0] for step in play(other)], expected)


def test_trials_are_closed():
    closed = []

    class Closes(Road):
        def close(self):
            closed.append(self)

    env = begun(lambda: Closes)
    kept_of(env)
    assert len(closed) == 2
    assert env.env not in closed


def test_no_other_window_is_opened():
    made = []

    class Window(Road):
        metadata: typing.ClassVar = {"render_modes": ["human"]}

        def __init__(self, render_mode=None):
            super().__init__()
            self.render_mode = render_mode
            made.append(render_mode)

    gymnasium.register("Window-v0", entry_point=Window)
    try:
        env = gymnasium.make("Window-v0", render_mode="human")
        assert not kept_of(begun(lambda: env))["proven"]
    finally:
        del gymnasium.registry["Window-v0"]
    assert made == ["human"]


class Handle(gymnasium.Env):
    """Has a simulator elsewhere, by a number that `__del__` closes."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)
    simulators: typing.ClassVar = {}
    numbers = itertools.count()

    def __init__(self):
        self.client = next(self.numbers)
        self.simulators[self.client] = 0.0
        self.total = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.simulators[self.client] = self.np_random.normal()
        return np.array([self.simulators[self.client]]), {}

    def step(self, action):
        self.simulators[self.client] += 1.0 + action
        self.total += 1
        seen = np.array([self.simulators[self.client]])
        return seen, 0.0, False, False, {}

    def __del__(self):
        del self.simulators[self.client]


def test_the_number_of_a_connection_is_neither_copied_nor_kept():
    env = begun(lambda: Handle)
    before = dict(Handle.simulators)
    assert "do not repeat the steps" in refusal_of(env)
    gc.collect()
    assert Handle.simulators == before
    # Nobody can tell of one that is given: it is found out when its state is
    # given to another one.
    kept = kept_of(begun(Handle))
    assert "client" not in kept["state"]["attributes"]
    other = begun(Handle, 0)
    client = other.env.client
    assert not StateKeeper(other).write(kept, None)
    # As it was made.
    assert (other.env.client, other.env.total) == (client, 0)


def test_an_open_file_is_not_opened_again(tmp_path):
    made = []

    class Logs(Road):
        def __init__(self):
            super().__init__()
            made.append(1)
            self.file = (tmp_path / "log").open("w")

    env = begun(lambda: Logs)
    assert "same files" in refusal_of(env)
    assert len(made) == 1
    env.env.file.close()


def test_another_kind_of_environment():
    state = env_state.read(gymnasium.make("CartPole-v1"))
    with pytest.raises(ValueError, match="Expected the state of a"):
        env_state.write(gymnasium.make("CartPole-v1").unwrapped, state)


def test_another_number_of_environments():
    state = env_state.read(pendulums())
    other = SyncVectorEnv([functools.partial(gymnasium.make, "Pendulum-v1")])
    with pytest.raises(ValueError, match=r"shorter|longer"):
        env_state.write(other, state)


@pytest.mark.slow
def test_mujoco():
    pytest.importorskip("mujoco")
    assert assert_goes_on(lambda: gymnasium.make("Ant-v5"), 20)["proven"]


def test_mujoco_of_an_earlier_release(monkeypatch):
    """Which kept the state alone: the start of its solver is a part of it."""
    mujoco = pytest.importorskip("mujoco")
    forward = mujoco.mj_forward

    def warm_up(model, data):
        # Only some versions of MuJoCo do, and for some models.
        forward(model, data)
        data.qacc_warmstart[:] += 1.0

    monkeypatch.setattr(mujoco, "mj_forward", warm_up)
    env, other = (
        begun(lambda: gymnasium.make("Ant-v5"), 20, seed).env.unwrapped
        for seed in (3, 8)
    )
    state = env_state.read_simulation(env.model, env.data)["state"]
    env_state.write_simulation(other.model, other.data, state)
    again = env_state.read_simulation(other.model, other.data)["state"]
    np.testing.assert_array_equal(again, state)


def test_marks_of_values_and_what_differs():
    name = "".join(["a", "b"])
    # Not of who else holds an object.
    assert env_values.mark([name, name]) == env_values.mark(
        ["".join(["a", "b"]), "".join(["a", "b"])]
    )
    assert env_values.mark(np.zeros(2)) == env_values.mark(np.zeros(2))
    for other in (
        np.zeros((1, 2)),
        np.zeros(2, np.int64),
        np.ones(2),
        [0.0, 0.0],
    ):
        assert env_values.mark(np.zeros(2)) != env_values.mark(other)
    deep, itself = [], []
    for _ in range(3000):
        deep = [deep]
    itself.append(itself)
    assert env_values.mark(deep) is None
    assert not env_values.is_inert(itself)
    # What is in a class that is a dict would be forgotten.
    assert not env_values.is_kept(Bag(2))
    assert env_values.mark(Bag(2)) is None


@dataclasses.dataclass
class Bag(dict):
    """Holds things beside its attributes."""

    size: int = 0


def test_classes_that_are_more_than_their_values_are_not_made(monkeypatch):
    for path in ("subprocess:Popen", "pathlib:Path"):
        with pytest.raises(ValueError, match="dataclass or an enumeration"):
            env_values.given({"$object": path, "content": {}})

    @dataclasses.dataclass
    class Bus:
        place: float

    Bus.__qualname__ = "Bus"
    with pytest.raises(TypeError, match="a class that is defined"):
        env_values.taken(Bus(1.0))
    monkeypatch.setitem(globals(), "Bus", Car)
    with pytest.raises(TypeError, match="one class of this name"):
        env_values.taken(Bus(1.0))


def test_looking_at_a_space_seeds_nothing():
    space = gymnasium.spaces.Tuple(
        [gymnasium.spaces.Discrete(3), gymnasium.spaces.Discrete(4)]
    )
    assert env_state.read_draws(space) == [None] * 3
    space[1].seed(0)
    kept = env_state.read_draws(space)
    assert [each is None for each in kept] == [True, True, False]
