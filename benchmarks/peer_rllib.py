"""Runs RLlib's PPO on a case of `workers_vs_rllib.py`, prints one JSON line.

Runs in a virtual environment of its own (`ray[rllib]`, torch), never in this
project's: the other side of a ratio.
"""

import importlib.metadata
import json
import sys
import time
import warnings
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks.process_tree import PeakMemory


def main():
    warnings.filterwarnings("ignore")
    task = json.loads(sys.argv[1])

    import ray

    # A cluster of its own, even where another one runs on this machine.
    ray.init(
        "local",
        num_cpus=task["workers"],
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
    )
    try:
        result = train(task)
    finally:
        ray.shutdown()
    print(json.dumps(result))


def train(task):
    """Trains RLlib's agent, and returns what is compared."""
    import torch

    torch.set_num_threads(task["threads"])
    memory = PeakMemory()
    with memory:
        algorithm = config_of(task).build_algo()
        for _ in range(task["warm_up"]):
            result = algorithm.train()
    before = result["num_env_steps_sampled_lifetime"]
    start = time.perf_counter()
    for _ in range(task["rounds"]):
        result = algorithm.train()
    seconds = time.perf_counter() - start
    # Runners step all of their environments until there is enough: a round
    # may be a little more than was asked for.
    steps = result["num_env_steps_sampled_lifetime"] - before
    with memory:
        for _ in range(task["more"]):
            algorithm.train()
    played = play(algorithm.get_module(), task)
    # Its own moving averages at the end of the timed rounds.
    timers = result["timers"]
    algorithm.stop()
    return {
        "steps_per_second": steps / seconds,
        "steps": steps,
        "collecting_ms": 1e3 * timers["env_runner_sampling_timer"],
        "update_ms": 1e3 * timers["learner_update_timer"],
        **memory.result(),
        "return": played,
        "version": ", ".join(
            f"{name} {importlib.metadata.version(name)}"
            for name in ("ray", "torch", "gymnasium", "numpy")
        ),
    }


def config_of(task):
    """Returns RLlib's settings of a case; what is not named is its default."""
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    model = DefaultModelConfig(
        fcnet_hiddens=task["hidden"],
        fcnet_activation=task["activation"],
        vf_share_layers=False,
    )
    return (
        PPOConfig()
        .environment(task["env"])
        .env_runners(
            num_env_runners=task["workers"],
            num_envs_per_env_runner=task["envs"] // task["workers"],
            rollout_fragment_length=task["horizon"],
            gym_env_vectorize_mode=task["vectorization"],
        )
        # In this process, as ours.
        .learners(num_learners=0)
        .rl_module(model_config=model)
        .training(
            train_batch_size_per_learner=task["horizon"] * task["envs"],
            num_epochs=task["passes"],
            minibatch_size=task["batch_size"],
            lr=task["learning_rate"],
            gamma=task["gamma"],
            lambda_=task["gae_lambda"],
            clip_param=task["clip_ratio"],
            vf_loss_coeff=task["value_coefficient"],
            # No clipping of the value loss and no KL penalty: ours has none.
            vf_clip_param=float("inf"),
            use_kl_loss=False,
            entropy_coeff=0.0,
            grad_clip=task["max_gradient_norm"],
            grad_clip_by="global_norm",
        )
        .debugging(seed=task["seed"], log_level="ERROR")
    )


def play(module, task):
    """Returns the mean return of greedy episodes."""
    import gymnasium as gym
    import torch

    env = gym.make(task["env"])
    total = 0.0
    for episode in range(task["episodes"]):
        observation, _ = env.reset(seed=task["seed"] + 1000 + episode)
        over = False
        while not over:
            batch = {"obs": torch.from_numpy(observation)[None]}
            with torch.no_grad():
                logits = module.forward_inference(batch)["action_dist_inputs"]
            observation, reward, terminated, truncated, _ = env.step(
                int(logits.argmax())
            )
            total += float(reward)
            over = terminated or truncated
    env.close()
    return total / task["episodes"]


if __name__ == "__main__":
    main()
