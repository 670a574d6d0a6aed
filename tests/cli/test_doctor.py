import re

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import keras_rl2 as rl
from keras_rl2 import presets
from keras_rl2.cli import checks
from keras_rl2.cli import random_rollout
from keras_rl2.cli.main import main
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


class Glitch(Walk):
    """One observation and one reward of 1000 are far off."""

    high = 1e9

    def step(self, action):
        observation, reward, *rest = super().step(action)
        self.taken = getattr(self, "taken", 0) + 1
        reward += 0.1 * self.np_random.normal()
        if self.taken == 310:
            observation[0] = 1e8
        if self.taken == 400:
            reward = -1e6
        return observation, reward, *rest


def walk(**wrong):
    """Returns a class of walks of which something is wrong."""
    return type("Patient", (Walk,), wrong)


UNSEEDED = {"noise": np.random.default_rng(0), "high": 100.0}


class Wrong(Walk):
    def observe(self):
        return np.zeros(3, np.float32)


class Structured(Walk):
    """Several things are seen and done at once."""

    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Dict(
            {
                "at": spaces.Tuple([self.observation_space]),
                "moves": spaces.MultiDiscrete([60, 2]),
            }
        )
        self.action_space = spaces.Dict({"right": spaces.Discrete(2)})

    def observe(self):
        moves = np.array([self.steps, self.steps % 2])
        return {"at": (super().observe(),), "moves": moves}

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return super().reset(seed=seed)

    def step(self, action):
        return super().step(action["right"])


@pytest.fixture
def doctor(capsys):
    """Registers an environment, and returns what is found out about it."""
    gymnasium_id = "Patient-v0"

    def run(kind=Walk, max_steps=50):
        gymnasium.registry.pop(gymnasium_id, None)
        gymnasium.register(gymnasium_id, kind, max_episode_steps=max_steps)
        code = main(["doctor", gymnasium_id])
        lines = capsys.readouterr().out.splitlines()
        found = {}
        for line in lines:
            state, name, text = line[:5], line[6:24].strip(), line[25:]
            found[name] = (state.strip() == "ok", text)
            assert state.strip() in ("ok", "todo")
        assert code == int(not all(ok for ok, _ in found.values()))
        return found

    yield run
    gymnasium.registry.pop(gymnasium_id, None)


def test_all_is_well_with_cartpole(capsys):
    assert main(["doctor", "CartPole-v1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["ok"] * 7
    assert re.search(
        ": A2C, .*DQN, .*PPO, .*SAC; with a memory A2C, .*REINFORCE$", lines[0]
    )
    assert lines[3].endswith("1 to 1, mean 1, deviation 0")


WALKS = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv
from keras import ops
from keras_rl2.envs import GraphEnv


class Walk(GraphEnv):
    observation_space = gymnasium.spaces.Box(-9.0, 9.0, (1,))
    action_space = gymnasium.spaces.Discrete(2)
    max_episode_steps = 20

    def reset(self, seed):
        return ops.zeros((1,)), ops.zeros((1,))

    def step(self, state, action, seed):
        state = state + ops.where(action == 1, 1.0, -1.0)
        return state, state, -ops.abs(state[0]), False, False


class Wrong(Walk):
    def step(self, state, action, seed):
        return ops.zeros((2,)), *super().step(state, action, seed)[1:]


class Endless(Walk):
    max_episode_steps = None


class Number:
    pass
"""


def test_classes_of_a_module_need_not_be_registered(
    capsys, refused, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "walks_of_doctor.py").write_text(WALKS)

    def told(kind, code):
        assert main(["doctor", f"walks_of_doctor:{kind}"]) == code
        return capsys.readouterr().out

    assert told("CartPoleEnv", 0).startswith("ok    spaces")
    # Of an environment of functions they are checked too.
    out = told("Walk", 0)
    assert "ok    functions" in out
    assert "48 episodes of 20 to 20 steps" in out
    assert "todo  functions          Expected Wrong.step to" in told("Wrong", 1)
    assert "no episode has ended in 125 steps" in told("Endless", 1)
    line = refused("doctor", "walks_of_doctor:Number")
    assert "unknown environment 'Number'" in line


def test_each_array_of_an_observation_is_checked(doctor):
    found = doctor(Structured)
    assert all(ok for ok, _ in found.values()), found
    assert (
        ": A2C, APPO, BehaviorCloning, PPO, REINFORCE; with a memory A2C"
        in found["spaces"][1]
    )
    env = Structured()
    rollout = random_rollout.play(env, steps=20, seed=0)
    inside, at, moves = checks.check_observations(
        rollout, env.observation_space
    )
    assert inside.ok
    assert at.text.startswith("at.0: up to 0.")
    assert moves.text == (
        "moves: 62 states, which networks see as one-hot vectors"
    )
    rollout.observation["at"][0][3] = np.nan
    (found,) = checks.check_observations(rollout, env.observation_space)
    assert found.text.startswith("at.0: NaN")


def test_faults_of_environments_are_found(doctor):
    unseeded = type("Patient", (Structured,), UNSEEDED)
    for kind, found in (
        (walk(high=1e6, drift=2e3), {"observation scale": "use normalize_obs"}),
        (
            Glitch,
            {
                "observation scale": "1 far off, first 1e+08 at step 310 "
                "(number 0), where 98% lie",
                "rewards": "1 far off, first -1e+06 at step 399, where 98%",
            },
        ),
        (
            walk(drift=0.5),
            {"observations": "no members of the observation space"},
        ),
        (
            walk(reward=1000.0),
            {"rewards": "rewards reach 1e+03: use scale_rewards=True"},
        ),
        (walk(reward=0.0), {"rewards": "none in 1000 random steps"}),
        (walk(reward=float("nan")), {"rewards": "NaN or infinity"}),
        (
            walk(**UNSEEDED),
            {
                "determinism": "observation differs at step 0",
                "observation scale": "deviate by 1e-03 only",
            },
        ),
        (unseeded, {"determinism": "observation at.0 differs at"}),
        (
            walk(length=20),
            {"ends": "all 50 episodes terminated after 20 steps"},
        ),
        (
            Wrong,
            {
                "autoreset": "cannot be stepped together",
                "observations": "(float32 of shape (3,), in Box(",
                # A warning that is passed on.
                "gymnasium": "",
            },
        ),
    ):
        told = doctor(kind)
        for name, said in found.items():
            ok, text = told[name]
            assert not ok, (name, said)
            assert said in text
            assert "\x1b" not in text


def test_ends_of_episodes(doctor):
    found = doctor()
    assert all(ok for ok, _ in found.values()), found
    assert found["ends"][1] == (
        "20 episodes of 50 to 50 steps, 0 terminated, 20 truncated"
    )
    ok, text = doctor(max_steps=None)["ends"]
    assert not ok
    assert "register it with max_episode_steps" in text
    assert doctor(max_steps=5000)["ends"] == (
        True,
        "no episode in 1000 steps, time limit 5000",
    )


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


def test_algorithms_are_those_of_the_action_space():
    finding = checks.check_spaces(spaces.Text(5), spaces.Discrete(2))
    assert not finding.ok
    assert "Expected an observation space of Box (" in finding.text
    for action in (
        spaces.Discrete(3),
        spaces.MultiBinary(3),
        spaces.MultiDiscrete([2, 3]),
        spaces.Box(-1, 1, (2,)),
        spaces.Box(-np.inf, np.inf, (2,)),
    ):
        finding = checks.check_spaces(spaces.Box(-1, 1, (3,)), action)
        assert finding.ok, action
        names = classes_for(action)
        assert f": {', '.join(names)}; with" in finding.text, action
        with_memory = [
            name
            for name in names
            if getattr(rl, name).for_action_space(action).takes_memory
        ]
        assert f"with a memory {', '.join(with_memory)}" in finding.text, action
        unbounded = isinstance(action, spaces.Box) and not action.is_bounded()
        assert ("TD3 and TD3BC need finite" in finding.text) == unbounded


def test_a_mask_that_agents_do_not_see_is_pointed_to(capsys):
    class OfMethod(gymnasium.Wrapper):
        def action_masks(self):
            return np.ones(2, bool)

    assert main(["doctor", TAXI, "--steps", "50"]) == 0
    assert "info has an action mask: `wrappers=[" in capsys.readouterr().out
    env = OfMethod(gymnasium.make("CartPole-v1"))
    (finding,) = checks.check_masks(env, seed=0)
    assert finding.text.startswith("`action_masks()` gives an action mask")
    assert not checks.check_masks(rl.envs.ActionMask(env), seed=0)
    assert not checks.check_masks(gymnasium.make("CartPole-v1"), seed=0)
