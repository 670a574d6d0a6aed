"""Makes pictures of the home page and of command_line.md.

    python benchmarks/site_pictures.py

trains PPO on CartPole-v1, by the example and by the command: some minutes on
two cores. Scripts in `benchmarks`, named beside the other pictures, make
those.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def make(folder: Path) -> None:
    """Trains, draws and records.

    Args:
        folder: path. Where runs are kept meanwhile.
    """
    _python(folder, str(ROOT / "examples" / "ppo_cartpole.py"))
    [curve] = folder.glob("runs/*/learning_curve.png")
    (DOCS / "ppo_cartpole.png").write_bytes(curve.read_bytes())
    logs = ("--logdir", "logs")
    _command(folder, "train", "ppo", "CartPole-v1", "--seeds", "3", *logs)
    picture = str(DOCS / "command_line_plot.png")
    _command(folder, "plot", "logs", "--output", picture)
    run = "logs/PPO-CartPole-v1/seed-0"
    film = str(DOCS / "ppo_cartpole.gif")
    _command(folder, "record", run, "--max-steps", "150", "--output", film)


def _command(folder: Path, *arguments: str) -> None:
    """Runs `keras-rl2` in a folder."""
    _python(folder, "-m", "keras_rl2.cli", *arguments)


def _python(folder: Path, *arguments: str) -> None:
    """Runs a Python program in a folder."""
    subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        make(Path(work))
