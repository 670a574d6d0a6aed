"""A preset as the arguments of Stable-Baselines3."""

from benchmarks import peers

# Rounds of 64 and 64 are our form of what was published with fewer steps and
# as many updates, which the peer is given.
OUR_ROUND = 64
PUBLISHED_ROUND = {"DQN": 4, "SAC": 1, "TD3": 1}
ACTIVATIONS = {"relu": "ReLU", "tanh": "Tanh"}
AGENT_SETTINGS = {
    "gamma": "gamma",
    "gae_lambda": "gae_lambda",
    "entropy_coefficient": "ent_coef",
    "value_coefficient": "vf_coef",
    "max_gradient_norm": "max_grad_norm",
    "normalize_advantages": "normalize_advantage",
    "clip_ratio": "clip_range",
    "policy_delay": "policy_delay",
    "smoothing": "target_policy_noise",
}


def command(python, preset, seed, threads, evaluate):
    """Returns the command that trains the peer as a preset says.

    Args:
        python: str. The Python that has Stable-Baselines3.
        preset: `Preset`. The settings.
        seed: int. Of agent and environment.
        threads: int. Of torch.
        evaluate: int. Greedy episodes at the end.

    Returns:
        list of str.
    """
    flags = {
        "norm-observation": preset.networks.get("normalize_observations"),
        "norm-reward": preset.dataset.get("scale_rewards"),
    }
    return peers.peer_command(
        python,
        preset.algorithm,
        preset.environment,
        settings(preset),
        *(name for name, wanted in flags.items() if wanted),
        envs=preset.num_envs,
        steps=preset.total_steps,
        seed=seed,
        evaluate=evaluate,
        threads=threads,
    )


def settings(preset):
    """Returns the peer's constructor arguments."""
    on_policy = preset.algorithm in ("PPO", "A2C")
    rounds = on_policy_rounds(preset) if on_policy else replay_rounds(preset)
    result = {
        theirs: preset.agent[ours]
        for ours, theirs in AGENT_SETTINGS.items()
        if ours in preset.agent and applies(preset, ours)
    }
    policy = {
        "net_arch": list(preset.networks["hidden"]),
        "activation_fn": ACTIVATIONS[preset.networks["activation"]],
    }
    if preset.networks.get("initialization") == "fan_in":
        policy["ortho_init"] = False
    if "initial_log_std" in preset.agent:
        policy["log_std_init"] = preset.agent["initial_log_std"]
    log_std = preset.networks.get("state_dependent_noise", False)
    if log_std is not False:
        policy["log_std_init"] = -3.0 if log_std is True else log_std
        result["use_sde"] = True
        every = preset.networks.get("resample_every")
        result["sde_sample_freq"] = -1 if every is None else every
    return {
        **result,
        **rounds,
        "learning_rate": preset.optimizer["learning_rate"],
        "policy_kwargs": policy,
    }


def applies(preset, setting):
    """Says whether the peer has a setting: A2C's has no KL, for example."""
    if setting == "max_gradient_norm":
        return preset.algorithm in ("PPO", "A2C", "DQN")
    return True


def on_policy_rounds(preset):
    """Returns the arguments of rollouts."""
    result = {"n_steps": preset.dataset["horizon"]}
    if preset.algorithm == "PPO":
        result["n_epochs"] = preset.dataset["passes"]
        result["batch_size"] = preset.dataset["batch_size"]
    return result


def replay_rounds(preset):
    """Returns the arguments of replay, exploration and target networks."""
    dataset = preset.dataset
    steps, updates = dataset["steps_per_round"], dataset["updates_per_round"]
    if steps == updates == OUR_ROUND:
        steps = updates = PUBLISHED_ROUND[preset.algorithm]
    result = {
        "buffer_size": dataset["capacity"],
        "batch_size": dataset["batch_size"],
        "learning_starts": dataset["warm_up"],
        "train_freq": steps // preset.num_envs,
        "gradient_steps": updates,
    }
    if preset.algorithm == "DQN":
        epsilon = preset.agent["epsilon"]
        result["exploration_fraction"] = epsilon["fraction"]
        result["exploration_final_eps"] = epsilon["final"]
        result["exploration_initial_eps"] = epsilon["initial"]
        # It counts environment steps there, and updates here.
        result["target_update_interval"] = (
            preset.agent["target_every"] * steps // updates
        )
    elif "tau" in preset.agent:
        result["tau"] = preset.agent["tau"]
    if preset.agent.get("learn_temperature") is False:
        result["ent_coef"] = preset.agent["temperature"]
    if "exploration" in preset.agent:
        result["noise"] = preset.agent["exploration"]
    return result
