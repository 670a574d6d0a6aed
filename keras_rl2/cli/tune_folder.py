"""Where a study keeps its files."""

import shutil
import urllib.parse
from pathlib import Path

from keras_rl2.cli.errors import CommandError
from keras_rl2.cli.run_folder import RunFolder
from keras_rl2.cli.run_folder import read_json_object
from keras_rl2.cli.run_folder import write_json

_SQLITE = "sqlite:///"


class TuneFolder:
    """The folder of one study: `LOGDIR/PPO-CartPole-v1`.

    Args:
        path: Path. The folder.

    Attributes:
        path: Path. The folder.
        journal: Path. The trials, unless they are kept elsewhere.
        study: Path. Says where they are kept.
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
        self.study = path / "study.json"
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

    def refuse_other(self, storage: str) -> None:
        """Refuses to write over what was found in trials of another storage.

        Args:
            storage: str. Where trials are kept: a URL, or a file.

        Raises:
            CommandError: If the folder is that of another one.
        """
        owner = self._owner()
        if owner is None or owner == self._name_of(storage):
            return
        raise CommandError(
            f"{self.path} holds what was found in trials that are kept in "
            f"{owner}, not in {self._name_of(storage)}: --study or --logdir "
            "keeps others apart"
        )

    def claim(self, storage: str) -> None:
        """Writes down where the trials are kept.

        Args:
            storage: str. As of `refuse_other`.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(self.study, {"storage": self._name_of(storage)})

    def _owner(self) -> str | None:
        """Returns where its trials are kept, None if there are none yet."""
        if self.study.is_file():
            return str(read_json_object(self.study).get("storage"))
        return self.journal.name if self.journal.is_file() else None

    def _name_of(self, storage: str) -> str:
        """Returns a name of a storage that is the same from everywhere."""
        if storage.startswith(_SQLITE):
            return _SQLITE + str(Path(storage.removeprefix(_SQLITE)).resolve())
        if "://" in storage:
            url = urllib.parse.urlsplit(storage)
            # A folder is shown to others, and no place for a password.
            host = url.netloc.rpartition("@")[2]
            return f"{url.scheme}://{host}{url.path}"
        path = Path(storage).resolve()
        # A folder may be moved with its journal.
        own = path == self.journal.resolve()
        return self.journal.name if own else str(path)

    def clear(self) -> None:
        """Removes what an earlier study wrote, but for its journal."""
        for file in (self.best, self.table, self.history, self.importance):
            file.unlink(missing_ok=True)
        shutil.rmtree(self.trials, ignore_errors=True)
