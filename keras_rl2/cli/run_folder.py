"""The folder of a training's files."""

import argparse
import json
import os
import re
from pathlib import Path
from typing import Any

from keras_rl2.presets.preset import read_object
from keras_rl2.saving.atomic_files import replacing


class RunFolder:
    """The folder of one training: `LOGDIR/PPO-CartPole-v1/seed-0`.

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

    >>> RunFolder("runs/PPO-CartPole-v1/seed-0").agent.as_posix()
    'runs/PPO-CartPole-v1/seed-0/agent.keras'
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
    def holding(cls, path: str | os.PathLike[str]) -> tuple["RunFolder", Path]:
        """Finds a saved agent by its file, or the best one of a folder."""
        path = require_path(path)
        if path.is_file():
            return cls(path.parent), path
        folder = cls(path)
        if folder.best.is_file():
            return folder, folder.best
        if not folder.agent.is_file():
            seeds = sorted(path.glob("seed-*"))
            instead = f", but {seeds[0]} may" if seeds else ""
            raise FileNotFoundError(f"{path}: holds no agent.keras{instead}")
        return folder, folder.agent

    @property
    def holds_checkpoint(self) -> bool:
        """Whether it has a checkpoint, from which training resumes exactly."""
        return any(self.checkpoints.glob(f"checkpoint-{'[0-9]' * 8}*"))

    def environment(
        self, arguments: argparse.Namespace
    ) -> tuple[str, dict[str, Any]]:
        """Returns the environment to play the agent in."""
        env_id, env_kwargs = arguments.env, dict(arguments.env_kwargs)
        preset = read_if_exists(self.preset)
        training_env_id = preset.get("environment")
        if env_id is None and training_env_id is None:
            raise ValueError(
                f"{self.preset} names no environment that the agent "
                "was trained in: give one with --env"
            )
        if env_id not in (None, training_env_id):
            return env_id, env_kwargs
        return str(training_env_id), preset.get("env_kwargs", {}) | env_kwargs

    def clear(self) -> None:
        """Removes the files of an earlier training, and nothing else."""
        # It imports NumPy, which most commands do not need.
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


def run_name(algorithm: str, environment: str) -> str:
    """Returns the name of trainings, fit for a path.

    Example:

    >>> run_name("PPO", "ALE/Pong-v5")
    'PPO-ALE_Pong-v5'
    """
    return re.sub(r"[^\w.-]", "_", f"{algorithm}-{environment}")


def require_path(path: str | os.PathLike[str]) -> Path:
    """Returns a path; raises a `FileNotFoundError` if there is nothing."""
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: no such file or folder")
    return Path(path)


def read_if_exists(path: Path) -> dict[str, Any]:
    """Reads a file of a JSON object; returns an empty dict if there is none."""
    return read_object(path) if path.is_file() else {}


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Writes a file of JSON, replacing the existing one atomically."""
    text = json.dumps(value, indent=2)
    with replacing(path) as unfinished:
        unfinished.write_text(text + "\n", encoding="utf-8")
