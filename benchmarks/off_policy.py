"""Off-policy tasks: as our agent and replay, and as a peer's arguments.

A task is a dict as in `tasks.py`.
"""

ALGORITHMS = ("DQN", "SAC", "TD3", "DDPG")
# Rounds of so few steps are made longer, with as many updates for a step.
SHORT_ROUND = 4
STEPS_PER_ROUND = 64
# Of every agent of Stable-Baselines3.
ADAM_EPSILON = 1e-8


# What defaults of ours add to the algorithms as published.
AS_THE_PEER = {
    "DQN": {"double": False, "normalization": "none"},
    "SAC": {"noise_color": "white"},
}


def make(task, seed, exact=False):
    """Makes what `fit` takes.

    Args:
        task: dict. The settings.
        seed: int. Of the agent and the replay.
        exact: bool. Whether rounds are as short as published. Defaults to
            `False`.

    Returns:
        agent, replay, callbacks.
    """
    import gymnasium as gym
    import keras

    import keras_rl2 as rl

    env = gym.make_vec(
        task["env"], num_envs=task["envs"], vectorization_mode="sync"
    )
    steps, updates = round_size(task, exact)
    replay = rl.ReplayDataset(
        env,
        capacity=task["capacity"],
        batch_size=task["batch_size"],
        steps_per_round=steps,
        updates_per_round=updates,
        warm_up=task["warm_up"],
        # An epoch of a thousand steps: Keras' own work is not hidden.
        rounds_per_epoch=max(1000 // steps, 1),
        seed=seed,
    )
    agent = getattr(rl, task["algorithm"]).for_env(
        env,
        hidden=tuple(task["hidden"]),
        activation="relu",
        gamma=task["gamma"],
        seed=seed,
        **agent_settings(task),
    )
    agent.compile(
        keras.optimizers.Adam(task["learning_rate"], epsilon=ADAM_EPSILON)
    )
    return agent, replay, target_syncs(task)


def agent_settings(task):
    """Returns the arguments that only some agents have."""
    import keras

    settings = dict(AS_THE_PEER.get(task["algorithm"], {}))
    if "epsilon" in task:
        fraction, final = task["epsilon"]
        settings["epsilon"] = keras.optimizers.schedules.PolynomialDecay(
            1.0, int(fraction * task["steps"]), final
        )
    if "temperature" in task:
        settings["temperature"] = task["temperature"]
        settings["learn_temperature"] = False
    for name in ("exploration", "max_gradient_norm"):
        if name in task:
            settings[name] = task[name]
    return settings


def target_syncs(task):
    """Returns the callbacks that keep the target networks up to date.

    None where the task leaves it to the algorithm: `fit` inserts its own.
    """
    import keras_rl2 as rl

    if "target_update_interval" in task:
        every = updates_between_syncs(task)
        return [rl.callbacks.TargetNetworkSync(every=every)]
    if "tau" in task:
        return [rl.callbacks.TargetNetworkSync(tau=task["tau"])]
    return []


def round_size(task, exact=False):
    """Returns the steps and updates of a round of ours."""
    steps = task["steps_per_round"] * task["envs"]
    short = steps <= SHORT_ROUND and not exact
    factor = STEPS_PER_ROUND // steps if short else 1
    return steps * factor, task["updates_per_round"] * factor


def updates_between_syncs(task):
    """Returns how many updates an interval in environment steps stands for.

    Stable-Baselines3 copies the weights while it collects. Several copies
    without an update between them are one.
    """
    steps = task["steps_per_round"] * task["envs"]
    interval = max(task["target_update_interval"], steps)
    return interval * task["updates_per_round"] // steps


def peer_settings(task, library="sb3"):
    """Returns the constructor arguments of a peer, `"sb3"` or `"sbx"`."""
    settings = {
        "gamma": task["gamma"],
        "learning_rate": task["learning_rate"],
        "buffer_size": task["capacity"],
        "batch_size": task["batch_size"],
        "learning_starts": task["warm_up"],
        "train_freq": task["steps_per_round"],
        "gradient_steps": task["updates_per_round"],
        "policy_kwargs": {"net_arch": list(task["hidden"])},
    }
    if "epsilon" in task:
        fraction, final = task["epsilon"]
        settings["exploration_fraction"] = fraction
        settings["exploration_final_eps"] = final
    for ours, theirs in (
        ("target_update_interval", "target_update_interval"),
        ("exploration", "noise"),
        ("temperature", "ent_coef"),
        ("tau", "tau"),
        ("max_gradient_norm", "max_grad_norm"),
    ):
        if ours in task:
            settings[theirs] = task[ours]
    if library == "sbx":
        # It does not clip gradients.
        settings.pop("max_grad_norm", None)
    return settings
