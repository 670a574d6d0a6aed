"""Names here of the arguments of other libraries.

Keys are names from Stable-Baselines3, CleanRL, TF-Agents, keras-rl and Keras,
or names of this library that people look for in the wrong place; values name
the place of the argument here, with a note.
"""

import re
from collections.abc import Collection
from typing import NamedTuple


class Answer(NamedTuple):
    """The place of an argument.

    Args:
        ours: tuple of str. `"PPO(clip_ratio)"` is the argument `clip_ratio` of
            `PPO`; without an argument it is a class or a method.
        note: str. A hint for its use. Defaults to `""`.
    """

    ours: tuple[str, ...]
    note: str = ""


_OPTIMIZER = Answer(
    ("compile(optimizer)",),
    "`agent.compile(keras.optimizers.Adam(learning_rate))` sets it",
)
_EPSILON = Answer(
    ("DQN(epsilon)",),
    "a Keras schedule over environment steps can make it fall",
)
_HORIZON = ("RolloutDataset(horizon)",)
_PASSES = Answer(("RolloutDataset(passes)",))
_ENTROPY = ("PPO(entropy_coefficient)", "SAC(temperature)")
_CAPACITY = Answer(("ReplayDataset(capacity)",))
_WARM_UP = Answer(("ReplayDataset(warm_up)",))
_STEPS = Answer(("fit(total_steps)",))
_NORM = Answer(("PPO(max_gradient_norm)",))
_NETWORKS = Answer(("for_env(hidden)", "for_env(activation)"))
_NO_SDE = Answer((), "there is no state-dependent exploration")
_TARGET_EVERY = Answer(("DQN(target_every)",), "it counts updates")

FOREIGN: dict[str, Answer] = {
    # Stable-Baselines3.
    "action_noise": Answer(("TD3(exploration)",)),
    "activation_fn": Answer(("for_env(activation)",)),
    "buffer_size": _CAPACITY,
    "clip_range": Answer(("PPO(clip_ratio)",)),
    "clip_range_vf": Answer(("PPO(value_clip_range)",)),
    "device": Answer((), "TensorFlow chooses; see `tf.device`"),
    "ent_coef": Answer(_ENTROPY),
    "exploration_final_eps": _EPSILON,
    "exploration_fraction": _EPSILON,
    "exploration_initial_eps": _EPSILON,
    "gradient_steps": Answer(("ReplayDataset(updates_per_round)",)),
    "learning_rate": _OPTIMIZER,
    "learning_starts": _WARM_UP,
    "log_std_init": Answer(("PPO(initial_log_std)",)),
    "max_grad_norm": _NORM,
    "n_envs": Answer(("RolloutDataset(num_envs)",)),
    "n_epochs": _PASSES,
    "n_eval_episodes": Answer(("evaluate(episodes)",)),
    "n_quantiles": Answer(("DQN(atoms)",)),
    "n_steps": Answer((*_HORIZON, "ReplayDataset(n_step)")),
    "net_arch": _NETWORKS,
    "normalize_advantage": Answer(("PPO(normalize_advantages)",)),
    "optimize_memory_usage": Answer(
        (), "each observation is always stored once"
    ),
    "policy_kwargs": _NETWORKS,
    "replay_buffer_class": Answer(("ReplayDataset(prioritized)",)),
    "replay_buffer_kwargs": Answer(("ReplayDataset(capacity)",)),
    "rms_prop_eps": _OPTIMIZER,
    "rollout_buffer_class": Answer(("RolloutDataset",)),
    "rollout_buffer_kwargs": Answer(("RolloutDataset",)),
    "sde_sample_freq": _NO_SDE,
    "stats_window_size": Answer((), "means are over the last 100 episodes"),
    "target_policy_noise": Answer(("TD3(target_noise)",)),
    "target_update_interval": _TARGET_EVERY,
    "tensorboard_log": Answer(("callbacks.TensorBoard",)),
    "train_freq": Answer(("ReplayDataset(steps_per_round)",)),
    "use_rms_prop": _OPTIMIZER,
    "use_sde": _NO_SDE,
    "use_sde_at_warmup": _NO_SDE,
    "vf_coef": Answer(("PPO(value_coefficient)",)),
    # CleanRL.
    "anneal_lr": _OPTIMIZER,
    "autotune": Answer(("SAC(learn_temperature)",)),
    "clip_coef": Answer(("PPO(clip_ratio)",)),
    "clip_vloss": Answer(("PPO(value_clip_range)",)),
    "end_e": _EPSILON,
    "exploration_noise": Answer(("TD3(exploration)",)),
    "n_atoms": Answer(("DQN(atoms)",)),
    "noise_clip": Answer(("TD3(target_noise_clip)",)),
    "norm_adv": Answer(("PPO(normalize_advantages)",)),
    "num_minibatches": Answer(
        ("RolloutDataset(batch_size)",),
        "a size, horizon times num_envs divided by the number of minibatches",
    ),
    "num_steps": Answer(_HORIZON),
    "policy_frequency": Answer(("TD3(policy_delay)",)),
    "policy_lr": _OPTIMIZER,
    "policy_noise": Answer(("TD3(target_noise)",)),
    "q_lr": Answer(("compile(critic_optimizer)",)),
    "start_e": _EPSILON,
    "target_network_frequency": _TARGET_EVERY,
    "total_timesteps": _STEPS,
    "train_frequency": Answer(("ReplayDataset(updates_per_round)",)),
    "update_epochs": _PASSES,
    "v_max": Answer(("DQN(support)",)),
    "v_min": Answer(("DQN(support)",)),
    # TF-Agents.
    "actor_net": Answer(("PPO(actor)",)),
    "actor_optimizer": Answer(("compile(optimizer)",)),
    "boltzmann_temperature": _EPSILON,
    "collect_episodes_per_iteration": Answer(("RolloutDataset(num_envs)",)),
    "collect_steps_per_iteration": Answer(("ReplayDataset(steps_per_round)",)),
    "critic_network": Answer(("SAC(critic)",)),
    "discount_factor": Answer(("PPO(gamma)",)),
    "entropy_regularization": Answer(_ENTROPY),
    "epsilon_greedy": Answer(("DQN(epsilon)",)),
    "gradient_clipping": _NORM,
    "importance_ratio_clipping": Answer(("PPO(clip_ratio)",)),
    "initial_collect_steps": _WARM_UP,
    "lambda_value": Answer(("PPO(gae_lambda)",)),
    "log_prob_clipping": Answer(("PPO(clip_ratio)",)),
    "n_step_update": Answer(("ReplayDataset(n_step)",)),
    "normalize_rewards": Answer(("RolloutDataset(scale_rewards)",)),
    "num_epochs": _PASSES,
    "num_eval_episodes": Answer(("evaluate(episodes)",)),
    "num_iterations": _STEPS,
    "replay_buffer_capacity": _CAPACITY,
    "replay_buffer_max_length": _CAPACITY,
    "reward_scale_factor": Answer(("RolloutDataset(scale_rewards)",)),
    "target_update_period": _TARGET_EVERY,
    "target_update_tau": Answer(("DQN(tau)",)),
    "value_net": Answer(("PPO(critic)",)),
    "value_pred_loss_coef": Answer(("PPO(value_coefficient)",)),
    # keras-rl.
    "delta_clip": Answer(("DQN(loss)",)),
    "enable_double_dqn": Answer(("DQN(double)",)),
    "enable_dueling_network": Answer(("DQN(dueling)",)),
    "nb_actions": Answer((), "it follows from the action space"),
    "nb_episodes": Answer(("evaluate(episodes)",)),
    "nb_max_episode_steps": Answer(("RolloutDataset(env_kwargs)",)),
    "nb_steps": _STEPS,
    "nb_steps_warmup": _WARM_UP,
    "random_process": Answer(("DDPG(exploration)",)),
    "target_model_update": Answer(("DQN(tau)", "DQN(target_every)")),
    "train_interval": Answer(("ReplayDataset(steps_per_round)",)),
    # Names of this library, in another place.
    "activation": Answer(("for_env(activation)",)),
    "batch_size": Answer(
        ("RolloutDataset(batch_size)", "ReplayDataset(batch_size)")
    ),
    "capacity": _CAPACITY,
    "clip_ratio": Answer(("PPO(clip_ratio)",)),
    "critic_optimizer": Answer(("compile(critic_optimizer)",)),
    "entropy_coefficient": Answer(("PPO(entropy_coefficient)",)),
    "episodes": Answer(("evaluate(episodes)",)),
    "epochs": Answer(("fit(epochs)",)),
    "epsilon": Answer(("DQN(epsilon)",)),
    "gae_lambda": Answer(("PPO(gae_lambda)",)),
    "gamma": Answer(("PPO(gamma)",)),
    "hidden": Answer(("for_env(hidden)",)),
    "horizon": Answer(_HORIZON),
    "memory": Answer(("for_env(memory)",)),
    "n_step": Answer(("ReplayDataset(n_step)",)),
    "normalize_observations": Answer(("for_env(normalize_observations)",)),
    "num_envs": Answer(("RolloutDataset(num_envs)", "ReplayDataset(num_envs)")),
    "optimizer": Answer(("compile(optimizer)",)),
    "passes": _PASSES,
    "prioritized": Answer(("ReplayDataset(prioritized)",)),
    "rounds_per_epoch": Answer(("RolloutDataset(rounds_per_epoch)",)),
    "scale_rewards": Answer(("RolloutDataset(scale_rewards)",)),
    "steps_per_round": Answer(("ReplayDataset(steps_per_round)",)),
    "total_steps": _STEPS,
    "updates_per_round": Answer(("ReplayDataset(updates_per_round)",)),
    "verbose": Answer(("fit(verbose)",)),
    "warm_up": _WARM_UP,
    "workers": Answer(("RolloutDataset(workers)",)),
}

_ARGUMENT = re.compile(r"\((\w+)\)$")


def answer(name: str, taken: Collection[str]) -> str | None:
    """Returns the name here of an unknown argument, as a message.

    Args:
        name: str. Name of the argument.
        taken: Collection of str. The arguments of the called function.

    Returns:
        str; None where the name is in no table.

    Example:

    >>> answer("clip_range", {"clip_ratio", "gamma"})
    '`clip_range` is `clip_ratio` here'
    >>> answer("n_steps", {"gamma"})
    '`n_steps` is `RolloutDataset(horizon)` or `ReplayDataset(n_step)` here'
    """
    if name not in FOREIGN:
        return None
    ours, note = FOREIGN[name]
    near = {
        found[1]
        for found in map(_ARGUMENT.search, ours)
        if found and found[1] in taken
    }
    choices = " or ".join(f"`{each}`" for each in sorted(near) or ours)
    said = f"`{name}` is {choices} here" if choices else f"not `{name}`"
    return f"{said}: {note}" if note else said
