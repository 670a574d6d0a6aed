import re

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import keras_rl2 as rl
from keras_rl2 import presets
from keras_rl2.cli.doctor import _spaces
from keras_rl2.cli.main import main
from keras_rl2.envs import as_vector_env
from support.any_space_env import AnySpaceEnv
from support.structured_envs import MASKED_ACTIONS
from support.structured_envs import MaskedEnv
from support.taxi import TAXI


class Walk(gymnasium.Env):
    """A walk on a line, with whatever is wrong with it."""

    high = 1.0
    reward = 1.0
    drift = 0.01
    length = None
    noise = None

    def __init__(self):
        self.observation_space = spaces.Box(-self.high, self.high, (2,))
        self.action_space = spaces.Discrete(2)

    def observe(self):
        noise = 0.0
        if self.noise is not None:
            noise = self.noise.normal()
        place = np.array([self.place, 0.5 + 1e-3 * noise])
        return place.astype(np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.uniform(-0.1, 0.1)
        self.steps = 0
        return self.observe(), {}

    def step(self, action):
        self.steps += 1
        self.place += self.drift * (2 * action - 1)
        ended = self.steps == self.length
        return self.observe(), self.reward, ended, False, {}


def walk(**wrong):
    """Returns a class of walks of which something is wrong."""
    return type("Patient", (Walk,), wrong)


UNSEEDED = {"noise": np.random.default_rng(0), "high": 100.0}


class Wrong(Walk):
    def observe(self):
        return np.zeros(3, np.float32)


@pytest.fixture
def doctor(capsys):
    """Registers an environment, and returns the report about it."""
    gymnasium_id = "Patient-v0"

    def run(kind=Walk, max_steps=50):
        gymnasium.registry.pop(gymnasium_id, None)
        gymnasium.register(gymnasium_id, kind, max_episode_steps=max_steps)
        code = main(["doctor", gymnasium_id])
        lines = capsys.readouterr().out.splitlines()
        found = {}
        for line in lines:
            state, name, text = line[:5], line[6:24].strip(), line[25:]
            ok, said = found.get(name, (True, ""))
            found[name] = (ok and state.strip() == "ok", said + text)
            assert state.strip() in ("ok", "todo")
        assert code == int(not all(ok for ok, _ in found.values()))
        return found

    yield run
    gymnasium.registry.pop(gymnasium_id, None)


def test_all_is_well_with_pendulum(capsys):
    assert main(["doctor", "Pendulum-v1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} == {"ok"}
    found = {line[6:24].strip(): line[25:] for line in lines}
    assert re.search(": A2C, .*PPO, .*TQC; with a memory A2C", found["spaces"])
    assert found["action"] == "bounds [-2, 2]"
    seen = found["observation"]
    assert seen.startswith("bounds [-1, 1] [-1, 1] [-8, 8], seen [-")
    assert found["ends"].endswith("0 terminated, 4 truncated")


CLASSES = """
from gymnasium.envs.classic_control import CartPoleEnv


class Number:
    pass
"""


def test_classes_of_a_module_need_not_be_registered(
    capsys, refused, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "classes_of_doctor.py").write_text(CLASSES)

    assert main(["doctor", "classes_of_doctor:CartPoleEnv"]) == 0
    assert "ok    spaces" in capsys.readouterr().out
    line = refused("doctor", "classes_of_doctor:Number")
    assert "to be a class of `gymnasium.Env`" in line


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        (walk(high=1e6, drift=2e3), "observation", "use normalize_observ"),
        (walk(drift=0.5), "observation", "outside of its bounds: mend"),
        (walk(reward=1000.0), "rewards", "use scale_rewards=True"),
        (walk(reward=0.0), "rewards", "reward progress too"),
        (walk(reward=float("nan")), "rewards", "NaN or infinity"),
        (walk(**UNSEEDED), "check_env", "non-deterministic"),
        (walk(length=20), "ends", "50 episodes of 20 to 20 steps"),
        (Wrong, "environment", "Expected observations of Box"),
        (Wrong, "check_env", "not within the observation space"),
    ],
)
def test_faults_of_environments_are_found(kind, name, said, doctor):
    ok, text = doctor(kind)[name]
    assert not ok
    assert said in text
    assert "\x1b" not in text


def test_ends_of_episodes(doctor):
    found = doctor()
    assert all(ok for ok, _ in found.values()), found
    ok, text = doctor(max_steps=None)["ends"]
    assert not ok
    assert "register it with max_episode_steps" in text
    assert doctor(max_steps=5000)["ends"][0]


def classes_for(action):
    """Returns the classes that say of themselves that they act in a space."""
    bounded = not isinstance(action, spaces.Box) or action.is_bounded()
    names = [
        name
        for name in sorted(presets.ALGORITHMS)
        if any(
            isinstance(action, kind) and (bounded or kind is gymnasium.Space)
            # Of CQL there is a class for each.
            for kind in getattr(getattr(rl, name), "kinds", None)
            or getattr(rl, name).action_kinds
        )
    ]
    assert {"A2C", "BehaviorCloning", "PPO"} <= {*names}
    return names


@pytest.mark.parametrize(
    "action",
    [
        spaces.Discrete(3),
        spaces.MultiBinary(3),
        spaces.MultiDiscrete([2, 3]),
        spaces.Box(-1, 1, (2,)),
        spaces.Box(-np.inf, np.inf, (2,)),
    ],
)
def test_algorithms_are_those_of_the_action_space(action):
    env = as_vector_env(AnySpaceEnv(spaces.Box(-1, 1, (3,)), action))
    finding, *_ = _spaces(env)
    names = classes_for(action)
    assert f": {', '.join(names)}; with" in finding.text, action
    with_memory = [
        name
        for name in names
        if getattr(rl, name).for_action_space(action).takes_memory
    ]
    assert f"with a memory {', '.join(with_memory)}" in finding.text, action


def test_a_mask_that_agents_do_not_see_is_pointed_to(capsys):
    assert main(["doctor", TAXI, "--steps", "50"]) == 1
    assert "do not see it: pass wrappers=[" in capsys.readouterr().out


def test_the_reading_of_an_image_is_named(doctor):
    """The channels of the image may be first or last."""

    class Grid(AnySpaceEnv):
        def __init__(self):
            super().__init__(
                spaces.Box(0, 1, (6, 8, 12), "uint8"), spaces.Discrete(2)
            )

    ok, text = doctor(Grid)["observation"]
    assert ok
    assert "channels last, or pass data_format='channels_first'" in text


def test_masks_are_obeyed_and_each_array_is_checked(doctor):
    found = doctor(lambda: MaskedEnv(MASKED_ACTIONS["discrete"]))
    assert "check_env" not in found
    assert "environment" not in found
