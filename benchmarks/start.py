"""Measures short trainings, the first ones and those made again in a process.

    python benchmarks/start.py [--peer VENV/bin/python]

Each training has all defaults. `first` is the processor time of a whole
process, without its imports, beside Stable-Baselines3 in turn; `again` that of
the same training made four times more in the process, and the resident memory
that each of these leaves. All are medians.
"""

import ctypes
import gc
import json
import os
import statistics
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks import peers

CASES = {
    "PPO": ("CartPole-v1", 20_000),
    "DQN": ("CartPole-v1", 5_000),
    "SAC": ("Pendulum-v1", 2_000),
}
AGAIN = 4


def main():
    arguments = peers.parse_cases(__doc__, CASES)
    if arguments.side:
        side = ours if arguments.side == "ours" else peer
        print(json.dumps(side(arguments.only[0])))
        return
    for name in arguments.only:
        results = peers.run_case(__file__, name, arguments)
        print(f"{name}, {CASES[name][1]} steps of {CASES[name][0]}")
        for library, each in results.items():
            print(f"  {library}", end="")
            for key in each[0]:
                value = statistics.median(row[key] for row in each)
                print(f"  {key} {value:.2f}", end="")
            print(flush=True)


def ours(name):
    """Returns what trainings of this library take."""
    import keras_rl2 as rl

    env, steps = CASES[name]
    seconds, kept = [], []
    for _ in range(1 + AGAIN):
        before, start = resident_mib(), time.process_time()
        agent = getattr(rl, name).for_env(env, seed=0)
        kind = rl.RolloutDataset if agent.on_policy else rl.ReplayDataset
        agent.fit(kind(env, seed=0), total_steps=steps, verbose=0)
        seconds.append(time.process_time() - start)
        del agent
        gc.collect()
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        kept.append(resident_mib() - before)
    return {
        "first_s": seconds[0],
        "again_s": statistics.median(seconds[1:]),
        "again_mib": statistics.median(kept[1:]),
    }


def peer(name):
    """Returns what a training of Stable-Baselines3 takes."""
    import stable_baselines3 as sb3

    env, steps = CASES[name]
    start = time.process_time()
    getattr(sb3, name)("MlpPolicy", env, device="cpu").learn(steps)
    return {"first_s": time.process_time() - start}


def resident_mib():
    """Returns the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text("utf-8").split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


if __name__ == "__main__":
    main()
