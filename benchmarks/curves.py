"""Learning curves that were run, in a file for each kind of training."""

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "results" / "curves"


def kept(name):
    """Returns what has been run under a name, by seeds."""
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def keep(name, seed, run):
    """Keeps a run, and prints what it says beside its curve."""
    runs = {**kept(name), str(seed): run}
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(runs, indent=1) + "\n")
    told = {key: value for key, value in run.items() if key != "curve"}
    print(name, seed, told, flush=True)


def curve_of(history, key):
    """Returns pairs of environment steps and what was logged of each epoch."""
    pairs = zip(history["env_steps"], history[key], strict=True)
    return [[int(steps), round(float(value), 2)] for steps, value in pairs]
