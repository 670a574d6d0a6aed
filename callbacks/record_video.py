"""Videos of the policy, recorded during training."""

import os
import pathlib
import tempfile
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras

from keras_rl2.basics import arguments
from keras_rl2.callbacks.run import Logs
from keras_rl2.callbacks.tensorboard import EventWriter
from keras_rl2.collecting import recording
from keras_rl2.envs import making
from keras_rl2.envs.adapt import as_vector_env
from keras_rl2.envs.making import EnvWrapper

_FORMATS = ("gif", "mp4")


class RecordVideo(keras.callbacks.Callback):
    """Plays episodes at intervals of environment steps, and records them.

    A curve shows that a policy has improved; a video shows its behavior, for
    example that it stands still, runs in circles or exploits the reward. The
    policy acts greedily, in a separate environment. Training is the same with
    and without this callback: it draws no random numbers of the agent or the
    dataset.

    It records at the end of an epoch in which the steps have passed a multiple
    of `every`, and at the end of training. Files are named after the
    environment steps so far, such as `step-00050000.gif`.

    An environment passed as an id is played in a separate process without
    TensorFlow, if the policy converts to LiteRT, since the renderer of MuJoCo
    cannot run beside it on a machine without a GPU. The environment of a
    function is played in this process, except for MuJoCo.

    Args:
        env: str or Callable. The id of an environment that Gymnasium makes, or
            a function that makes one with `render_mode="rgb_array"`; also a
            game of several players, or a function that makes `Games`.
        directory: str or path. Folder of the videos; made if missing.
        every: int. Environment steps from one video to the next. Defaults to
            `50_000`.
        episodes: int. Episodes of one video. Defaults to `1`.
        log_dir: str or path or None. Directory for events of TensorBoard with
            the video, of format `"gif"`; preferably a separate directory below
            that of the `TensorBoard` callback; None to write none. Defaults to
            `None`.
        fps: float or None. Frames per second, of a GIF at most 50; None for
            those that the environment declares, or 30. Defaults to `None`.
        seed: int or None. Seed of the first episode, plus one for each later
            one, so that videos can be compared; None for different episodes
            each time. Defaults to `0`.
        format: str. `"gif"`, or `"mp4"` (smaller; needs imageio and
            imageio-ffmpeg). Defaults to `"gif"`.
        max_steps: int. Steps after which an episode is cut off. Defaults to
            `1000`.
        env_kwargs: dict or None. Arguments of the environment, with an id
            only. Defaults to `None`.
        wrappers: sequence of functions from a `gymnasium.Env` to another one,
            with an id only. Defaults to `()`.

    Raises:
        ValueError: If a number is out of range, or the environment does not
            render arrays; when `fit` begins, if the agent does not fit it, or
            rendering would end the process.
        ImportError: If the package that writes the format is not installed.

    Example:

    >>> import tempfile
    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("Acrobot-v1", horizon=32, passes=1,
    ...                              batch_size=32, seed=0)
    >>> agent = rl.PPO.for_env(rollouts.env, seed=0)
    >>> directory = tempfile.mkdtemp()
    >>> video = rl.callbacks.RecordVideo("Acrobot-v1", directory, every=64,
    ...                                  max_steps=20)
    >>> history = agent.fit(rollouts, epochs=2, verbose=0, callbacks=[video])
    >>> os.listdir(directory)
    ['step-00000064.gif']
    """

    @arguments.refusing_unknown
    def __init__(
        self,
        env: str | Callable[[], Any],
        directory: str | os.PathLike[str],
        every: int = 50_000,
        episodes: int = 1,
        log_dir: str | os.PathLike[str] | None = None,
        fps: float | None = None,
        seed: int | None = 0,
        *,
        format: str = "gif",
        max_steps: int = 1000,
        env_kwargs: Mapping[str, Any] | None = None,
        wrappers: Sequence[EnvWrapper] = (),
    ) -> None:
        super().__init__()
        arguments.check_positive(
            every=every, episodes=episodes, max_steps=max_steps
        )
        arguments.check_seed(seed)
        arguments.check_above_zero(**arguments.present(fps=fps))
        arguments.check_choice(format=(format, _FORMATS))
        arguments.check_path(
            directory=directory, **arguments.present(log_dir=log_dir)
        )
        recording.require(f".{format}")
        if log_dir is not None and format != "gif":
            raise ValueError(
                'Expected `format="gif"` with `log_dir`: TensorBoard shows no '
                f"other videos. Received: format={format!r}"
            )
        self.env = env
        self._make = _maker(env, env_kwargs, wrappers)
        self.directory = pathlib.Path(directory)
        self.every = every
        self.episodes = episodes
        self.log_dir = None if log_dir is None else os.fspath(log_dir)
        self.seed = seed
        self.format = format
        self.max_steps = max_steps
        self._recorded_env: Any = _make(self._make)
        self.fps = fps or recording.frames_per_second(self._recorded_env)
        self._writer = None if log_dir is None else EventWriter(log_dir)
        self._looked = self._recorded = 0

    def on_train_begin(self, logs: Logs = None) -> None:
        """Makes the environment, and checks the agent against it."""
        if not hasattr(self.model, "act"):
            raise ValueError(
                "Expected a `keras_rl2.Agent`, which can act. "
                f"Received: {type(self.model).__name__}"
            )
        if self._recorded_env is None:
            self._recorded_env = _make(self._make)
        adapter = as_vector_env(self._recorded_env)
        self.model.bind(adapter.observation_space, adapter.action_space)
        self._looked = self._recorded = self.model.env_steps
        if recording.is_drawn_by_mujoco(self._recorded_env):
            # An error is raised before training: MuJoCo needs drivers that a
            # machine may lack.
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, f"try.{self.format}")
                video = recording.Recording(path, max_steps=1)
                recording.record(self.model.policy, self._make, video)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Records a video if due."""
        steps = self.model.env_steps
        due = steps // self.every > self._looked // self.every
        self._looked = steps
        if due:
            self._record()

    def on_train_end(self, logs: Logs = None) -> None:
        """Records the final policy, and closes the environment."""
        if self.model.env_steps > self._recorded:
            self._record()
        self._recorded_env.close()
        self._recorded_env = None

    def get_state(self) -> int:
        """Returns the step of the last check, for a resumed `fit`."""
        return self._looked

    def set_state(self, state: int) -> None:
        """Restores the state that `get_state` returned.

        Args:
            state: int, as returned by `get_state`.
        """
        self._looked = state

    def _record(self) -> None:
        """Plays episodes, and writes the files."""
        steps = self._recorded = self.model.env_steps
        video = recording.Recording(
            self.directory / f"step-{steps:08d}.{self.format}",
            self.episodes,
            self.seed,
            self.max_steps,
            self.fps,
        )
        if isinstance(self.env, str) or recording.is_drawn_by_mujoco(
            self._recorded_env
        ):
            recording.record(self.model.policy, self._make, video)
        else:
            # The environment of a function may be the only one, and users may
            # access it: so it is the same for all videos.
            video.play(
                self._recorded_env, recording.ActingHere(self.model.policy)
            )
        if self._writer is not None:
            self._writer.gif(steps, "video/episode", video.path.read_bytes())


def _maker(
    env: str | Callable[[], Any],
    env_kwargs: Mapping[str, Any] | None,
    wrappers: Sequence[EnvWrapper],
) -> Callable[[], Any]:
    """Returns a function that makes the environment."""
    if isinstance(env, str):
        return recording.maker_of_id(env, env_kwargs, wrappers)
    what = "the id of an environment, or a function that makes one"
    arguments.check_has(what, "__call__", env=env)
    making.refuse_arguments_of_function(env_kwargs, wrappers)
    return env


def _make(make: Callable[[], Any]) -> Any:
    """Makes the environment, and checks that it renders arrays."""
    env = make()
    mode = getattr(env, "render_mode", None)
    if mode != "rgb_array":
        raise ValueError(
            "Expected an environment made with render_mode='rgb_array': a "
            "custom one has that as an attribute, and a method `render` that "
            "returns a picture, `[height, width, 3]` uint8. "
            f"Received: {env} with render_mode={mode!r}"
        )
    return env
