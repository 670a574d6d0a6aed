"""The files of the command line in the folder of a training."""

import csv


def rows_of(folder):
    """Returns the rows of the table of progress, dicts of strings."""
    with open(folder / "progress.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
