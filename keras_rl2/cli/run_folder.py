"""The folder of a training's files."""

import json
import os
import re
from pathlib import Path
from typing import Any

from keras_rl2.cli.errors import CommandError
from keras_rl2.saving.atomic_files import replacing
from keras_rl2.saving.plain_files import read_json

#: Help of the argument of commands that take a saved agent.
AGENT_PATH_HELP = (
    "a .keras file, or the folder of a training: its best.keras, or its "
    "agent.keras where there is no best one"
)


class RunFolder:
    """The folder of one training: `LOGDIR/PPO-CartPole-v1/seed-0`.

    Args:
        path: str or path. The folder.

    Attributes:
        path: Path. The folder.
        agent: Path. The agent at the end of training, `agent.keras`.
        best: Path. The agent with the best evaluation, `best.keras`.
        score: Path. Its evaluation, `best.json`.
        preset: Path. The settings of the training, `preset.json`.
        progress: Path. The logs of epochs, `progress.csv`.
        checkpoints: Path. The complete state of the training, a folder of
            `keras_rl2.callbacks.Checkpoint`.

    Example:

    >>> RunFolder.of("runs", "PPO", "ALE/Pong-v5", seed=3).path.as_posix()
    'runs/PPO-ALE_Pong-v5/seed-3'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.agent = self.path / "agent.keras"
        self.best = self.path / "best.keras"
        self.score = self.path / "best.json"
        self.preset = self.path / "preset.json"
        self.progress = self.path / "progress.csv"
        self.checkpoints = self.path / "checkpoints"

    @classmethod
    def of(
        cls,
        logdir: str | os.PathLike[str],
        algorithm: str,
        environment: str,
        seed: int,
    ) -> "RunFolder":
        """Returns the folder of a training; makes nothing.

        Args:
            logdir: str or path. Folder of all trainings.
            algorithm: str. Its name, `"PPO"`.
            environment: str. Its id; characters unfit for a path are replaced.
            seed: int. Seed of the training.

        Returns:
            `RunFolder`.
        """
        name = re.sub(r"[^\w.-]", "_", f"{algorithm}-{environment}")
        return cls(Path(logdir) / name / f"seed-{seed}")

    @classmethod
    def holding(cls, path: str | os.PathLike[str]) -> tuple["RunFolder", Path]:
        """Finds a saved agent by its file or by its folder.

        Args:
            path: str or path. A `.keras` file; or the folder of a training,
                for its best agent, or `agent.keras` if there is no best agent.

        Returns:
            tuple: the `RunFolder`, and the Path of the agent's file.

        Raises:
            FileNotFoundError: If there is no such file.
        """
        path = Path(path)
        if path.is_file():
            return cls(path.parent), path
        folder = cls(path)
        if not path.is_dir():
            raise FileNotFoundError(f"{path}: no such file or folder")
        if folder.best.is_file():
            return folder, folder.best
        if not folder.agent.is_file():
            below = sorted(path.rglob("agent.keras"))
            hint = f"; there is {below[0]}" if below else ""
            raise FileNotFoundError(f"{path}: holds no agent.keras{hint}")
        return folder, folder.agent

    @property
    def holds_training(self) -> bool:
        """Whether it has an agent, or a checkpoint of one."""
        return self.agent.is_file() or self.holds_checkpoint

    @property
    def holds_checkpoint(self) -> bool:
        """Whether it has a checkpoint, from which training resumes exactly."""
        return any(self.checkpoints.glob(f"checkpoint-{'[0-9]' * 8}*"))

    def read_preset(self) -> dict[str, Any]:
        """Reads the settings of the training.

        Returns:
            dict: as written by `write_preset`.

        Raises:
            FileNotFoundError: If there is no preset.json.
            CommandError: If it is not a JSON object.
        """
        return read_json_object(self.preset)

    def environment(
        self, asked: str | None = None, env_kwargs: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Returns the environment to play the agent in.

        Args:
            asked: str or None. The id of `--env`; None for the one
                that the agent was trained in. Defaults to `None`.
            env_kwargs: dict or None. Arguments of `--env-kwargs`. They are
                added to the arguments of the training, if the environment is
                the same. Defaults to `None`.

        Returns:
            tuple: the id, and the arguments of the environment.

        Raises:
            CommandError: If its environment is unknown.
        """
        try:
            preset = self.read_preset()
            trained = str(preset["environment"])
        except (FileNotFoundError, KeyError):
            if asked is None:
                raise CommandError(
                    f"{self.preset} names no environment that the agent "
                    "was trained in: give one with --env"
                ) from None
            return asked, env_kwargs or {}
        if asked not in (None, trained):
            return str(asked), env_kwargs or {}
        return trained, preset.get("env_kwargs", {}) | (env_kwargs or {})

    def write_preset(self, preset: dict[str, Any]) -> None:
        """Writes the settings of the training, as JSON."""
        write_json(self.preset, preset)

    def clear(self) -> None:
        """Removes the files of an earlier training, and nothing else.

        Raises:
            ValueError: If it is running; nothing is removed then.
        """
        # Not sooner: it imports NumPy.
        from keras_rl2.saving.checkpoint_folder import CheckpointFolder

        CheckpointFolder(self.checkpoints).clear()
        for pattern in (
            "agent*.keras",
            "best*.keras",
            "best.json",
            "preset.json",
            "progress.csv",
            "events.out.tfevents.*",
        ):
            for file in self.path.glob(pattern):
                file.unlink()


def read_json_object(path: Path) -> dict[str, Any]:
    """Reads a file that holds a JSON object.

    Args:
        path: Path. The file.

    Returns:
        dict: the object.

    Raises:
        FileNotFoundError: If there is no such file.
        CommandError: If it is anything else.
    """
    try:
        value = read_json(path)
    except ValueError as error:
        raise CommandError(str(error)) from error
    if not isinstance(value, dict):
        raise CommandError(f"{path}: expected a JSON object")
    return value


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Writes a file of JSON, replacing the existing one atomically.

    Args:
        path: Path. The file.
        value: dict. Plain data.

    Raises:
        OSError: If it cannot be written; the existing file is kept then.
    """
    text = json.dumps(value, indent=2)
    with replacing(path) as unfinished:
        unfinished.write_text(text + "\n", encoding="utf-8")
