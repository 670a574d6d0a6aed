"""Trains one preset on one seed and prints one JSON line.

    python benchmarks/preset_run.py dqn-CartPole-v1 --seed 0

Our side of a row of BENCHMARKS.md, in a process of its own, so that its memory
is that of one training.
"""

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks.peer_sb3 import peak_rss_mib
from benchmarks.preset_names import preset_of

EPISODES = 20


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("preset", type=preset_of)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--evaluate", type=int, default=EPISODES)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()

    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    tf.config.threading.set_inter_op_parallelism_threads(arguments.threads)

    from keras_rl2.cli.training import Training

    preset = arguments.preset
    training = Training.from_preset(preset, seed=arguments.seed)
    agent = training.agent
    start = time.perf_counter()
    training.run()
    seconds = time.perf_counter() - start
    result = agent.evaluate(
        preset.environment,
        episodes=arguments.evaluate,
        seed=arguments.seed + 1000,
    )
    line = {
        "steps_per_second": agent.env_steps / seconds,
        "return": result["episode_return"],
        "peak_rss_mib": peak_rss_mib(),
    }
    print(json.dumps({key: float(value) for key, value in line.items()}))


if __name__ == "__main__":
    main()
