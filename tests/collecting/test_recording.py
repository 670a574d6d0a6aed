"""Recording, in a process of its own and in this one."""

import functools
import os
import signal
import subprocess
import sys
import threading

import gymnasium
import numpy as np
import pytest
from PIL import Image

import keras_rl2 as rl
from keras_rl2.cli.main import main
from keras_rl2.collecting import recording
from keras_rl2.collecting.recording import Recording
from keras_rl2.collecting.recording import maker_of_id
from support.errors import raises
from support.processes import printed_by

CART_POLE = gymnasium.make("CartPole-v1")


class Plain(gymnasium.Env):
    """Three steps, whose reward is the number of the action."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}
    observation_space = CART_POLE.observation_space
    action_space = CART_POLE.action_space

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self.observe(), {}

    def observe(self):
        return self.np_random.standard_normal(4).astype(np.float32)

    def step(self, action):
        self.count += 1
        reward = self.reward(action)
        return self.observe(), reward, self.count == 3, False, {}

    def reward(self, action):
        return float(action)

    def render(self):
        return np.full((8, 10, 3), 40 * self.count, np.uint8)


class Greedy:
    """The members of a policy that recording reads; it does not convert."""

    def litert(self):
        return None

    def initial_state(self, batch_size):
        return ()

    def act(self, observation, state, deterministic):
        assert deterministic
        return 1, state


@pytest.fixture
def agent():
    return rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)


@pytest.fixture
def registered():
    """Registers an environment, as a user's script does."""
    ids = []

    def register(reward):
        # Defined here, so that it is sent itself: the other process could not
        # import this module.
        class Mine(gymnasium.Wrapper):
            def __init__(self, render_mode):
                super().__init__(
                    gymnasium.make("CartPole-v1", render_mode=render_mode)
                )

            def step(self, action):
                observation, _, *ends, info = super().step(action)
                return observation, reward(action), *ends, info

        # A class of Wrapper is none that Gymnasium before 1.3 makes.
        gymnasium.register(
            "Mine-v0", lambda **given: Mine(**given), max_episode_steps=4
        )
        ids.append("Mine-v0")
        return maker_of_id("Mine-v0")

    yield register
    for each in ids:
        del gymnasium.registry[each]


def test_the_room_does_not_import_tensorflow(tmp_path):
    code = (
        "import sys, keras_rl2.collecting.recording\n"
        "names = ('tensorflow', 'keras', 'PIL', 'imageio', 'matplotlib')\n"
        "print([m for m in names if m in sys.modules])"
    )
    assert printed_by(code, tmp_path) == "[]"


def test_the_process_that_plays_has_no_tensorflow(agent, registered, tmp_path):
    env = registered(lambda action: float("tensorflow" in sys.modules))
    path = tmp_path / "new" / "video.gif"
    recorded = recording.record(agent.policy, env, Recording(path))
    assert recorded.returns == [0.0]
    assert recorded.frame_count == 5
    with Image.open(path) as image:
        assert image.size == (600, 400)
    # As would this process have.
    assert "tensorflow" in sys.modules


def test_actions_are_those_of_the_greedy_policy(agent, tmp_path):
    """The environment of the id is that of the training."""
    asked = Recording(tmp_path / "video.gif", 2, seed=5, max_steps=30)
    recorded = recording.record(agent.policy, maker_of_id("CartPole-v1"), asked)
    act = functools.partial(agent.act, deterministic=True)
    with rl.envs.make_env("CartPole-v1", render_mode="rgb_array") as env:
        expected = Recording(
            tmp_path / "same.gif", 2, seed=5, max_steps=30
        ).play(env, act)
    assert recorded == expected
    assert (tmp_path / "video.gif").read_bytes() == (
        tmp_path / "same.gif"
    ).read_bytes()


def test_errors_of_the_environment_are_raised_here(agent, registered, tmp_path):
    # As a script defines it: no other process could import it.
    class OverheatError(ArithmeticError):
        pass

    def overheat(action):
        error = OverheatError("the motor is hot")
        error.degrees = np.float32(90.0)
        raise error

    with pytest.raises(OverheatError, match="the motor is hot") as caught:
        recording.record(
            agent.policy,
            registered(overheat),
            Recording(tmp_path / "video.gif"),
        )
    assert caught.value.degrees == 90.0


def test_a_crash_of_the_recording_process_raises_with_its_exit_code(
    agent, registered, tmp_path
):
    def crash(action):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(RuntimeError, match="exit code -9"):
        recording.record(
            agent.policy, registered(crash), Recording(tmp_path / "video.gif")
        )


def test_an_unpicklable_environment_is_played_in_this_process(agent, tmp_path):
    lock = threading.Lock()
    made = []

    def make():
        with lock:
            made.append(Plain("rgb_array"))
        return made[0]

    path = tmp_path / "video.gif"
    recorded = recording.record(agent.policy, make, Recording(path))
    assert len(made) == 1
    assert recorded.frame_count == 4
    assert path.is_file()


def test_an_environment_that_fails_to_unpickle_is_played_in_this_process(
    agent, tmp_path, monkeypatch
):
    """A class of a module that the other process does not find."""
    monkeypatch.setattr(Plain, "__module__", "module_of_nobody")
    module = type(sys)("module_of_nobody")
    module.Plain = Plain
    monkeypatch.setitem(sys.modules, "module_of_nobody", module)
    make = functools.partial(Plain, "rgb_array")
    recorded = recording.record(
        agent.policy, make, Recording(tmp_path / "video.gif")
    )
    assert recorded.frame_count == 4


def test_a_policy_that_does_not_convert_is_played_here(tmp_path):
    path = tmp_path / "video.gif"
    make = functools.partial(Plain, "rgb_array")
    recorded = recording.record(Greedy(), make, Recording(path, episodes=2))
    assert recorded.returns == [3.0, 3.0]
    with Image.open(path) as image:
        assert image.info["duration"] == 50


class Robot(Plain):
    mujoco_renderer = None


def test_mujoco_is_drawn_here_only_with_a_gpu(tmp_path, monkeypatch):
    import tensorflow as tf

    make = functools.partial(Robot, "rgb_array")
    asked = Recording(tmp_path / "video.gif")
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    with raises("beside TensorFlow", "Robot"):
        recording.record(Greedy(), make, asked)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [1])
    assert recording.record(Greedy(), make, asked).frame_count == 4


@pytest.mark.slow
def test_mujoco_is_drawn_by_the_process_that_plays(tmp_path):
    """Drawing in this process would end in a segmentation fault."""
    pytest.importorskip("mujoco")
    code = (
        "import gymnasium\n"
        "env = gymnasium.make('Hopper-v5', render_mode='rgb_array')\n"
        "env.reset(seed=0)\n"
        "env.render()\n"
    )
    environ = {"MUJOCO_GL": "egl"} | os.environ
    if subprocess.run([sys.executable, "-c", code], env=environ).returncode:
        pytest.skip("MuJoCo needs OpenGL by EGL, which is not here")
    rl.PPO.for_env("Hopper-v5", hidden=(8,)).save(tmp_path / "agent.keras")
    video = tmp_path / "hopper.gif"
    command = ["record", str(tmp_path / "agent.keras"), "--env", "Hopper-v5"]
    options = ["--env-kwargs", "width=64", "height=48", "--max-steps", "5"]
    assert main([*command, *options, "--output", str(video)]) == 0
    with Image.open(video) as image:
        assert image.size == (64, 48)
        assert np.asarray(image.convert("RGB")).std() > 20
