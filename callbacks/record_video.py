"""Videos of what the policy does, taken while it is trained."""

import io
import os
import pathlib
from collections.abc import Callable
from typing import Any

import gymnasium
import keras
import numpy as np
import tensorflow as tf
from PIL import Image

from keras_rl2 import films

_FORMATS = ("gif", "mp4")
_DEFAULT_FPS = 30


class RecordVideo(keras.callbacks.Callback):
    """Plays episodes every so many environment steps and films them.

    A curve says that a policy has become better, a film what it does: stands
    still, runs in circles, has found a hole in the reward. The policy acts
    greedily, in an environment of its own. Training is the same with and
    without this callback: it draws none of the agent's or the dataset's
    random numbers.

    It looks at the end of each epoch whether another `every` steps have been
    taken since it last did, and films the policy at the end of training too.
    Files are named after the steps taken by then, `step-00050000.gif`.

    Args:
        env: str or Callable. The id of an environment that Gymnasium makes, or
            a function that makes one with `render_mode="rgb_array"`.
        directory: str or path. Where files go; made if it is not there.
        every: int. Environment steps from one film to the next. Defaults to
            `50_000`.
        episodes: int. Episodes of one film. Defaults to `1`.
        log_dir: str or path or None. Where the film is written to for
            TensorBoard, as an animated GIF on its page of images; best a
            directory of its own below that of the `TensorBoard` callback.
            None for no such thing. Defaults to `None`.
        fps: float or None. Frames per second, of a GIF at most 50; None for
            those that the environment declares, or 30. Defaults to `None`.
        seed: int or None. Seed of the first episode, one more for each of the
            others, so that films can be compared; None for other episodes
            each time. Defaults to `0`.
        format: str. `"gif"`, or `"mp4"` (smaller; needs imageio and
            imageio-ffmpeg). Defaults to `"gif"`.
        max_steps: int. Steps after which an episode is cut off. Defaults to
            `1000`.

    Raises:
        ValueError: If a number is out of range, or the environment does not
            render arrays; when `fit` begins, if the agent does not fit it.
        ImportError: If what writes `"mp4"` is not installed.

    Example:

    >>> import tempfile
    >>> import keras_rl2 as rl
    >>> env = gymnasium.make("CartPole-v1")
    >>> rollouts = rl.RolloutDataset(env, horizon=32, passes=1, batch_size=32,
    ...                              seed=0)
    >>> agent = rl.PPO.for_env(env, seed=0)
    >>> directory = tempfile.mkdtemp()
    >>> video = rl.callbacks.RecordVideo("CartPole-v1", directory, every=64)
    >>> history = agent.fit(rollouts, epochs=3, verbose=0, callbacks=[video])
    >>> sorted(os.listdir(directory))
    ['step-00000064.gif', 'step-00000096.gif']
    """

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
    ) -> None:
        super().__init__()
        _check_at_least_one(every=every, episodes=episodes, max_steps=max_steps)
        if fps is not None and not fps > 0:
            raise ValueError(
                f"Expected `fps` to be over 0. Received: fps={fps}"
            )
        if format not in _FORMATS:
            raise ValueError(
                f"Expected `format` to be one of {_FORMATS}. "
                f"Received: format={format!r}"
            )
        if format == "mp4":
            films.require_mp4()
        self.env = env
        self.directory = pathlib.Path(directory)
        self.every = every
        self.episodes = episodes
        self.log_dir = None if log_dir is None else os.fspath(log_dir)
        self.seed = seed
        self.format = format
        self.max_steps = max_steps
        self._made: Any = _make(env)
        self.fps = fps or self._made.metadata.get("render_fps") or _DEFAULT_FPS
        self._policy: Any = None
        self._writer: Any = None
        self._looked = self._recorded = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Makes the environment, and checks the agent against it."""
        if not hasattr(self.model, "policy_function"):
            raise ValueError(
                "Expected a `keras_rl2.Agent`, which can act. "
                f"Received: {type(self.model).__name__}"
            )
        if self._made is None:
            self._made = _make(self.env)
        self.model.bind(self._made.observation_space, self._made.action_space)
        self._policy = _GreedyPolicy(self.model)
        self._looked = self._recorded = self.model.env_steps

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Films if it is time to."""
        steps = self.model.env_steps
        due = steps // self.every > self._looked // self.every
        self._looked = steps
        if due:
            self._record()

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Films what has come of it, and closes the environment."""
        if self.model.env_steps > self._recorded:
            self._record()
        self._made.close()
        self._made = None

    def _record(self) -> None:
        """Plays, and writes the files."""
        steps = self._recorded = self.model.env_steps
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / f"step-{steps:08d}.{self.format}"
        play = films.Play(
            self._made, self._policy, self.episodes, self.seed, self.max_steps
        )
        frames = play.frames()
        if self.log_dir is None:
            films.write(path, frames, self.fps)
            return
        if self.format == "mp4":
            frames = films.writing_mp4(frames, path, self.fps)
        gif = films.encode_gif(frames, self.fps)
        if self.format == "gif":
            path.write_bytes(gif)
        self._write_summary(gif, steps)

    def _write_summary(self, gif: bytes, steps: int) -> None:
        """Writes the film for TensorBoard, over environment steps."""
        if self._writer is None:
            self._writer = tf.summary.create_file_writer(self.log_dir)
        width, height = Image.open(io.BytesIO(gif)).size
        image = tf.compat.v1.Summary.Image(
            height=height, width=width, colorspace=3, encoded_image_string=gif
        )
        value = tf.compat.v1.Summary.Value(tag="video/episode", image=image)
        summary = tf.compat.v1.Summary(value=[value]).SerializeToString()
        with self._writer.as_default():
            tf.summary.experimental.write_raw_pb(summary, steps)
        self._writer.flush()


class _GreedyPolicy:
    """What `agent.act(observation, deterministic=True)` chooses.

    `act` draws noise in either case, so that what is drawn from it after a
    `fit` would depend on the films.

    Args:
        agent: `keras_rl2.Agent`, bound to its spaces.
    """

    def __init__(self, agent: Any) -> None:
        self._agent = agent
        observation = tf.TensorSpec(
            (None, *agent.observation_shape), agent.observation_dtype
        )
        self._function = tf.function(
            lambda batch: agent.environment_action(batch),
            input_signature=[observation],
            autograph=False,
        )

    def __call__(self, observation: Any) -> Any:
        """Returns the action for one observation, as the space has it."""
        agent = self._agent
        batch = np.asarray(observation, agent.observation_dtype)[None]
        action = self._function(batch).numpy()
        return action.astype(agent.action_space.dtype, copy=False)[0]


def _check_at_least_one(**numbers: int) -> None:
    """Refuses numbers below 1."""
    for name, number in numbers.items():
        if not isinstance(number, int) or number < 1:
            raise ValueError(
                f"Expected `{name}` to be an integer of at least 1. "
                f"Received: {name}={number!r}"
            )


def _make(env: str | Callable[[], Any]) -> Any:
    """Makes the environment, which is to render arrays."""
    if isinstance(env, str):
        made = gymnasium.make(env, render_mode="rgb_array")
    elif callable(env):
        made = env()
    else:
        raise ValueError(
            "Expected `env` to be the id of an environment, or a function "
            f"that makes one. Received: env={env!r}"
        )
    mode = getattr(made, "render_mode", None)
    if mode != "rgb_array":
        raise ValueError(
            "Expected an environment made with render_mode='rgb_array'. "
            f"Received: {made} with render_mode={mode!r}"
        )
    return made
