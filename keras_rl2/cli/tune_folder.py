"""Where a study keeps its files."""

import shutil
from pathlib import Path

from keras_rl2.cli.run_folder import RunFolder


class TuneFolder:
    """The folder of one study: `LOGDIR/PPO-CartPole-v1`.

    Args:
        path: Path. The folder.

    Attributes:
        path: Path. The folder.
        journal: Path. The trials, unless they are kept elsewhere.
        best: Path. The preset of the best trial.
        table: Path. All trials, one row each.
        history: Path. Picture of how the search went.
        importance: Path. Picture of what mattered.
        trials: Path. Folders of trainings.

    Example:

    >>> TuneFolder(Path("tuning/PPO-CartPole-v1")).run(7, 0).path.as_posix()
    'tuning/PPO-CartPole-v1/trials/0007/seed-0'
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = path / "study.journal"
        self.best = path / "best.json"
        self.table = path / "trials.csv"
        self.history = path / "history.png"
        self.importance = path / "importance.png"
        self.trials = path / "trials"

    def run(self, trial: int, seed: int) -> RunFolder:
        """Returns the folder of one training; makes nothing.

        Args:
            trial: int. Its number.
            seed: int. Of the training.

        Returns:
            `RunFolder`.
        """
        return RunFolder(self.trials / f"{trial:04d}" / f"seed-{seed}")

    def clear(self) -> None:
        """Removes what an earlier study wrote, but for its journal."""
        for file in (self.best, self.table, self.history, self.importance):
            file.unlink(missing_ok=True)
        shutil.rmtree(self.trials, ignore_errors=True)
