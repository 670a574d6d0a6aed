"""Pictures of episodes, and the files they are kept in."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

# A GIF counts hundredths of a second; most programs slow down a faster one.
_SHORTEST_GIF_FRAME = 0.02


class Play:
    """Greedy episodes of an agent, seen from outside.

    Args:
        env: `gymnasium.Env` with `render_mode="rgb_array"`.
        agent: `keras_rl2.Agent`. Chooses the actions.
        episodes: int. Episodes to play.
        seed: int. Seed of the first episode; each has the next one.
        max_steps: int. Steps after which an episode is cut off.

    Attributes:
        returns: list of float. Return of each episode that is over.
        frame_count: int. Pictures so far.
    """

    def __init__(
        self, env: Any, agent: Any, episodes: int, seed: int, max_steps: int
    ) -> None:
        self._env = env
        self._agent = agent
        self._episodes = episodes
        self._seed = seed
        self._max_steps = max_steps
        self.returns: list[float] = []
        self.frame_count = 0

    def frames(self) -> Iterator[np.ndarray]:
        """Plays, and yields a picture `[height, width, 3]` uint8 per step."""
        for episode in range(self._episodes):
            observation, _ = self._env.reset(seed=self._seed + episode)
            total = 0.0
            yield self._picture()
            for _ in range(self._max_steps):
                action = self._agent.act(observation, deterministic=True)
                observation, reward, terminated, truncated, _ = self._env.step(
                    action
                )
                total += float(reward)
                yield self._picture()
                if terminated or truncated:
                    break
            self.returns.append(total)

    def _picture(self) -> np.ndarray:
        """Returns what there is to be seen now."""
        picture = np.asarray(self._env.render())
        if picture.ndim != 3 or picture.dtype != np.uint8:
            raise ValueError(
                "Expected pictures [height, width, 3] of dtype uint8 from "
                f"render(). Received: shape {picture.shape}, dtype "
                f"{picture.dtype}"
            )
        self.frame_count += 1
        return picture[..., :3]


def write(path: Path, frames: Iterator[np.ndarray], fps: float) -> None:
    """Writes a film.

    Args:
        path: Path. Its name ends in `.mp4` or `.gif`.
        frames: Iterator of `[height, width, 3]` uint8.
        fps: float. Pictures per second. A GIF has no more than 50.

    Raises:
        ValueError: If there is no picture.
    """
    if path.suffix.lower() == ".gif":
        _write_gif(path, frames, fps)
    else:
        _write_mp4(path, frames, fps)


def _write_gif(path: Path, frames: Iterator[np.ndarray], fps: float) -> None:
    """Writes a GIF that is repeated for ever."""
    from PIL import Image

    pictures = (Image.fromarray(frame) for frame in frames)
    first = next(pictures, None)
    if first is None:
        raise ValueError("Expected at least one picture. Received: none")
    seconds = max(1.0 / fps, _SHORTEST_GIF_FRAME)
    first.save(
        path,
        save_all=True,
        append_images=pictures,
        duration=round(seconds * 100) * 10,
        loop=0,
    )


def _write_mp4(path: Path, frames: Iterator[np.ndarray], fps: float) -> None:
    """Writes a film that browsers play: H.264, for which sizes are even."""
    import imageio.v2 as imageio

    # Its type says that it may be a reader.
    film: Any = imageio.get_writer(
        path, format="FFMPEG", fps=fps, codec="libx264", macro_block_size=2
    )
    with film:
        for frame in frames:
            height, width = (size // 2 * 2 for size in frame.shape[:2])
            film.append_data(frame[:height, :width])
