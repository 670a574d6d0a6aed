"""The played frames of an environment, and the written files."""

import gymnasium
import numpy as np
import pytest
from PIL import Image

from keras_rl2.collecting.recording import Recording


class Counting(gymnasium.Env):
    """Episodes of five steps; a picture shows the seed and the step."""

    observation_space = gymnasium.spaces.Box(0.0, 255.0)
    action_space = gymnasium.spaces.Discrete(2)
    picture_type = np.uint8
    size = (4, 6)

    def reset(self, seed=None, options=None):
        self.seed, self.steps = seed, 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        return (
            np.zeros(1, np.float32),
            float(action),
            self.steps == 5,
            False,
            {},
        )

    def render(self):
        picture = np.zeros((*self.size, 3), self.picture_type)
        picture[..., 0], picture[..., 1] = self.seed or 0, self.steps
        return picture


def play(path, env, policy, **settings):
    return Recording(path, **settings).play(env, policy)


def colors(path):
    """The first pixel of each picture."""
    with Image.open(path) as image:
        found = []
        for index in range(image.n_frames):
            image.seek(index)
            found.append(image.convert("RGB").getpixel((0, 0))[:2])
        return found


def test_a_picture_of_each_state(tmp_path):
    path = tmp_path / "video.gif"
    recorded = play(path, Counting(), lambda _: 1, episodes=2, seed=7)
    assert colors(path) == [
        (seed, step) for seed in (7, 8) for step in range(6)
    ]
    assert recorded.returns == [5.0, 5.0]
    assert recorded.frame_count == 12
    # An episode is cut off.
    recorded = play(path, Counting(), lambda _: 1, max_steps=2)
    assert recorded.frame_count == 3
    assert recorded.returns == [2.0]


def test_frames_of_floats_are_refused(tmp_path):
    env = Counting()
    env.picture_type = np.float32
    with pytest.raises(ValueError, match="Received: float32 of shape"):
        play(tmp_path / "video.gif", env, lambda _: 1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", [".gif", ".mp4"])
def test_sizes_may_be_odd(ending, tmp_path):
    env = Counting()
    env.size = (65, 33)
    path = tmp_path / f"odd{ending}"
    play(path, env, lambda _: 1)
    assert path.stat().st_size > 100


def test_a_gif_has_all_pictures_and_is_repeated(tmp_path):
    path = tmp_path / "video.gif"
    play(path, Counting(), lambda _: 1, max_steps=2, fps=100)
    with Image.open(path) as image:
        assert image.n_frames == 3
        # No more than 50 pictures a second.
        assert image.info["duration"] == 20
        assert image.info["loop"] == 0
