"""Videos: what is played, and what is written."""

import gymnasium
import numpy as np
import pytest
from PIL import Image

from keras_rl2.callbacks import frames as video


class Counting(gymnasium.Env):
    """Episodes of five steps; a picture shows the seed and the step."""

    observation_space = gymnasium.spaces.Box(0.0, 255.0)
    action_space = gymnasium.spaces.Discrete(2)
    picture_type = np.uint8

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
        picture = np.zeros((4, 6, 3), self.picture_type)
        picture[..., 0], picture[..., 1] = self.seed or 0, self.steps
        return picture


def test_a_picture_of_each_state():
    play = video.Play(Counting(), lambda _: 1, episodes=2, seed=7)
    frames = list(play.frames())
    assert [tuple(frame[0, 0, :2]) for frame in frames] == [
        (seed, step) for seed in (7, 8) for step in range(6)
    ]
    assert play.returns == [5.0, 5.0]
    assert play.frame_count == 12
    # An episode is cut off.
    play = video.Play(Counting(), lambda _: 1, max_steps=2)
    assert len(list(play.frames())) == 3
    assert play.returns == [2.0]


def test_what_is_no_video_is_refused(tmp_path):
    env = Counting()
    env.picture_type = np.float32
    with pytest.raises(ValueError, match="Received: float32 of shape"):
        next(video.Play(env, lambda _: 1).frames())
    with pytest.raises(ValueError, match="at least one picture"):
        video.write(tmp_path / "video.gif", iter(()), 10)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", [".gif", ".mp4"])
def test_sizes_may_be_odd(ending, tmp_path):
    frames = np.zeros((5, 65, 33, 3), np.uint8)
    frames[:, ::2] = np.arange(5)[:, None, None, None] * 40
    path = tmp_path / f"odd{ending}"
    video.write(path, iter(frames), fps=10)
    assert path.stat().st_size > 100


def test_a_gif_has_all_pictures_and_is_repeated(tmp_path):
    path = tmp_path / "video.gif"
    shades = np.arange(1, 4, dtype=np.uint8) * 60
    video.write(path, (np.full((8, 8, 3), s, np.uint8) for s in shades), 100)
    with Image.open(path) as image:
        assert image.n_frames == 3
        # No more than 50 pictures a second.
        assert image.info["duration"] == 20
        assert image.info["loop"] == 0
