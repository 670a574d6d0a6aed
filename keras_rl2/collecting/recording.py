"""Recording videos, in a process of their own where that is possible.

Nothing here imports TensorFlow: Mesa, which draws MuJoCo's pictures where
there is no GPU, shares symbols of LLVM with it, and a process that has loaded
both ends in a segmentation fault.
"""

import contextlib
import copy
import dataclasses
import functools
import importlib.util
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from typing import cast

import cloudpickle
import gymnasium
import numpy as np

from keras_rl2.basics import seeds
from keras_rl2.collecting.policy_actor import LiteRTPolicy
from keras_rl2.envs import making
from keras_rl2.envs.games import Games
from keras_rl2.envs.making import EnvWrapper
from keras_rl2.saving import fresh_python
from keras_rl2.saving.atomic_files import replacing

#: Suffixes of videos.
FORMATS = (".gif", ".mp4")
# Characters of an error of another process.
_LAST = 500
# Browsers slow down faster GIFs.
_FASTEST_GIF = 50


class ActingHere:
    """A `Policy` of an agent, greedy, with its recurrent state."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy
        self._state = policy.initial_state(1)

    def begin(self) -> None:
        """Resets the recurrent state for a new episode."""
        self._state = self._policy.initial_state(1)

    def __call__(self, observation: object) -> Any:
        """Chooses an action."""
        action, self._state = self._policy.act(
            observation, self._state, deterministic=True
        )
        return action


@dataclasses.dataclass
class Recorded:
    """The returns of complete episodes, and the number of pictures so far."""

    returns: list[float] = dataclasses.field(default_factory=list)
    frame_count: int = 0


def maker_of_id(
    env_id: str,
    env_kwargs: Mapping[str, Any] | None = None,
    wrappers: Sequence[EnvWrapper] = (),
) -> Callable[[], Any]:
    """Returns a function that makes an environment with rendering."""
    make = functools.partial(
        making.make_env,
        env_id,
        env_kwargs=env_kwargs,
        wrappers=wrappers,
        render_mode="rgb_array",
    )
    return making.registering(env_id, make)


@dataclasses.dataclass(frozen=True)
class Recording:
    """Settings of a recording: the episodes, and the file.

    Args:
        path: Path. The video, `.mp4` or `.gif`.
        episodes: int. Episodes to play. Defaults to `1`.
        seed: int or None. Seed of the first episode; each has the next one.
            None for other episodes each time. Defaults to `0`.
        max_steps: int. Steps after which an episode is cut off. Defaults to
            `1000`.
        fps: float or None. Pictures per second; None for those that the
            environment declares, or 30. Defaults to `None`.
    """

    path: Path
    episodes: int = 1
    seed: int | None = 0
    max_steps: int = 1000
    fps: float | None = None

    def play(
        self, env: gymnasium.Env[Any, Any], policy: Callable[[Any], Any]
    ) -> Recorded:
        """Plays, and writes the frames one by one."""
        fps = self.fps or frames_per_second(env)
        recorded = Recorded()
        frames = self._frames(env, policy, recorded)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path) as unfinished:
            write = (
                _write_gif if self.path.suffix.lower() == ".gif" else _write_mp4
            )
            write(frames, unfinished, fps)
        return recorded

    def _frames(
        self, env: Any, policy: Any, recorded: Recorded
    ) -> Iterator[np.ndarray]:
        """Plays, and yields a picture `[height, width, 3]` uint8 per step."""
        if isinstance(env, Games):
            env = policy = _Watched(env, policy)
        first = seeds.or_drawn(self.seed)
        begin = getattr(policy, "begin", lambda: None)
        for episode in range(self.episodes):
            observation, _ = env.reset(seed=first + episode)
            begin()
            total = 0.0
            recorded.frame_count += 1
            yield _picture(env)
            for _ in range(self.max_steps):
                action = policy(observation)
                observation, reward, *ends, _ = env.step(action)
                total += float(reward)
                recorded.frame_count += 1
                yield _picture(env)
                if any(ends):
                    break
            recorded.returns.append(total)

    def make_and_play(
        self, make: Callable[[], Any], policy: Callable[[Any], Any]
    ) -> Recorded:
        """Makes an environment, plays in it and closes it."""
        with contextlib.closing(make()) as env:
            _check_drawn_here(env)
            return self.play(env, policy)


class _Watched:
    """A game that all players play with one policy, as an environment.

    It is its own policy, too. The reward is the mean of the players'.
    """

    def __init__(self, games: Games, policy: Callable[[Any], Any]) -> None:
        self._games = games
        # Each has a recurrent state of its own.
        self._policies = [copy.copy(policy) for _ in games.observations]
        self._over = False
        self._last: Any = None

    def begin(self) -> None:
        """Begins an episode of each player."""
        for policy in self._policies:
            getattr(policy, "begin", lambda: None)()

    def __call__(self, observations: list[Any]) -> list[Any]:
        """Chooses the actions of all players who are in the game."""
        rows = zip(
            self._policies, observations, self._games.waiting, strict=True
        )
        return [None if waits else act(seen) for act, seen, waits in rows]

    def reset(self, seed: int) -> tuple[list[Any], dict[str, Any]]:
        """Begins a game."""
        self._games.reset(seed)
        self._over = False
        return self._games.observations, {}

    def step(self, actions: list[Any]) -> tuple[Any, ...]:
        """Takes one step."""
        over = self._games.waiting.copy()
        reward, terminated, truncated, _ = self._games.step(actions)
        self._over = bool((over | terminated | truncated).all())
        seen = self._games.observations
        return seen, float(reward.mean()), self._over, False, {}

    def render(self) -> Any:
        """Returns the present picture, or the last before the next game."""
        if not self._over:
            self._last = self._games.render()
        return self._last


def record(
    policy: Any, make: Callable[[], Any], recording: Recording
) -> Recorded:
    """Records an agent's policy in an environment made for the purpose.

    A process without TensorFlow does it; this one only if the policy does not
    convert to LiteRT, or the environment cannot be sent there.
    """
    converted = policy.litert()
    if converted is not None:
        with contextlib.suppress(_NotSentError):
            return _in_a_process(recording, make, converted)
    draw_without_a_screen()
    return recording.make_and_play(make, ActingHere(policy))


def frames_per_second(env: gymnasium.Env[Any, Any]) -> float:
    """Returns the frame rate of an environment."""
    return float(env.metadata.get("render_fps") or 30)


def draw_without_a_screen() -> None:
    """Makes pygame and MuJoCo draw into memory if there is no screen."""
    if sys.platform == "linux" and not (
        "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    ):
        os.environ.setdefault("MUJOCO_GL", "egl")
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")


def is_drawn_by_mujoco(env: gymnasium.Env[Any, Any]) -> bool:
    """Returns whether MuJoCo draws an environment."""
    return hasattr(env.unwrapped, "mujoco_renderer") or any(
        base.__module__.startswith("gymnasium.envs.mujoco")
        for base in type(env.unwrapped).__mro__
    )


def _check_drawn_here(env: Any) -> None:
    """Raises an error for an environment whose drawing ends this process.

    With a GPU its driver draws, instead of Mesa.
    """
    tensorflow = sys.modules.get("tensorflow")
    if (
        tensorflow
        and is_drawn_by_mujoco(env)
        and not tensorflow.config.list_physical_devices("GPU")
    ):
        raise ValueError(
            "Expected an environment that can be drawn beside TensorFlow, "
            "which MuJoCo's cannot without a GPU: give its id, registered in a "
            "module that does not import TensorFlow, and networks that convert "
            f"to LiteRT. Received: {env}"
        )


def require(suffix: str) -> None:
    """Raises an error if a package for writing videos is missing."""
    for name in ("imageio", "imageio_ffmpeg") if suffix == ".mp4" else ():
        if importlib.util.find_spec(name) is None:
            raise ImportError(
                f"Expected packages that write {suffix}: pip install imageio "
                f"imageio-ffmpeg. Received: a Python without {name}"
            )


def _picture(env: gymnasium.Env[Any, Any]) -> np.ndarray:
    """Returns the present picture of an environment."""
    picture = np.asarray(env.render())
    if picture.shape[2:] != (3,) or picture.dtype != np.uint8:
        raise ValueError(
            "Expected `render()` to give a uint8 array [height, width, 3]. "
            f"Received: {picture.dtype} of shape {picture.shape} from {env}"
        )
    return picture


def _write_mp4(frames: Iterator[np.ndarray], path: Path, fps: float) -> None:
    """Writes frames to an MP4 file."""
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


def _write_gif(frames: Iterator[np.ndarray], path: Path, fps: float) -> None:
    """Writes frames one by one: an hour of raw ones would fill the memory."""
    from PIL import Image

    images = (
        Image.fromarray(frame).quantize(
            # Five times as fast as the default, and the video is smaller.
            method=Image.Quantize.FASTOCTREE,
            dither=Image.Dither.NONE,
        )
        for frame in frames
    )
    next(images).save(
        path,
        "GIF",
        save_all=True,
        append_images=images,
        # A GIF counts hundredths of a second.
        duration=10 * round(100 / min(fps, _FASTEST_GIF)),
        loop=0,
    )


def _in_a_process(
    recording: Recording, make: Callable[[], Any], policy: LiteRTPolicy
) -> Recorded:
    """Makes the environment and plays in a fresh Python; raises its errors.

    Messages are pickled in both directions, between two processes of one user
    and one job, and are not stored. The environment's maker is code, which JSON
    cannot express. An error of an environment has to be caught here as the
    object that it is: of a class that the script defines, with attributes, and
    with arguments that are no plain data.
    """
    try:
        job = cloudpickle.dumps((recording, make, policy))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise _NotSentError(f"it cannot be sent: {error}") from error
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer")
        done = subprocess.run(
            [*fresh_python.command(__name__), answer],
            input=job,
            env=fresh_python.environ(),
            stderr=subprocess.PIPE,
        )
        if not answer.exists():
            raise RuntimeError(
                "Expected the process that records the video to end well. "
                f"Received: exit code {done.returncode}; "
                f"{done.stderr.decode(errors='replace')[-_LAST:]}"
            )
        result = pickle.loads(answer.read_bytes())
    if isinstance(result, BaseException):
        raise result
    return cast(Recorded, result)


class _NotSentError(ValueError):
    """Something that is needed did not arrive in the other process."""


def _main(answer: str) -> None:
    """Executes, in the fresh Python, the request from stdin."""
    try:
        try:
            recording, make, policy = pickle.loads(sys.stdin.buffer.read())
        except (ImportError, AttributeError) as error:
            # Defined in a module that cannot be imported here.
            raise _NotSentError(f"it cannot be sent: {error}") from error
        result: Any = recording.make_and_play(make, policy)
    except Exception as error:
        error.__traceback__ = error.__cause__ = None
        result = error
    with replacing(answer) as unfinished:
        unfinished.write_bytes(cloudpickle.dumps(result))


if __name__ == "__main__":
    # Classes are to be those of the module, not of a second copy of it.
    from keras_rl2.collecting import recording as this

    draw_without_a_screen()
    # No window at all, whether there is a screen or not.
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    try:
        this._main(sys.argv[1])
    except KeyboardInterrupt:
        sys.exit(130)
