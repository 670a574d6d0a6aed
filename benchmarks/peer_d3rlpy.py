"""Runs d3rlpy on a case of `offline.py` and prints one JSON line.

Runs in a virtual environment of its own (torch, d3rlpy), never in this
project's: the other side of a ratio.
"""

import contextlib
import io
import json
import statistics
import sys
import time
import warnings
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))


def main():
    warnings.filterwarnings("ignore")
    task = json.loads(sys.argv[1])
    # It reports each epoch there, and we print one line.
    with contextlib.redirect_stdout(io.StringIO()):
        result = train(task)
    print(json.dumps(result))


def train(task):
    """Trains d3rlpy's agent, and returns what is compared."""
    import d3rlpy
    import numpy as np
    import torch

    from support import recorded_tasks

    torch.set_num_threads(1)
    d3rlpy.seed(task["seed"])
    arrays = dict(np.load(task["path"]))
    discrete = arrays["actions"].dtype.kind in "iu"
    kind = d3rlpy.constants.ActionSpace
    dataset = d3rlpy.dataset.MDPDataset(
        arrays["observations"].astype("float32"),
        arrays["actions"].reshape(len(arrays["actions"]), -1),
        arrays["rewards"].astype("float32"),
        arrays["terminations"].astype("float32"),
        arrays["truncations"].astype("float32"),
        action_space=kind.DISCRETE if discrete else kind.CONTINUOUS,
    )
    agent = config_of(task, discrete).create(device=False)

    def policy(observation):
        return agent.predict(observation.astype("float32"))

    seconds, curve = [], []
    start = time.perf_counter()
    for epoch, _ in agent.fitter(
        dataset,
        task["updates"],
        task["updates_per_epoch"],
        logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
        show_progress=False,
    ):
        seconds.append(time.perf_counter() - start)
        scored = recorded_tasks.score(task["env"], arrays, policy)
        curve.append([task["updates_per_epoch"] * epoch, scored["return"]])
        start = time.perf_counter()
    per_epoch = statistics.mean(seconds[1:])
    return {
        **scored,
        "updates_per_second": task["updates_per_epoch"] / per_epoch,
        "curve": curve,
        "version": d3rlpy.__version__,
    }


def config_of(task, discrete):
    """Returns d3rlpy's settings of a case."""
    import d3rlpy

    settings = dict(task["peer"])
    scaling = d3rlpy.preprocessing
    if settings.pop("scales", False):
        settings["observation_scaler"] = scaling.StandardObservationScaler()
    if not discrete:
        settings["action_scaler"] = scaling.MinMaxActionScaler()
    encoder = d3rlpy.models.VectorEncoderFactory(hidden_units=task["hidden"])
    rate = task["learning_rate"]
    if task["algorithm"] == "BehaviorCloning":
        names = {
            "BehaviorCloning": "DiscreteBCConfig" if discrete else "BCConfig"
        }
        settings |= {"learning_rate": rate, "encoder_factory": encoder}
    elif discrete:
        names = {"CQL": "DiscreteCQLConfig", "DQN": "DoubleDQNConfig"}
        settings |= {"learning_rate": rate, "encoder_factory": encoder}
    else:
        names = {
            "CQL": "CQLConfig",
            "IQL": "IQLConfig",
            "TD3BC": "TD3PlusBCConfig",
        }
        settings |= {
            "actor_learning_rate": rate,
            "critic_learning_rate": rate,
            "actor_encoder_factory": encoder,
            "critic_encoder_factory": encoder,
        }
        if task["algorithm"] == "CQL":
            settings["temp_learning_rate"] = rate
        if task["algorithm"] == "IQL":
            settings["value_encoder_factory"] = encoder
        if task.get("falls"):
            settings["actor_optim_factory"] = falling(task["updates"])
    config = getattr(d3rlpy.algos, names[task["algorithm"]])
    return config(batch_size=task["batch_size"], **settings)


def falling(updates):
    """Returns what makes an optimizer whose rate falls to 0 by a cosine."""
    from d3rlpy import optimizers

    return optimizers.AdamFactory(
        lr_scheduler_factory=optimizers.CosineAnnealingLRFactory(updates)
    )


if __name__ == "__main__":
    main()
