"""Mistakes in algorithms, online and offline."""

from mutants.mutant import Mutant

ON_POLICY = [
    Mutant(
        "gae_takes_truncation_for_termination",
        "OnPolicyAgent.targets",
        'ops.cast(arrays["terminated"], "float32")',
        'ops.cast(arrays["terminated"] | arrays["truncated"], "float32")',
        [
            "tests/data/test_collector.py::test_truncation_bootstraps_from_the_final_observation"
        ],
    ),
    Mutant(
        "gae_of_rollouts_leaks_over_truncations",
        "OnPolicyAgent.targets",
        'truncated=arrays["truncated"],',
        "truncated=None,",
        ["tests/data/test_collector.py::test_modes_prepare_alike"],
    ),
    Mutant(
        "gae_of_rollouts_is_a_step_off",
        "_following",
        "known[num_envs : steps + num_envs]",
        "known[:steps]",
        ["tests/data/test_collector.py::test_modes_prepare_alike"],
    ),
    Mutant(
        "gae_bootstraps_from_the_reset",
        "_following",
        'arrays["final_index"][:, None],',
        'steps + 0 * arrays["final_index"][:, None],',
        ["tests/data/test_collector.py::test_modes_prepare_alike"],
    ),
    Mutant(
        "gradient_through_advantages_of_a_trajectory",
        "RolloutSamples.of",
        "known = ops.stop_gradient(value)",
        "known = value",
        ["tests/agents/test_a2c.py::test_one_pass_equals_two"],
    ),
    Mutant(
        "the_end_of_a_remembered_episode_is_a_beginning",
        "RolloutSamples._remembered",
        "of_one_step(ops.zeros_like(index))",
        "of_one_step(ops.ones_like(index))",
        [
            "tests/agents/test_memory_of_episodes.py::test_what_was_cut_off_is_valued_with_its_memory"
        ],
    ),
    Mutant(
        "sign_of_the_entropy_bonus",
        "OnPolicyAgent.total_loss",
        "loss - self.entropy_coefficient * entropy",
        "loss + self.entropy_coefficient * entropy",
        ["tests/agents/test_ppo.py::test_loss_is_that_of_stable_baselines3"],
    ),
    Mutant(
        "rows_that_fill_up_are_valued",
        "OnPolicyAgent.total_loss",
        "statistics.weighted_mean(value_losses, weight)",
        "ops.mean(value_losses)",
        [
            "tests/agents/test_ppo.py::test_an_update_is_the_gradient_worked_out_by_hand"
        ],
    ),
    Mutant(
        "advantages_are_never_normalised",
        "OnPolicyAgent.advantages",
        'return statistics.normalize(advantage, batch["weight"])',
        "return advantage",
        ["tests/agents/test_ppo.py::test_first_update_of_a_round_has_ratio_1"],
    ),
    Mutant(
        "ppo_clips_around_its_present_policy",
        "PPO.loss_terms",
        'old_log_prob, weight = batch["log_prob"], batch["weight"]',
        'old_log_prob, weight = log_prob, batch["weight"]',
        ["tests/agents/test_ppo.py::test_loss_is_that_of_stable_baselines3"],
    ),
    Mutant(
        "ppo_stops_at_the_target_itself",
        "PPO._is_near",
        "1.5 * self.target_kl",
        "self.target_kl",
        [
            "tests/agents/test_constants_of_updates.py::test_updates_stop_at_one_and_a_half_times_the_target"
        ],
    ),
    Mutant(
        "a_stopped_round_stops_all_later_ones",
        "PPO.begin_round",
        "self._round_stopped.assign(False)",
        "pass",
        [
            "tests/agents/test_ppo_early_stop_and_schedules.py::test_target_kl_skips_the_rest_of_the_round"
        ],
    ),
    Mutant(
        "gradients_are_not_clipped",
        "Updater.update",
        "partial(step.apply, agent.max_gradient_norm)",
        "partial(step.apply, None)",
        [
            "tests/agents/test_ppo.py::test_gradients_are_clipped_by_their_common_norm"
        ],
    ),
]

VALUES = [
    Mutant(
        "dqn_without_a_target_network",
        "DQN._next_outputs",
        "self._outputs(self.target_network, encoded)",
        "self._outputs(self.q_network, encoded)",
        [
            "tests/agents/test_dqn_losses.py::test_loss_is_of_the_td_error_to_the_best_value_of_the_target"
        ],
    ),
    Mutant(
        "double_dqn_lets_the_target_choose",
        "DQN._next_outputs",
        "if self.double\n",
        "if not self.double\n",
        [
            "tests/agents/test_dqn_losses.py::test_loss_is_of_the_td_error_to_the_best_value_of_the_target"
        ],
    ),
    Mutant(
        "dqn_bootstraps_from_what_is_forbidden",
        "DQN._next_outputs",
        '"selector": self.task.allowed(observation, selector),',
        '"selector": selector,',
        [
            "tests/agents/test_masks.py::test_the_target_of_dqn_is_the_best_of_what_is_allowed"
        ],
    ),
    Mutant(
        "dqn_acts_on_what_is_forbidden",
        "DQN._choices",
        "return self.task.allowed(observation, self(observation))",
        "return self(observation)",
        ["tests/agents/test_masks.py::test_nothing_forbidden_in_training"],
    ),
    Mutant(
        "dueling_without_centred_advantages",
        "DQN._of_actions",
        "value + advantages - ops.mean(advantages, axis=1, keepdims=True)",
        "value + advantages",
        [
            "tests/agents/test_dqn_losses.py::test_dueling_adds_the_value_to_centred_advantages"
        ],
    ),
    Mutant(
        "dqn_forgets_the_weights_of_its_samples",
        "DQN.loss_terms",
        'ops.mean(batch["weight"] * each)',
        "ops.mean(each)",
        [
            "tests/agents/test_dqn_losses.py::test_weights_multiply_the_loss_of_each_transition"
        ],
    ),
    Mutant(
        "returns_of_distributions_are_not_discounted",
        "_moved",
        'batch["discount"][:, None] * returns',
        "returns",
        [
            "tests/agents/test_dqn_losses.py::test_categorical_is_the_cross_entropy_to_the_projected_target"
        ],
    ),
    Mutant(
        "quantiles_begin_at_0",
        "QuantileValues.__init__",
        '(np.arange(atoms, dtype="float32") + 0.5) / atoms',
        'np.arange(atoms, dtype="float32") / atoms',
        [
            "tests/agents/test_dqn_losses.py::test_distributions_of_the_action_with_the_best_mean_follow"
        ],
    ),
    Mutant(
        "critics_forget_the_weights_of_samples",
        "td_terms",
        "ops.mean(weight * 0.5 * ops.square(e))",
        "ops.mean(0.5 * ops.square(e))",
        ["tests/agents/test_sac.py::test_an_update_is_that_of_the_paper"],
    ),
    Mutant(
        "gradient_through_the_targets_of_critics",
        "td_terms",
        "ops.stop_gradient(target) - value",
        "target - value",
        [
            "tests/agents/test_iql.py::test_advantages_teach_the_policy_nothing_about_values"
        ],
    ),
    Mutant(
        "td3_targets_of_the_larger_critic",
        "TD3.targets",
        "functools.reduce(ops.minimum, values)",
        "functools.reduce(ops.maximum, values)",
        ["tests/agents/test_td3.py::test_targets_by_hand"],
    ),
    Mutant(
        "td3_bootstraps_through_the_end",
        "TD3.targets",
        'batch["reward"] + batch["discount"] * smallest',
        'batch["reward"] + self.gamma * smallest',
        ["tests/agents/test_td3.py::test_targets_by_hand"],
    ),
    Mutant(
        "td3_smooths_without_a_clip",
        "TD3.target_action",
        "ops.clip(noise, -self.target_noise_clip, self.target_noise_clip)",
        "noise",
        ["tests/agents/test_td3.py::test_smoothing_noise_is_clipped"],
    ),
    Mutant(
        "td3_targets_of_the_present_policy",
        "TD3.target_action",
        "self._action(run_network(self.target_actor, encoded))",
        "self._action(run_network(self.actor, encoded))",
        ["tests/agents/test_td3.py::test_targets_by_hand"],
    ),
    Mutant(
        "sign_of_the_deterministic_policy_gradient",
        "TD3.actor_losses",
        "return -value",
        "return value",
        ["tests/agents/test_td3.py::test_update_by_hand"],
    ),
    Mutant(
        "the_delay_of_the_policy_is_one_off",
        "Updater._differentiate",
        "(made + 1) % objective.every",
        "made % objective.every",
        ["tests/agents/test_td3.py::test_delayed_update_by_hand"],
    ),
    Mutant(
        "sac_without_target_critics",
        "SAC.targets",
        'self.target_critics, batch["next_observation"], 0',
        'self.critics, batch["next_observation"], 0',
        ["tests/agents/test_sac.py::test_an_update_is_that_of_the_paper"],
    ),
    Mutant(
        "sac_bootstraps_through_the_end",
        "SAC.targets",
        'batch["reward"] + batch["discount"] * next_value',
        'batch["reward"] + self.gamma * next_value',
        ["tests/agents/test_sac.py::test_an_update_is_that_of_the_paper"],
    ),
    Mutant(
        "sac_values_the_present_observation",
        "SAC.targets",
        'self.target_critics, batch["next_observation"], 0',
        'self.target_critics, batch["observation"], 0',
        ["tests/agents/test_sac.py::test_an_update_is_that_of_the_paper"],
    ),
    Mutant(
        "the_policy_trains_the_temperature",
        "SAC._alpha",
        "ops.stop_gradient(ops.exp(self.log_temperature))",
        "ops.exp(self.log_temperature)",
        ["tests/agents/test_sac.py::test_an_update_is_that_of_the_paper"],
    ),
    Mutant(
        "sign_of_the_target_entropy",
        "SAC._target_entropy",
        "-float(np.prod(self.policy_head.action_shape))",
        "float(np.prod(self.policy_head.action_shape))",
        ["tests/agents/test_sac.py::test_the_published_target_entropy"],
    ),
    Mutant(
        "sign_of_the_entropy_that_the_temperature_sees",
        "SAC.soft_value",
        "losses.soft_value(log_prob, values, self._alpha), -log_prob",
        "losses.soft_value(log_prob, values, self._alpha), log_prob",
        ["tests/agents/test_sac.py::test_an_update_is_that_of_the_paper"],
    ),
    Mutant(
        "present_and_next_states_are_not_normalised_together",
        "CrossQ._critic_terms",
        "self.critics, encoded, action, training=True",
        "self.critics, encoded, action, training=False",
        ["tests/agents/test_crossq.py::test_an_update_is_that_of_the_paper"],
    ),
    Mutant(
        "present_states_are_valued_as_the_next_ones",
        "CrossQ._critic_terms",
        "[later for _, later in halves]",
        "[now for now, _ in halves]",
        ["tests/agents/test_crossq.py::test_an_update_is_that_of_the_paper"],
    ),
    Mutant(
        "the_policy_of_crossq_is_not_delayed",
        "CrossQ.objectives",
        "every=self.policy_delay",
        "every=1",
        [
            "tests/agents/test_crossq.py::test_every_third_update_is_one_of_the_policy"
        ],
    ),
    Mutant(
        "a_skipped_update_keeps_a_normalised_kernel",
        "_changed_by_itself",
        "weights = layer.weights",
        "weights = layer.non_trainable_weights",
        [
            "tests/agents/test_learning_faults.py::test_weights_that_a_forward_pass_changes_are_put_back"
        ],
    ),
    Mutant(
        "the_target_entropy_counts_what_is_forbidden",
        "SAC._target_entropy_of",
        "ops.maximum(ops.sum(mask, axis=-1), 1.0)",
        "ops.sum(ops.ones_like(mask), axis=-1)",
        [
            "tests/agents/test_masks.py::test_values_of_sac_are_those_of_what_is_allowed"
        ],
    ),
    Mutant(
        "each_update_draws_the_same_noise",
        "OffPolicyAgent._seed_of_draw",
        'ops.cast(ops.convert_to_tensor(self.updates), "int32")',
        'ops.zeros((), "int32")',
        [
            "tests/agents/test_td3.py::test_smoothing_noise_is_normal_and_new_at_each_update"
        ],
    ),
]

OFFLINE = [
    Mutant(
        "sign_of_the_penalty_of_cql",
        "CQL.conservative_terms",
        "loss + alpha * ops.mean(weight * total)",
        "loss - alpha * ops.mean(weight * total)",
        ["tests/agents/test_cql.py::test_the_penalty_of_choices_by_hand"],
    ),
    Mutant(
        "sign_of_the_loss_of_alpha",
        "CQL.conservative_terms",
        "log_alpha, -mean, -cast(float, self.threshold)",
        "log_alpha, mean, cast(float, self.threshold)",
        ["tests/agents/test_cql.py::test_alpha_follows_its_threshold"],
    ),
    Mutant(
        "density_of_uniform_actions",
        "BoxCQL.sampled_actions",
        "-math.log(2.0) * shape[-1]",
        "math.log(2.0) * shape[-1]",
        ["tests/agents/test_cql.py::test_actions_are_drawn_as_it_says"],
    ),
    Mutant(
        "the_penalty_is_over_what_is_forbidden",
        "DiscreteCQL.loss_terms",
        'self.task.allowed(batch["observation"], self.q_values(outputs))',
        "self.q_values(outputs)",
        ["tests/agents/test_cql.py::test_the_penalty_is_over_what_is_allowed"],
    ),
    Mutant(
        "sign_of_the_advantage_of_iql",
        "IQL._advantage",
        'smallest - self._value(batch["observation"], training)',
        'self._value(batch["observation"], training) - smallest',
        ["tests/agents/test_iql.py::test_an_update_is_that_of_the_paper"],
    ),
    Mutant(
        "iql_without_target_critics",
        "IQL._advantage",
        "self.target_critics,\n            self.task.encode(",
        "self.critics,\n            self.task.encode(",
        ["tests/agents/test_iql.py::test_an_update_is_that_of_the_paper"],
    ),
    Mutant(
        "iql_bootstraps_from_the_present_value",
        "IQL.critic_terms",
        'self.value(batch["next_observation"])',
        'self.value(batch["observation"])',
        ["tests/agents/test_iql.py::test_an_update_is_that_of_the_paper"],
    ),
    Mutant(
        "sign_of_cloning",
        "BehaviorCloning.actor_terms",
        '-ops.mean(batch["weight"] * log_prob)',
        'ops.mean(batch["weight"] * log_prob)',
        [
            "tests/agents/test_behavior_cloning.py::test_update_of_choices_by_hand"
        ],
    ),
    Mutant(
        "fitted_values_follow_the_data",
        "FittedQ._updated",
        'self._value(self._target, batch["next_observation"], *noise)',
        "self._of_taken(\n"
        '            self._target, batch["next_observation"], batch["action"]\n'
        "        )",
        [
            "tests/offline/test_offline_evaluation.py::test_a_greedy_policy_has_no_ratios"
        ],
    ),
    Mutant(
        "fitted_values_without_a_target",
        "FittedQ._updated",
        'self._value(self._target, batch["next_observation"], *noise)',
        'self._value(self._network, batch["next_observation"], *noise)',
        [
            "tests/offline/test_offline_evaluation.py::test_fitted_values_follow_a_target_of_their_own"
        ],
    ),
    Mutant(
        "importance_ratios_are_inverted",
        "OfflineEvaluation._weighted.log_ratio",
        "policy.log_prob(action) - behavior.log_prob(action)",
        "behavior.log_prob(action) - policy.log_prob(action)",
        [
            "tests/offline/test_offline_evaluation.py::test_a_policy_that_wanders_is_valued_as_it_is"
        ],
        slow=True,
    ),
]

LEARNERS = [
    Mutant(
        "gradients_of_devices_are_summed",
        "mean",
        "ReduceOp.MEAN",
        "ReduceOp.SUM",
        [
            "tests/training/test_learners.py::test_two_devices_learn_what_one_does"
        ],
        slow=True,
    ),
    Mutant(
        "an_optimizer_is_given_the_gradient_by_each_device",
        "_apply_part",
        "None if each is None else each / number",
        "None if each is None else each",
        [
            "tests/training/test_learners.py::test_two_devices_learn_what_one_does"
        ],
        slow=True,
    ),
    Mutant(
        "a_device_counts_its_rows_as_one_of_several",
        "_of_all_shares.gradient",
        "return part * tf.cast(_number(), part.dtype)",
        "return part",
        [
            "tests/training/test_learners.py::test_two_devices_learn_what_one_does"
        ],
        slow=True,
    ),
    Mutant(
        "each_device_has_the_rows_of_the_first",
        "replicas:_rows",
        "[index[None] * size,",
        "[0 * index[None] * size,",
        [
            "tests/training/test_learners.py::test_two_devices_learn_what_one_does"
        ],
        slow=True,
    ),
    Mutant(
        "the_norm_of_gradients_is_squared",
        "_Step.measure",
        "self.norm = tf.linalg.global_norm(self.gradients)",
        "self.norm = tf.square(tf.linalg.global_norm(self.gradients))",
        [
            "tests/updates/test_gradient_norm.py::"
            "test_the_norm_is_that_of_what_is_applied"
        ],
    ),
]

MUTANTS = [*ON_POLICY, *VALUES, *OFFLINE, *LEARNERS]
