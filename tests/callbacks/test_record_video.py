import sys

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import (
    EventAccumulator,
)

import keras_rl2 as rl
from keras_rl2.callbacks import RecordVideo
from keras_rl2.policies.policy import Policy
from support.agents import assert_equal_weights
from support.errors import raises

CART_POLE = gymnasium.make("CartPole-v1")


class Drawn(gymnasium.Env):
    """Episodes of four steps, with a shade of its own for each frame.

    To an agent it is a CartPole.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}
    observation_space = CART_POLE.observation_space
    action_space = CART_POLE.action_space

    def __init__(self, render_mode="rgb_array", limit=4):
        self.render_mode = render_mode
        self.limit = limit
        self.seeds = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.count = 0
        return self._observe(), {}

    def step(self, action):
        self.count += 1
        return self._observe(), 1.0, self.count == self.limit, False, {}

    def _observe(self):
        return self.np_random.standard_normal(4).astype(np.float32)

    def render(self):
        return np.full((18, 20, 3), 40 * self.count % 200, np.uint8)


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def shades(path_or_bytes):
    """Returns the shade of each frame, and how many milliseconds it lasts."""
    found = []
    with Image.open(path_or_bytes) as clip:
        for index in range(clip.n_frames):
            clip.seek(index)
            frame = np.asarray(clip.convert("RGB"))
            assert frame.shape == (18, 20, 3)
            found.append((int(frame.mean().round()), clip.info["duration"]))
    return found


def fit(agent, rollouts, *callbacks, epochs=1):
    agent.fit(rollouts, epochs=epochs, callbacks=list(callbacks), verbose=0)


def test_a_video_is_recorded_every_given_number_of_steps(
    agent, rollouts, tmp_path
):
    logs = tmp_path / "logs"
    video = RecordVideo(Drawn, tmp_path / "videos", every=100, log_dir=logs)
    # Epochs of 64 steps: 100 and 200 lie in the second and the fourth.
    fit(agent, rollouts, video, epochs=4)
    expected = ["step-00000128.gif", "step-00000256.gif"]
    assert names(tmp_path / "videos") == expected
    # Those of 300, and of the end.
    fit(agent, rollouts, video, epochs=2)
    expected += ["step-00000320.gif", "step-00000384.gif"]
    assert names(tmp_path / "videos") == expected
    # TensorBoard shows them.
    events = EventAccumulator(str(logs), {"images": 0}).Reload()
    assert events.Tags()["images"] == ["video/episode"]
    images = events.Images("video/episode")
    assert [image.step for image in images] == [128, 256, 320, 384]
    for image, name in zip(images, expected, strict=True):
        clip = tmp_path / "videos" / name
        assert image.encoded_image_string == clip.read_bytes()
        assert (image.width, image.height) == (20, 18)


def test_frames_are_those_of_the_episodes(agent, rollouts, tmp_path):
    env = Drawn()
    video = RecordVideo(lambda: env, tmp_path, episodes=2, fps=30, seed=3)
    fit(agent, rollouts, video, epochs=2)
    assert env.seeds == [3, 4]
    # The end is recorded, once.
    assert names(tmp_path) == ["step-00000128.gif"]
    once = [(0, 30), (40, 30), (80, 30), (120, 30), (160, 30)]
    assert shades(tmp_path / "step-00000128.gif") == once * 2


def test_recording_leaves_the_random_state_of_the_agent(reused, tmp_path):
    drawn, weights = [], []
    videos = [
        RecordVideo(Drawn, tmp_path),
        RecordVideo("CartPole-v1", tmp_path, max_steps=2),
    ]
    for callbacks in ([], videos):
        agent = reused()
        data = rl.RolloutDataset("CartPole-v1", 32, passes=1, seed=0)
        fit(agent, data, *callbacks)
        drawn.append([agent.act(np.zeros(4)) for _ in range(32)])
        weights.append(agent.get_weights())
    assert_equal_weights(*weights)
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 2


def test_an_id_is_enough(agent, rollouts, tmp_path):
    """Beside arguments and wrappers; and it is played in another process."""

    class Short(gymnasium.Wrapper):
        def step(self, action):
            assert "tensorflow" not in sys.modules
            *rest, info = super().step(action)
            assert rest[1] == 0.0
            return *rest, info

    video = RecordVideo(
        "CartPole-v1",
        tmp_path,
        max_steps=5,
        env_kwargs={"sutton_barto_reward": True},
        wrappers=[Short],
    )
    fit(agent, rollouts, video)
    with Image.open(tmp_path / "step-00000064.gif") as clip:
        assert clip.size == (600, 400)
        # Frames that are alike are one.
        assert 3 <= clip.n_frames <= 6
        # CartPole declares 50 frames a second.
        assert clip.info["duration"] % 20 == 0
        assert clip.info["loop"] == 0


def test_mp4(agent, rollouts, tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    imageio = pytest.importorskip("imageio.v2")
    videos = tmp_path / "videos"
    video = RecordVideo(Drawn, videos, format="mp4")
    fit(agent, rollouts, video)
    assert names(videos) == ["step-00000064.mp4"]
    with imageio.get_reader(videos / "step-00000064.mp4") as reader:
        assert reader.get_meta_data()["fps"] == 20
        means = [float(frame.mean()) for frame in reader]
    np.testing.assert_allclose(means, [0, 40, 80, 120, 160], atol=4)


@pytest.mark.parametrize("missing", ["imageio", "imageio_ffmpeg"])
def test_missing_packages_raise_at_construction(monkeypatch, tmp_path, missing):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, missing, None)
        with pytest.raises(ImportError, match="pip install imageio"):
            RecordVideo(Drawn, tmp_path, format="mp4")


def test_mujoco_beside_tensorflow_is_refused_before_training(
    agent, rollouts, tmp_path, monkeypatch
):
    class Robot(Drawn):
        mujoco_renderer = None

    # As of a network that LiteRT does not know: it is this process that plays.
    monkeypatch.setattr(Policy, "litert", lambda self: None)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    with raises("beside TensorFlow", "Robot"):
        fit(agent, rollouts, RecordVideo(Robot, tmp_path))
    assert agent.env_steps == 0


@pytest.mark.parametrize(
    ("arguments", "expected", "received"),
    [
        ({"every": 0}, "`every`", "every=0"),
        ({"episodes": 0}, "`episodes`", "episodes=0"),
        ({"max_steps": 1.5}, "`max_steps`", "max_steps=1.5"),
        ({"fps": 0}, "`fps`", "fps=0"),
        ({"format": "avi"}, "`format`", "format='avi'"),
        ({"format": "mp4", "log_dir": "x"}, "`log_dir`", "format='mp4'"),
        ({"env": 3}, "id of an environment", "env=3"),
        ({"env_kwargs": {"limit": 3}}, "with a function", "'limit': 3"),
        ({"wrappers": [gymnasium.Wrapper]}, "with a function", "Wrapper"),
        ({"env": "CartPole-v1", "env_kwargs": {"l": 1}}, "env_kwargs", "'l'"),
        (
            {"env": lambda: Drawn(render_mode=None)},
            "render_mode='rgb_array'",
            "render_mode=None",
        ),
    ],
)
def test_invalid_arguments_are_refused_at_construction(
    tmp_path, arguments, expected, received
):
    with raises(expected, received):
        RecordVideo(**{"env": Drawn, "directory": tmp_path, **arguments})


def test_unplayable_environments_and_models_are_refused(
    agent, rollouts, tmp_path
):
    class Grey(Drawn):
        def render(self):
            return super().render()[..., 0]

    with raises("observation space", "Box"):
        fit(agent, rollouts, RecordVideo("Pendulum-v1", tmp_path))
    assert agent.env_steps == 0
    with raises(r"\[height, width, 3\]", r"\(18, 20\)"):
        fit(agent, rollouts, RecordVideo(Grey, tmp_path))
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = np.ones((2, 2)), np.ones((2, 1))
    with raises("which can act", "Sequential"):
        model.fit(*data, callbacks=[RecordVideo(Drawn, tmp_path)], verbose=0)
