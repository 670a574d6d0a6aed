"""What has been run of one preset or case, in a file."""

import importlib.metadata
import json
import os
import platform
from pathlib import Path

from benchmarks.preset_names import name_of

VERSIONS = ("tensorflow", "keras", "gymnasium", "numpy")


class Results:
    """Runs of both sides, by seed.

    Args:
        name: str. Of the preset or case.
        preset: dict. Its settings. Runs of other settings are forgotten.
        runs: dict of side, to dict of seed, to what a run printed.
    """

    def __init__(self, name, preset, runs):
        self.name = name
        self.preset = preset
        self.runs = runs

    @classmethod
    def read(cls, folder, preset):
        """Returns what was kept of a preset, or nothing."""
        return cls.of(folder, name_of(preset), plain(preset))

    @classmethod
    def of(cls, folder, name, settings):
        """Returns what was kept under a name with these settings."""
        path = folder / f"{name}.json"
        if path.is_file():
            kept = json.loads(path.read_text())
            if kept["preset"] == settings:
                return cls(name, settings, kept["runs"])
        return cls(name, settings, {})

    def has(self, side, seed):
        """Says whether a run was made."""
        return str(seed) in self.runs.get(side, {})

    def add(self, side, seed, run):
        """Adds a run, with what it was made on."""
        run = {"machine": machine(), **run}
        if "version" not in run:
            run["version"] = versions()
        self.runs.setdefault(side, {})[str(seed)] = run

    def write(self, folder):
        """Keeps the runs: all of them or, if interrupted, those before."""
        folder.mkdir(exist_ok=True)
        path = folder / f"{self.name}.json"
        new = path.with_suffix(".new")
        new.write_text(
            json.dumps(
                {
                    "name": self.name,
                    "preset": self.preset,
                    "runs": {
                        side: dict(
                            sorted(runs.items(), key=lambda x: int(x[0]))
                        )
                        for side, runs in sorted(self.runs.items())
                    },
                },
                indent=1,
            )
            + "\n"
        )
        os.replace(new, path)


def plain(preset):
    """Returns the settings of a preset that make a difference to a run."""
    told = ("laptop", "source", "notes")
    settings = {k: v for k, v in preset.to_dict().items() if k not in told}
    return json.loads(json.dumps(settings))


def versions():
    """Returns the versions of what ours is built on, in one line."""
    return ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in VERSIONS
    )


def machine():
    """Returns what the machine is, in one line."""
    model = platform.processor() or platform.machine()
    cpus = Path("/proc/cpuinfo")
    if cpus.is_file():
        for line in cpus.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return f"{model}, {os.cpu_count()} cores, {platform.system()}"
