"""Mistakes in distributions, policy heads, statistics and exploration."""

from mutants.mutant import Mutant

DISTRIBUTIONS = [
    Mutant(
        "squashed_samples_without_their_jacobian",
        "SquashedGaussian.sample_and_log_prob",
        "self._squash(position), log_prob - self._log_slope(position)",
        "self._squash(position), log_prob",
        ["tests/distributions/test_distribution_contract.py"],
    ),
    Mutant(
        "squashed_density_without_the_scale_of_the_box",
        "SquashedGaussian._log_slope",
        "return slope + self._log_half_width()",
        "return slope",
        ["tests/distributions/test_gaussian.py"],
    ),
    Mutant(
        "sign_in_the_slope_of_tanh",
        "_log_tanh_slope",
        "_LOG_2 - position - ops.softplus(-2.0 * position)",
        "_LOG_2 + position - ops.softplus(-2.0 * position)",
        ["tests/distributions/test_gaussian.py"],
    ),
    Mutant(
        "categorical_divergence_of_the_other_direction",
        "Categorical.kl",
        "difference = self.log_probs - other.log_probs",
        "difference = other.log_probs - self.log_probs",
        ["tests/distributions/test_distribution_contract.py"],
    ),
    Mutant(
        "gaussian_divergence_by_the_own_deviation",
        "DiagonalGaussian.kl",
        "ops.exp(-other.log_std)",
        "ops.exp(-self.log_std)",
        ["tests/distributions/test_distribution_contract.py"],
    ),
    Mutant(
        "gaussian_density_without_its_deviation",
        "DiagonalGaussian._log_prob_of_noise",
        "0.5 * (ops.square(noise) + _LOG_2PI) + self.log_std, axis=-1",
        "0.5 * (ops.square(noise) + _LOG_2PI), axis=-1",
        ["tests/distributions/test_distribution_contract.py"],
    ),
    Mutant(
        "bernoulli_entropy_of_one_outcome",
        "Bernoulli.entropy",
        "ops.exp(on) * on + ops.exp(off) * off, axis=-1",
        "ops.exp(on) * on, axis=-1",
        ["tests/distributions/test_distribution_contract.py"],
    ),
    Mutant(
        "sign_of_gumbel_noise",
        "gumbel",
        "return np.negative(draws, out=draws)",
        "return draws",
        ["tests/distributions/test_discrete.py"],
    ),
    Mutant(
        "what_is_forbidden_is_only_unlikely",
        "distribution:",
        "FORBIDDEN = -1e32",
        "FORBIDDEN = -10.0",
        ["tests/distributions/test_masking.py"],
    ),
]

HEADS = [
    Mutant(
        "stretched_to_the_wrong_middle",
        "BoxHead.to_environment",
        "action = action * half + centre",
        "action = action * half - centre",
        ["tests/policy_heads/test_policy_heads.py"],
    ),
    Mutant(
        "recorded_actions_are_not_shifted_back",
        "BoxHead.from_environment",
        "ops.clip((action - centre) / half, -1.0, 1.0)",
        "ops.clip(action / half, -1.0, 1.0)",
        ["tests/policy_heads/test_policy_heads.py"],
    ),
    Mutant(
        "deviations_are_clipped_higher",
        "box_head:",
        "_MAX_LOG_STD = 2.0",
        "_MAX_LOG_STD = 20.0",
        ["tests/policy_heads/test_policy_heads.py"],
    ),
    Mutant(
        "recorded_actions_keep_the_start_of_their_space",
        "DiscreteHead.from_environment",
        'ops.cast(action, "int32") - self.start',
        'ops.cast(action, "int32")',
        ["tests/policy_heads/test_policy_heads.py"],
    ),
    Mutant(
        "random_actions_ignore_the_mask",
        "allowed_choice",
        "np.where(mask > 0, scores, -1.0)",
        "scores",
        [
            "tests/policy_heads/test_policy_heads.py::test_random_actions_are_among_those_allowed"
        ],
    ),
    Mutant(
        "one_choice_without_an_action_passes",
        "ActionFormat.leaves_nothing",
        "nothing |= ~allowed[..., start:end].any(axis=-1)",
        "nothing &= ~allowed[..., start:end].any(axis=-1)",
        [
            "tests/agents/test_masks.py::test_one_choice_of_several_without_anything_allowed"
        ],
    ),
]

STATISTICS = [
    Mutant(
        "mean_over_all_rows",
        "weighted_mean",
        "ops.maximum(ops.sum(weight), 1.0)",
        "ops.cast(ops.size(weight), values.dtype)",
        ["tests/losses/test_statistics.py"],
    ),
    Mutant(
        "deviation_of_all_rows",
        "normalize",
        "ops.sqrt(weighted_mean(ops.square(centred), weight))",
        "ops.sqrt(ops.mean(ops.square(centred)))",
        ["tests/losses/test_statistics.py"],
    ),
    Mutant(
        "a_single_advantage_becomes_0",
        "normalize",
        "ops.where(several, centred / (deviation + epsilon), values)",
        "centred / (deviation + epsilon)",
        ["tests/losses/test_statistics.py"],
    ),
    Mutant(
        "a_skipped_update_is_averaged_in",
        "MeanOfEach.update_state",
        "ops.where(weight > 0, row * weight, ops.zeros_like(row))",
        "row * weight",
        ["tests/metrics/test_mean_of_each.py"],
    ),
    Mutant(
        "observations_of_resets_are_counted",
        "ObservationNormalization.moments_with",
        'weight = ops.cast(weight, "float32")',
        'weight = ops.ones_like(ops.cast(weight, "float32"))',
        ["tests/layers/test_observation_normalization.py"],
    ),
    Mutant(
        "variance_forgets_how_means_differ",
        "ObservationNormalization.moments_with",
        "+ ops.square(delta) * share * (1.0 - share)",
        "+ ops.square(delta) * share * 0.0",
        ["tests/layers/test_observation_normalization.py"],
    ),
]

EXPLORATION = [
    Mutant(
        "noise_is_pushed_away_from_0",
        "OrnsteinUhlenbeckNoise.draw",
        "kept = 1.0 - self.theta * self.dt",
        "kept = 1.0 + self.theta * self.dt",
        ["tests/exploration/test_exploration_noise.py"],
    ),
    Mutant(
        "noise_without_the_root_of_time",
        "OrnsteinUhlenbeckNoise.draw",
        "self._scale_at(step) * math.sqrt(self.dt)",
        "self._scale_at(step) * self.dt",
        ["tests/exploration/test_exploration_noise.py"],
    ),
    Mutant(
        "noise_begins_anew_each_round",
        "OrnsteinUhlenbeckNoise.draw",
        "position = _begin(state, shape[1:])",
        "position = _begin(None, shape[1:])",
        ["tests/exploration/test_exploration_noise.py"],
    ),
    Mutant(
        "scale_stays_at_its_beginning",
        "GaussianNoise.draw",
        "np.float32(self._scale_at(step))",
        "np.float32(self._scale_at(0))",
        ["tests/exploration/test_exploration_noise.py"],
    ),
    Mutant(
        "epsilon_is_the_share_of_greedy_actions",
        "EpsilonGreedy.draw",
        "explores = generator.random(shape) < epsilon",
        "explores = generator.random(shape) > epsilon",
        ["tests/agents/test_dqn.py::test_a_share_of_actions_is_random"],
    ),
]

MUTANTS = [*DISTRIBUTIONS, *HEADS, *STATISTICS, *EXPLORATION]
