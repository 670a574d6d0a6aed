"""Mistakes in the mathematics of the package, and the test that finds each."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """A mistake.

    Attributes:
        name: The mistake, in snake case.
        path: The file, within `keras_rl2`.
        before: Text that the file contains exactly once.
        after: The text in its place.
        test: A file or a function of one, within `tests`.
    """

    name: str
    path: str
    before: str
    after: str
    test: str


LOSSES = [
    Mutant(
        "value_after_the_end_counts",
        "losses/value.py",
        "ops.where(discount == 0.0, 0.0, discount * next_value)",
        "ops.where(discount == 0.0, next_value, discount * next_value)",
        "losses/test_action_value.py::test_nothing_counts_after_termination",
    ),
    Mutant(
        "nothing_allowed_after_the_end_is_nan",
        "losses/value.py",
        "ops.where(discount == 0.0, 0.0, discount * next_value)",
        "discount * next_value",
        "losses/test_action_value.py::test_nothing_counts_after_termination",
    ),
    Mutant(
        "double_q_learning_with_networks_swapped",
        "losses/value.py",
        "of_action(next_q_values, ops.argmax(next_q_selector, axis=-1))",
        "of_action(next_q_selector, ops.argmax(next_q_values, axis=-1))",
        "losses/test_action_value.py::test_double_q_learning_takes_the_value_at_the_choice_of_the_selector",
    ),
    Mutant(
        "gradient_through_the_td_target",
        "losses/value.py",
        "ops.stop_gradient(reward + bootstrap) - of_action(q_values, action)",
        "reward + bootstrap - of_action(q_values, action)",
        "losses/test_loss_contract.py::test_gradient_reaches_the_learning_arguments_and_no_others",
    ),
    Mutant(
        "sign_of_the_conservative_term",
        "losses/value.py",
        "ops.logsumexp(q_values - chosen[:, None], axis=-1)",
        "ops.logsumexp(chosen[:, None] - q_values, axis=-1)",
        "losses/test_action_value.py::test_conservative_q_is_cross_entropy_of_the_softmax_policy",
    ),
    Mutant(
        "sign_of_the_log_density_of_sampled_actions",
        "losses/value.py",
        "difference - ops.stop_gradient(log_probs)",
        "difference + ops.stop_gradient(log_probs)",
        "losses/test_offline.py::test_sampled_conservative_q_by_hand",
    ),
    Mutant(
        "weights_of_advantages_overflow",
        "losses/policy.py",
        "ops.minimum(beta * advantage, ops.log(maximum))",
        "beta * advantage",
        "losses/test_offline.py::test_advantage_weight_does_not_overflow",
    ),
    Mutant(
        "td3bc_multiplies_by_the_size_of_values",
        "losses/policy.py",
        "alpha / ops.maximum(size, 1e-8)",
        "alpha * ops.maximum(size, 1e-8)",
        "losses/test_offline.py::test_behavior_regularized_value_by_hand",
    ),
    Mutant(
        "huber_forgets_delta",
        "losses/value.py",
        "delta * (size - quadratic)",
        "(size - quadratic)",
        "losses/test_policy_and_value.py::test_huber_has_unit_slope_beyond_delta",
    ),
    Mutant(
        "expectile_of_the_other_side",
        "losses/value.py",
        "ops.where(error < 0, 1.0 - expectile, expectile)",
        "ops.where(error < 0, expectile, 1.0 - expectile)",
        "losses/test_policy_and_value.py::test_expectile_is_fitted",
    ),
    Mutant(
        "clipped_value_takes_the_smaller_error",
        "losses/value.py",
        "ops.maximum(\n        ops.square(value - returns)",
        "ops.minimum(\n        ops.square(value - returns)",
        "losses/test_policy_and_value.py::test_clipped_value_by_hand",
    ),
    Mutant(
        "ppo_takes_the_maximum",
        "losses/policy.py",
        "-ops.minimum(ratio * advantage, clipped * advantage)",
        "-ops.maximum(ratio * advantage, clipped * advantage)",
        "losses/test_policy_and_value.py::test_clipped_surrogate_by_hand",
    ),
    Mutant(
        "ppo_clips_one_side_only",
        "losses/policy.py",
        "ops.clip(ratio, 1.0 - clip_ratio, 1.0 + clip_ratio)",
        "ops.minimum(ratio, 1.0 + clip_ratio)",
        "losses/test_policy_and_value.py::test_clipped_surrogate_by_hand",
    ),
    Mutant(
        "sign_of_the_policy_gradient",
        "losses/policy.py",
        "-log_prob * ops.stop_gradient(advantage)",
        "log_prob * ops.stop_gradient(advantage)",
        "losses/test_policy_and_value.py::test_policy_gradient_raises_the_probability_of_good_actions",
    ),
    Mutant(
        "divergence_of_the_other_direction",
        "losses/statistics.py",
        "log_ratio = log_prob - old_log_prob",
        "log_ratio = old_log_prob - log_prob",
        "losses/test_statistics.py::test_approximate_kl_is_unbiased_and_precise",
    ),
    Mutant(
        "clip_fraction_counts_one_side",
        "losses/statistics.py",
        "ops.abs(ops.expm1(log_prob - old_log_prob))",
        "ops.expm1(log_prob - old_log_prob)",
        "losses/test_statistics.py::test_clip_fraction_counts_both_sides",
    ),
    Mutant(
        "explained_variance_of_the_values",
        "losses/statistics.py",
        "variance(returns - values) / variance(returns)",
        "variance(returns - values) / variance(values)",
        "losses/test_statistics.py::test_explained_variance",
    ),
    Mutant(
        "c51_takes_mass_from_distant_atoms",
        "losses/value_distributions.py",
        "ops.maximum(hat, 0.0) * probabilities[:, None, :]",
        "hat * probabilities[:, None, :]",
        "losses/test_distributional.py::test_projection_by_loop",
    ),
    Mutant(
        "c51_loses_mass_at_the_ends",
        "losses/value_distributions.py",
        "edge = ops.ones_like(position)",
        "edge = ops.zeros_like(position)",
        "losses/test_distributional.py::test_projection_by_loop",
    ),
    Mutant(
        "quantiles_of_the_other_side",
        "losses/value_distributions.py",
        "ops.where(error < 0.0, 1.0 - level, level)",
        "ops.where(error < 0.0, level, 1.0 - level)",
        "losses/test_distributional.py::test_quantile_huber_by_loop",
    ),
    Mutant(
        "quantiles_are_averaged_and_targets_summed",
        "losses/value_distributions.py",
        "ops.sum(ops.mean(weight * loss, axis=2), axis=1)",
        "ops.mean(ops.sum(weight * loss, axis=2), axis=1)",
        "losses/test_distributional.py::test_quantile_huber_by_loop",
    ),
    Mutant(
        "sign_of_the_entropy_in_a_soft_value",
        "losses/value.py",
        "reduce(ops.minimum, values) - alpha * log_prob",
        "reduce(ops.minimum, values) + alpha * log_prob",
        "losses/test_soft.py::test_soft_value_by_hand",
    ),
    Mutant(
        "soft_value_of_the_larger_critic",
        "losses/value.py",
        "reduce(ops.minimum, values) - alpha * log_prob",
        "reduce(ops.maximum, values) - alpha * log_prob",
        "losses/test_soft.py::test_soft_value_by_hand",
    ),
    Mutant(
        "expected_soft_value_of_the_larger_critic",
        "losses/value.py",
        "reduce(ops.minimum, values) - alpha * log_prob",
        "reduce(ops.maximum, values) - alpha * log_prob",
        "losses/test_soft.py::test_expected_soft_value_by_hand",
    ),
    Mutant(
        "sign_of_the_temperature_loss",
        "losses/policy.py",
        "ops.stop_gradient(entropy - target_entropy)",
        "ops.stop_gradient(target_entropy - entropy)",
        "losses/test_soft.py::test_temperature_loss_rises_with_too_little_entropy",
    ),
    Mutant(
        "mean_over_all_rows",
        "losses/statistics.py",
        "ops.maximum(ops.sum(weight), 1.0)",
        "ops.cast(ops.size(weight), values.dtype)",
        "losses/test_statistics.py::test_weighted_mean",
    ),
    Mutant(
        "deviation_of_all_rows",
        "losses/statistics.py",
        "ops.sqrt(weighted_mean(ops.square(centred), weight))",
        "ops.sqrt(ops.mean(ops.square(centred)))",
        "losses/test_statistics.py::test_normalize_equals_numpy",
    ),
    Mutant(
        "a_single_advantage_becomes_0",
        "losses/statistics.py",
        "ops.where(several, centred / (deviation + epsilon), values)",
        "centred / (deviation + epsilon)",
        "losses/test_statistics.py::test_a_single_value_is_not_normalised",
    ),
]

RETURNS = [
    Mutant(
        "gae_leaks_over_truncations",
        "returns/multistep.py",
        "discounts * gae_lambda * _not_truncated(rewards, truncated)",
        "discounts * gae_lambda",
        "returns/test_returns.py::test_gae_of_any_length_equals_the_loop",
    ),
    Mutant(
        "gae_bootstraps_undiscounted",
        "returns/multistep.py",
        "errors = rewards + discounts * next_values - values",
        "errors = rewards + next_values - values",
        "returns/test_returns.py::test_gae_of_any_length_equals_the_loop",
    ),
    Mutant(
        "gae_bootstraps_from_the_state_itself",
        "returns/multistep.py",
        "errors = rewards + discounts * next_values - values",
        "errors = rewards + discounts * values - values",
        "returns/test_returns.py::test_gae_of_any_length_equals_the_loop",
    ),
    Mutant(
        "lambda_is_taken_for_its_complement",
        "returns/multistep.py",
        "rewards + discounts * (1.0 - weight) * next_values",
        "rewards + discounts * weight * next_values",
        "returns/test_returns.py::test_gae_targets_are_lambda_returns",
    ),
    Mutant(
        "n_step_returns_are_a_step_too_long",
        "returns/multistep.py",
        "for _ in range(n - 1):",
        "for _ in range(n):",
        "returns/test_returns.py::test_n_step_returns_equal_the_sum_over_the_window",
    ),
    Mutant(
        "n_step_returns_go_on_over_truncations",
        "returns/multistep.py",
        "return weight * later + (1.0 - weight) * next_values",
        "return later",
        "returns/test_returns.py::test_n_step_returns_equal_the_sum_over_the_window",
    ),
    Mutant(
        "vtrace_does_not_clip_its_ratios",
        "returns/multistep.py",
        "rho = ops.minimum(ratios, as_scalar(rewards, clip_rho=clip_rho))",
        "rho = ratios",
        "returns/test_importance_sampling.py::test_vtrace_by_loop",
    ),
    Mutant(
        "vtrace_advantages_ignore_lambda",
        "returns/multistep.py",
        "_successors(targets, next_values, not_truncated * lambda_)",
        "_successors(targets, next_values, not_truncated)",
        "returns/test_importance_sampling.py::test_vtrace_by_loop",
    ),
    Mutant(
        "recurrence_takes_the_block_itself_for_the_next",
        "returns/multistep.py",
        "_append_zeros(heads[1:], 1)",
        "_append_zeros(heads[:-1], 1)",
        "returns/test_returns.py::test_gae_of_any_length_equals_the_loop",
    ),
    Mutant(
        "recurrence_of_unknown_length_forgets_to_decay",
        "returns/multistep.py",
        "sums + products * later, products * decay",
        "sums + products * later, products",
        "returns/test_returns.py::test_unknown_length_gives_the_same",
    ),
    Mutant(
        "importance_sampling_of_single_steps",
        "returns/multistep.py",
        "ops.cumsum(log_ratios, axis=0)",
        "log_ratios",
        "returns/test_importance_sampling.py::test_weighted_importance_sampling_by_hand",
    ),
]

DISTRIBUTIONS = [
    Mutant(
        "squashed_samples_without_their_jacobian",
        "distributions/gaussian.py",
        "ops.tanh(position), log_prob - _log_slope(position)",
        "ops.tanh(position), log_prob",
        "distributions/test_distribution_contract.py::test_sample_and_log_prob_agree_with_the_separate_methods",
    ),
    Mutant(
        "sign_in_the_slope_of_tanh",
        "distributions/gaussian.py",
        "_LOG_2 - position - ops.softplus(-2.0 * position)",
        "_LOG_2 + position - ops.softplus(-2.0 * position)",
        "distributions/test_gaussian.py::test_squashed_density_integrates_to_1",
    ),
    Mutant(
        "categorical_divergence_of_the_other_direction",
        "distributions/categorical.py",
        "difference = self.log_probs - other.log_probs",
        "difference = other.log_probs - self.log_probs",
        "distributions/test_distribution_contract.py::test_kl_is_the_mean_log_ratio",
    ),
    Mutant(
        "gaussian_divergence_by_the_own_deviation",
        "distributions/gaussian.py",
        "ops.exp(-other.log_std)",
        "ops.exp(-self.log_std)",
        "distributions/test_distribution_contract.py::test_kl_is_the_mean_log_ratio",
    ),
    Mutant(
        "gaussian_density_without_its_deviation",
        "distributions/gaussian.py",
        "0.5 * (ops.square(noise) + _LOG_2PI) + self.log_std, axis=-1",
        "0.5 * (ops.square(noise) + _LOG_2PI), axis=-1",
        "distributions/test_distribution_contract.py::test_entropy_is_the_mean_negative_log_prob",
    ),
    Mutant(
        "bernoulli_entropy_of_one_outcome",
        "distributions/bernoulli.py",
        "ops.exp(on) * on + ops.exp(off) * off, axis=-1",
        "ops.exp(on) * on, axis=-1",
        "distributions/test_distribution_contract.py::test_entropy_is_the_mean_negative_log_prob",
    ),
    Mutant(
        "sign_of_gumbel_noise",
        "distributions/categorical.py",
        "return np.negative(draws, out=draws)",
        "return draws",
        "distributions/test_discrete.py::test_noise_has_its_moments",
    ),
    Mutant(
        "what_is_forbidden_is_only_unlikely",
        "distributions/distribution.py",
        "FORBIDDEN = -1e32",
        "FORBIDDEN = -10.0",
        "distributions/test_masking.py::test_probabilities_are_those_of_the_allowed_actions",
    ),
    Mutant(
        "stretched_to_the_wrong_middle",
        "distributions/box_head.py",
        "action = action * self._half + self._centre",
        "action = action * self._half - self._centre",
        "distributions/test_policy_heads.py::test_unit_box_is_stretched_to_the_bounds_by_hand",
    ),
    Mutant(
        "recorded_actions_are_not_shifted_back",
        "distributions/box_head.py",
        "(action - self._centre) / half",
        "action / half",
        "distributions/test_policy_heads.py::test_from_environment_by_hand",
    ),
    Mutant(
        "recorded_actions_keep_the_start_of_their_space",
        "distributions/policy_head.py",
        'action = action - np.ravel(self.start).astype("int32")',
        "action = action",
        "distributions/test_policy_heads.py::test_from_environment_by_hand",
    ),
    Mutant(
        "random_actions_ignore_the_mask",
        "spaces/supported.py",
        "np.where(mask > 0, scores, -1.0)",
        "scores",
        "distributions/test_policy_heads.py::test_random_actions_are_among_those_allowed",
    ),
]

STATISTICS = [
    Mutant(
        "observations_of_resets_are_counted",
        "layers/observation_normalization.py",
        'weight = ops.cast(weight, "float64")',
        'weight = ops.ones_like(ops.cast(weight, "float64"))',
        "layers/test_observation_normalization.py::test_rows_of_weight_0_do_not_count",
    ),
    Mutant(
        "variance_forgets_how_means_differ",
        "layers/observation_normalization.py",
        "+ ops.square(delta) * share * (1.0 - share)",
        "+ ops.square(delta) * share * 0.0",
        "layers/test_observation_normalization.py::test_moments_equal_numpys_in_any_split",
    ),
    Mutant(
        "running_variance_forgets_how_means_differ",
        "basics/moments.py",
        "squares + delta * delta * (self.count * count / total)",
        "squares",
        "basics/test_moments.py::test_moments_do_not_depend_on_the_batches",
    ),
    Mutant(
        "discounted_return_crosses_episodes",
        "envs/reward_scaler.py",
        "kept[1:] *= goes_on[:-1]",
        "pass",
        "envs/test_reward_scaler.py",
    ),
]

REPLAY = [
    Mutant(
        "windows_discount_a_step_too_often",
        "data/replay_buffer.py",
        "gamma**i",
        "gamma ** (i + 1)",
        "data/test_replay_buffer.py::test_hand_computed_windows",
    ),
    Mutant(
        "windows_go_on_into_the_next_episode",
        "data/replay_buffer.py",
        "goes_on = goes_on & ~ended[i:]",
        "goes_on = goes_on & True",
        "data/test_replay_buffer.py::test_random_episodes",
    ),
    Mutant(
        "replay_takes_truncation_for_termination",
        "data/ring.py",
        '"terminated": np.asarray(trajectory.terminated),',
        '"terminated": np.asarray(trajectory.ended),',
        "data/test_replay_buffer.py::test_random_episodes",
    ),
    Mutant(
        "priorities_without_their_exponent",
        "data/prioritized_replay_buffer.py",
        "self._tree.update(place, priority**self.alpha)",
        "self._tree.update(place, priority)",
        "data/test_prioritized_replay_buffer.py",
    ),
    Mutant(
        "priorities_of_signed_errors",
        "data/prioritized_replay_buffer.py",
        "np.abs(np.asarray(td_error, np.float64)) + self.epsilon",
        "np.maximum(np.asarray(td_error, np.float64), 0.0) + self.epsilon",
        "data/test_prioritized_replay_buffer.py",
    ),
    Mutant(
        "importance_weights_are_inverted",
        "data/prioritized_replay_buffer.py",
        "(value.min() / value) ** float(beta)",
        "(value / value.max()) ** float(beta)",
        "data/test_prioritized_replay_buffer.py",
    ),
    Mutant(
        "sum_tree_takes_the_item_before_a_boundary",
        "data/prioritized_replay_buffer.py",
        "right = query >= left",
        "right = query > left",
        "data/test_sum_tree.py",
    ),
]

AGENTS = [
    Mutant(
        "gae_of_rollouts_is_a_step_off",
        "updates/rollout_samples.py",
        "known[num_envs : steps + num_envs]",
        "known[:steps]",
        "collecting/test_collector.py::test_samples_are_equal_in_all_autoreset_modes",
    ),
    Mutant(
        "sign_of_the_entropy_bonus",
        "agents/on_policy_agent.py",
        "loss - self.entropy_coefficient * entropy",
        "loss + self.entropy_coefficient * entropy",
        "agents/test_ppo.py::test_loss_is_that_of_stable_baselines3",
    ),
    Mutant(
        "ppo_clips_around_its_present_policy",
        "agents/ppo.py",
        'old_log_prob, weight = batch["log_prob"], batch["weight"]',
        'old_log_prob, weight = log_prob, batch["weight"]',
        "agents/test_ppo.py::test_loss_is_that_of_stable_baselines3",
    ),
    Mutant(
        "advantages_are_never_normalised",
        "agents/on_policy_agent.py",
        "return statistics.normalize(advantage, weight)",
        "return advantage",
        "agents/test_ppo.py::test_first_update_of_a_round_has_ratio_1",
    ),
    Mutant(
        "dqn_without_a_target_network",
        "agents/dqn.py",
        "self.outputs_of(self.target_network, encoded)",
        "self.outputs_of(self.q_network, encoded)",
        "agents/test_dqn_losses.py::test_loss_is_of_the_td_error_to_the_best_value_of_the_target",
    ),
    Mutant(
        "double_dqn_lets_the_target_choose",
        "agents/dqn.py",
        "if self.double:",
        "if not self.double:",
        "agents/test_dqn_losses.py::test_loss_is_of_the_td_error_to_the_best_value_of_the_target",
    ),
    Mutant(
        "dqn_bootstraps_from_what_is_forbidden",
        "agents/dqn.py",
        '"selector": self.allowed_values(observation, choosing),',
        '"selector": self.q_values(choosing),',
        "agents/test_masks.py::test_the_target_of_dqn_is_the_best_allowed_action",
    ),
    Mutant(
        "dueling_without_centred_advantages",
        "agents/value_policy.py",
        "value + advantages - ops.mean(advantages, axis=1, keepdims=True)",
        "value + advantages",
        "agents/test_dqn_losses.py::test_dueling_adds_the_value_to_centred_advantages",
    ),
    Mutant(
        "dqn_forgets_the_weights_of_its_samples",
        "agents/dqn.py",
        'ops.mean(batch["weight"] * each)',
        "ops.mean(each)",
        "agents/test_dqn_losses.py::test_weights_multiply_the_loss_of_each_transition",
    ),
    Mutant(
        "td3_targets_of_the_larger_critic",
        "agents/td3.py",
        "functools.reduce(ops.minimum, means)",
        "functools.reduce(ops.maximum, means)",
        "agents/test_td3.py::test_targets_by_hand",
    ),
    Mutant(
        "td3_smooths_without_a_clip",
        "agents/td3.py",
        "ops.clip(noise, -self.target_noise_clip, self.target_noise_clip)",
        "noise",
        "agents/test_td3.py::test_smoothing_noise_is_clipped",
    ),
    Mutant(
        "sac_bootstraps_through_the_end",
        "agents/off_policy_agent.py",
        'batch["reward"], batch["discount"], self.next_value(batch)',
        'batch["reward"], self.gamma, self.next_value(batch)',
        "agents/test_sac.py::test_an_update_is_that_of_the_paper",
    ),
    Mutant(
        "the_policy_trains_the_temperature",
        "agents/sac.py",
        "ops.stop_gradient(ops.exp(log_temperature))",
        "ops.exp(log_temperature)",
        "agents/test_sac.py::test_an_update_is_that_of_the_paper",
    ),
    Mutant(
        "sign_of_the_advantage_of_iql",
        "agents/iql.py",
        'smallest - self.value(batch["observation"], training)',
        'self.value(batch["observation"], training) - smallest',
        "agents/test_iql.py::test_an_update_is_that_of_the_paper",
    ),
    Mutant(
        "sign_of_the_penalty_of_cql",
        "agents/cql.py",
        "self.alpha * ops.mean(weight * total)",
        "-self.alpha * ops.mean(weight * total)",
        "agents/test_cql.py::test_the_penalty_of_choices_by_hand",
    ),
    Mutant(
        "targets_move_by_the_complement_of_tau",
        "updates/target_networks.py",
        "self._move(self.tau)",
        "self._move(1.0 - self.tau)",
        "callbacks/test_target_network_sync.py::test_published_numbers",
    ),
]

MUTANTS = [*LOSSES, *RETURNS, *DISTRIBUTIONS, *STATISTICS, *REPLAY, *AGENTS]
