"""Videos of episodes: playing, and files.

Nothing here imports TensorFlow, which some renderers cannot live beside.
"""

import importlib
import io
from collections import deque
from collections.abc import Callable
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from keras_rl2.basics import seeds

# Browsers slow down faster GIFs.
_FASTEST_GIF = 50


class Play:
    """Episodes of a policy, as pictures.

    Args:
        env: `gymnasium.Env` with `render_mode="rgb_array"`.
        policy: Callable from an observation to an action. If it has a method
            `begin`, that is called before each episode.
        episodes: int. Episodes to play. Defaults to `1`.
        seed: int or None. Seed of the first episode; each has the next one.
            None for other episodes each time. Defaults to `0`.
        max_steps: int. Steps after which an episode is cut off. Defaults to
            `1000`.

    Attributes:
        returns: list of float. Return of each episode that is over.
        frame_count: int. Pictures so far.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        policy: Callable[[Any], Any],
        episodes: int = 1,
        seed: int | None = 0,
        max_steps: int = 1000,
    ) -> None:
        self._env = env
        self._policy = policy
        self._episodes = episodes
        self._seed = seeds.or_drawn(seed)
        self._max_steps = max_steps
        self.returns: list[float] = []
        self.frame_count = 0

    def frames(self) -> Iterator[np.ndarray]:
        """Plays, and yields a picture `[height, width, 3]` uint8 per step."""
        for episode in range(self._episodes):
            observation, _ = self._env.reset(seed=self._seed + episode)
            begin = getattr(self._policy, "begin", None)
            if begin is not None:
                begin()
            total = 0.0
            yield self._picture()
            for _ in range(self._max_steps):
                action = self._policy(observation)
                observation, reward, terminated, truncated, _ = self._env.step(
                    action
                )
                total += float(reward)
                yield self._picture()
                if terminated or truncated:
                    break
            self.returns.append(total)

    def _picture(self) -> np.ndarray:
        """Returns the present picture of the environment."""
        picture = np.asarray(self._env.render())
        if (
            picture.ndim != 3
            or picture.shape[2] != 3
            or picture.dtype != np.uint8
        ):
            raise ValueError(
                "Expected `render()` to give a uint8 array [height, width, 3]. "
                f"Received: {picture.dtype} of shape {picture.shape} from "
                f"{self._env}"
            )
        self.frame_count += 1
        return picture


#: Packages for writing a file, and their modules, keyed by suffix.
WRITERS = {
    ".gif": ("pillow", ("PIL",)),
    ".mp4": ("imageio imageio-ffmpeg", ("imageio", "imageio_ffmpeg")),
}


def require(ending: str) -> None:
    """Raises an error if a package for writing videos is missing.

    Args:
        ending: str. `".gif"` or `".mp4"`.

    Raises:
        ImportError: If a package is not installed.
    """
    packages, modules = WRITERS[ending]
    try:
        for name in modules:
            importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"Expected packages that write {ending}: pip install {packages}. "
            f"Received: {error}"
        ) from error


def write(path: Path, frames: Iterator[np.ndarray], fps: float) -> None:
    """Writes a video.

    Args:
        path: Path. Its name ends in `.mp4` or `.gif`.
        frames: Iterator of `[height, width, 3]` uint8.
        fps: float. Pictures per second. A GIF has no more than 50.

    Raises:
        ValueError: If there is no picture, of a GIF.
    """
    if path.suffix.lower() == ".gif":
        path.write_bytes(encode_gif(frames, fps))
    else:
        deque(writing_mp4(frames, path, fps), maxlen=0)


def writing_mp4(
    frames: Iterator[np.ndarray], path: Path, fps: float
) -> Iterator[np.ndarray]:
    """Writes frames to an MP4 file, and yields them.

    Args:
        frames: Iterator of `[height, width, 3]` uint8.
        path: Path of the file.
        fps: float. Pictures per second.

    Yields:
        The same frames.
    """
    import imageio.v2 as imageio

    # Browsers play H.264, which requires even sides. By its type, the return
    # value could be a reader.
    video: Any = imageio.get_writer(
        path, format="FFMPEG", fps=fps, codec="libx264", macro_block_size=2
    )
    with video:
        for frame in frames:
            height, width = (size // 2 * 2 for size in frame.shape[:2])
            video.append_data(frame[:height, :width])
            yield frame


def encode_gif(frames: Iterator[np.ndarray], fps: float) -> bytes:
    """Encodes frames one by one: an hour of raw ones would fill the memory.

    Args:
        frames: Iterator of `[height, width, 3]` uint8.
        fps: float. Pictures per second, no more than 50.

    Returns:
        bytes: a GIF that is repeated for ever.

    Raises:
        ValueError: If there is no picture.
    """
    from PIL import Image

    images = (
        Image.fromarray(frame).quantize(
            # Five times as fast as the default, and the video is smaller.
            method=Image.Quantize.FASTOCTREE,
            dither=Image.Dither.NONE,
        )
        for frame in frames
    )
    first = next(images, None)
    if first is None:
        raise ValueError("Expected at least one picture. Received: none")
    encoded = io.BytesIO()
    first.save(
        encoded,
        "GIF",
        save_all=True,
        append_images=images,
        # A GIF counts hundredths of a second.
        duration=10 * round(100 / min(fps, _FASTEST_GIF)),
        loop=0,
    )
    return encoded.getvalue()
