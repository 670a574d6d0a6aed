"""Recording videos, in a process of their own where that is possible.

Nothing here imports TensorFlow: Mesa, which draws MuJoCo's pictures where
there is no GPU, shares symbols of LLVM with it, and a process that has loaded
both ends in a segmentation fault.
"""

import dataclasses
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from typing import Protocol

import cloudpickle
import gymnasium

from keras_rl2.callbacks import frames as video
from keras_rl2.collecting.litert import LiteRTPolicy
from keras_rl2.envs import make_env
from keras_rl2.envs.making import EnvWrapper
from keras_rl2.envs.making import find_spec
from keras_rl2.saving import fresh_python
from keras_rl2.saving.atomic_files import replacing


class RecordedAgent(Protocol):
    """An agent that can be recorded."""

    def litert_policy(self) -> LiteRTPolicy | None:
        """Returns the greedy policy for another process, if there is one."""

    def initial_state(self, batch_size: int) -> tuple[Any, ...]:
        """Returns the recurrent state at the beginning of an episode."""

    def act(self, observation: Any, state: Any, deterministic: bool) -> Any:
        """Chooses an action in this process."""


class ActingHere:
    """An agent as a greedy policy, with its recurrent state.

    Args:
        agent: `keras_rl2.Agent`, bound to its spaces.
    """

    def __init__(self, agent: RecordedAgent) -> None:
        self._agent = agent
        self._state = agent.initial_state(1)

    def begin(self) -> None:
        """Resets the recurrent state for a new episode."""
        self._state = self._agent.initial_state(1)

    def __call__(self, observation: object) -> Any:
        """Chooses an action."""
        action, self._state = self._agent.act(
            observation, self._state, deterministic=True
        )
        return action


@dataclasses.dataclass(frozen=True)
class Recorded:
    """The result of a recording.

    Attributes:
        returns: list of float. Return of each episode.
        frame_count: int. Pictures.
        gif: bytes or None. The video as a GIF, if it was requested.
    """

    returns: list[float]
    frame_count: int
    gif: bytes | None


@dataclasses.dataclass(frozen=True)
class IdEnv:
    """An environment that any process can make.

    Attributes:
        env_id: str. Its id.
        env_kwargs: Mapping or None. Its arguments.
        wrappers: sequence of functions that it is wrapped in.
        spec: `EnvSpec` or None. Spec of the id, which is unknown in a process
            that has not run the user's script.
    """

    env_id: str
    env_kwargs: Mapping[str, Any] | None = None
    wrappers: Sequence[EnvWrapper] = ()
    spec: Any = None

    def with_spec(self) -> "IdEnv":
        """Returns a copy with the spec of its id."""
        return dataclasses.replace(self, spec=find_spec(self.env_id))

    def __call__(self) -> gymnasium.Env[Any, Any]:
        """Makes the environment, with rendering."""
        if self.spec is not None:
            gymnasium.registry.setdefault(self.spec.id, self.spec)
        return make_env(
            self.env_id,
            env_kwargs=self.env_kwargs,
            wrappers=self.wrappers,
            render_mode="rgb_array",
        )


@dataclasses.dataclass(frozen=True)
class Recording:
    """Settings of a recording: the episodes, and the file.

    Args:
        path: Path. The video, `.mp4` or `.gif`.
        episodes: int. Episodes to play. Defaults to `1`.
        seed: int or None, as for `video.Play`. Defaults to `0`.
        max_steps: int. Steps after which an episode is cut off. Defaults to
            `1000`.
        fps: float or None. Pictures per second; None for those that the
            environment declares, or 30. Defaults to `None`.
        with_gif: bool. Whether the bytes of a GIF are wanted as well. Defaults
            to `False`.
    """

    path: Path
    episodes: int = 1
    seed: int | None = 0
    max_steps: int = 1000
    fps: float | None = None
    with_gif: bool = False

    def play(
        self, env: gymnasium.Env[Any, Any], policy: Callable[[Any], Any]
    ) -> Recorded:
        """Plays, and writes the frames one by one.

        Args:
            env: `gymnasium.Env` that renders arrays. Is not closed.
            policy: Callable from an observation to an action.

        Returns:
            `Recorded`.
        """
        fps = self.fps or frames_per_second(env)
        play = video.Play(env, policy, self.episodes, self.seed, self.max_steps)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        frames, gif = play.frames(), None
        with replacing(self.path) as unfinished:
            if not self.with_gif:
                video.write(unfinished, frames, fps)
            elif self.path.suffix.lower() == ".gif":
                gif = video.encode_gif(frames, fps)
                unfinished.write_bytes(gif)
            else:
                frames = video.writing_mp4(frames, unfinished, fps)
                gif = video.encode_gif(frames, fps)
        return Recorded(play.returns, play.frame_count, gif)

    def make_and_play(
        self, make: Callable[[], Any], policy: Callable[[Any], Any]
    ) -> Recorded:
        """Makes an environment, plays in it and closes it.

        Args:
            make: Callable. Makes a `gymnasium.Env` that renders arrays.
            policy: Callable from an observation to an action.

        Returns:
            `Recorded`.

        Raises:
            ValueError: If MuJoCo finds nothing to draw with.
        """
        env = _made_and_drawn(make)
        try:
            require_drawable(env, "making it has imported TensorFlow")
            return self.play(env, policy)
        finally:
            env.close()


def record(
    agent: RecordedAgent, make: Callable[[], Any], recording: Recording
) -> Recorded:
    """Records an agent in an environment made for the purpose.

    A process without TensorFlow does it; this one only if the policy does not
    convert to LiteRT, or the environment cannot be sent there.

    Args:
        agent: `keras_rl2.Agent`, bound to its spaces. Acts greedily.
        make: `IdEnv`, or a function that makes an environment. It is sent by
            cloudpickle, with the objects that it needs.
        recording: `Recording`. The settings.

    Returns:
        `Recorded`.

    Raises:
        ValueError: If it would be this process that draws, and it would not
            survive that.
    """
    policy = agent.litert_policy()
    why = "the policy does not convert to LiteRT"
    if policy is not None:
        try:
            sent = make.with_spec() if isinstance(make, IdEnv) else make
            return _in_a_process(recording, sent, policy)
        except _NotSentError as error:
            why = str(error)
    draw_without_a_screen()
    env = make()
    try:
        require_drawable(env, why)
        return recording.play(env, ActingHere(agent))
    finally:
        env.close()


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
    """Returns whether MuJoCo draws an environment.

    Args:
        env: `gymnasium.Env`.

    Returns:
        bool.
    """
    return hasattr(env.unwrapped, "mujoco_renderer") or any(
        base.__module__.startswith("gymnasium.envs.mujoco")
        for base in type(env.unwrapped).__mro__
    )


def require_drawable(env: gymnasium.Env[Any, Any], why: str) -> None:
    """Raises an error if drawing would kill a process that has TensorFlow.

    Args:
        env: `gymnasium.Env`.
        why: str. The reason why this process would draw.

    Raises:
        ValueError: If MuJoCo draws it, TensorFlow is loaded, and there is no
            GPU, whose driver would draw instead of Mesa.
    """
    tensorflow = sys.modules.get("tensorflow")
    if (
        tensorflow is None
        or not is_drawn_by_mujoco(env)
        or tensorflow.config.list_physical_devices("GPU")
    ):
        return
    raise ValueError(
        "Expected an environment that can be drawn beside TensorFlow, which "
        "MuJoCo's cannot without a GPU: give its id, registered in a module "
        "that does not import TensorFlow, and networks that convert to "
        f"LiteRT. Received: {env}; {why}"
    )


def _made_and_drawn(make: Callable[[], Any]) -> Any:
    """Makes an environment, and explains errors of missing libraries."""
    try:
        env = make()
        if is_drawn_by_mujoco(env):
            env.reset(seed=0)
            env.render()
    except (ImportError, AttributeError, RuntimeError) as error:
        # Partly imported modules remain even if the import has failed.
        if not any(
            name.startswith(("mujoco.", "OpenGL")) for name in sys.modules
        ):
            raise
        raise ValueError(
            "Expected OpenGL that MuJoCo can draw with: install EGL "
            "(libegl1 and libgl1-mesa-dri of Debian), or set MUJOCO_GL to "
            "another way, osmesa or glfw. "
            f"Received: MUJOCO_GL={os.environ.get('MUJOCO_GL')!r}; {error}"
        ) from error
    return env


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
            raise _crash(done)
        result = pickle.loads(answer.read_bytes())
    if isinstance(result, BaseException):
        raise result
    recorded: Recorded = result
    return recorded


class _NotSentError(ValueError):
    """Something that is needed did not arrive in the other process."""


def _crash(done: subprocess.CompletedProcess[bytes]) -> RuntimeError:
    """Returns an error that tells how a process ended without an answer."""
    how = f"exit code {done.returncode}"
    if done.returncode < 0:
        how = signal.Signals(-done.returncode).name
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    fatal = [line for line in lines if line.startswith("Fatal Python error")]
    return RuntimeError(
        "Expected the process that records the video to end well. "
        f"Received: {how}; {' '.join((fatal or lines)[-1:])}"
    )


def _received() -> Any:
    """Reads the request from stdin."""
    try:
        return pickle.loads(sys.stdin.buffer.read())
    except (ImportError, AttributeError) as error:
        # Defined in a module that cannot be imported here.
        raise _NotSentError(f"it cannot be sent: {error}") from error


def _main(answer: str) -> None:
    """Executes, in the fresh Python, the request from stdin."""
    try:
        recording, make, policy = _received()
        result: Any = recording.make_and_play(make, policy)
    except Exception as error:
        error.__traceback__ = error.__cause__ = None
        result = error
    unfinished = Path(f"{answer}.partial")
    unfinished.write_bytes(cloudpickle.dumps(result))
    os.replace(unfinished, answer)


if __name__ == "__main__":
    # Classes are to be those of the module, not of a second copy of it.
    from keras_rl2.callbacks import recording as this

    draw_without_a_screen()
    # No window at all, whether there is a screen or not.
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    try:
        this._main(sys.argv[1])
    except KeyboardInterrupt:
        sys.exit(130)
