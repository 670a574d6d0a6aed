"""Mistakes in target networks, memory and what networks are shown."""

from mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "targets_move_an_update_early",
        "TargetUpdate.after_update",
        "due = after // self.every > before // self.every",
        "due = (after + 1) // self.every > (before + 1) // self.every",
        ["tests/callbacks/test_target_network_sync.py::test_moves_are_exact"],
    ),
    Mutant(
        "targets_move_by_the_complement_of_tau",
        "TargetUpdate.move",
        "self._move(self.tau)",
        "self._move(1.0 - self.tau)",
        [
            "tests/callbacks/test_target_network_pairs.py::test_published_numbers"
        ],
    ),
    Mutant(
        "targets_average_moving_statistics",
        "_is_averaged",
        "weight.trainable and tf.as_dtype(weight.dtype).is_floating",
        "tf.as_dtype(weight.dtype).is_floating",
        [
            "tests/callbacks/test_target_network_pairs.py::test_only_trained_weights_are_averaged"
        ],
    ),
    Mutant(
        "targets_do_not_begin_as_copies",
        "TargetNetworks.moving",
        "if int(updates.numpy()) == 0:",
        "if int(updates.numpy()) < 0:",
        [
            "tests/agents/test_dqn.py::test_the_target_begins_as_the_network_that_was_given_weights"
        ],
    ),
    Mutant(
        "targets_of_other_weights",
        "copy_of",
        "made.set_weights(network.get_weights())",
        "made.get_weights()",
        [
            "tests/agents/test_off_policy_networks.py::test_targets_begin_as_copies_that_are_not_trained"
        ],
    ),
    Mutant(
        "targets_are_trained",
        "copy_of",
        "made.trainable = False",
        "made.trainable = True",
        [
            "tests/agents/test_off_policy_networks.py::test_targets_begin_as_copies_that_are_not_trained"
        ],
    ),
    Mutant(
        "twin_critics_are_equal",
        "sibling",
        "config = _reseeded(_config(network), index)",
        "config = _config(network)",
        [
            "tests/agents/test_off_policy_networks.py::test_a_twin_of_a_network_with_fixed_seeds_has_others"
        ],
    ),
    Mutant(
        "memory_is_not_reset_where_an_episode_begins",
        "ResettingCell.call",
        "state * ops.cast(goes_on, state.dtype)",
        "state",
        [
            "tests/agents/test_memory_of_episodes.py::test_an_episode_begins_without_a_memory"
        ],
    ),
    Mutant(
        "values_of_sequences_are_a_step_off",
        "_where_bootstrapped",
        'ops.arange(span.shape[1], dtype="int32") + span',
        'ops.arange(span.shape[1], dtype="int32") + 0 * span',
        [
            "tests/agents/test_memory.py::test_a_loss_over_sequences_is_that_of_their_steps"
        ],
    ),
    Mutant(
        "sequences_begin_without_their_burn_in",
        "_after_burn_in",
        'if not burn_in["begins"].shape[1]:',
        'if burn_in["begins"].shape[1]:',
        [
            "tests/agents/test_memory.py::test_a_loss_over_sequences_is_that_of_their_steps"
        ],
    ),
    Mutant(
        "sequences_are_learned_from_through_their_burn_in",
        "_after_burn_in",
        "map_leaves(ops.stop_gradient, tuple(warm))",
        "tuple(warm)",
        [
            "tests/agents/test_memory.py::test_nothing_is_learned_through_the_burn_in"
        ],
    ),
    Mutant(
        "targets_of_sequences_begin_with_the_memory_of_the_network",
        "_after_burn_in",
        "run_sequences(network, **burn_in, state=state)",
        "run_sequences(agent.q_network, **burn_in, state=state)",
        [
            "tests/agents/test_memory.py::test_a_loss_over_sequences_is_that_of_their_steps"
        ],
    ),
    Mutant(
        "only_the_last_beginnings_count",
        "PolicyActor.begin",
        "np.maximum(self.begins, envs)",
        "np.maximum(0.0, envs)",
        [
            "tests/agents/test_memory.py::test_the_tensorflow_actor_remembers_alike"
        ],
    ),
    Mutant(
        "each_step_begins_an_episode",
        "PolicyActor._recurrent_outputs",
        "self.begins = np.zeros(self.num_envs, np.float32)",
        "self.begins = np.ones(self.num_envs, np.float32)",
        [
            "tests/agents/test_memory_of_episodes.py::test_an_episode_begins_after_a_truncation_too"
        ],
    ),
    Mutant(
        "observations_keep_the_start_of_their_space",
        "_LeafEncoder.__call__",
        "index = observation - int(self._space.start)",
        "index = observation",
        ["tests/tasks/test_observation_encoder.py"],
    ),
    Mutant(
        "resets_are_normalised_by",
        "Normalizing.observe",
        "trajectory.valid.reshape(-1),",
        "trajectory.valid.reshape(-1) | True,",
        ["tests/agents/test_normalization.py::test_statistics_equal_numpys"],
    ),
    Mutant(
        "the_last_observation_is_counted_twice",
        "Normalizing.observe",
        "lambda array: array[:-1].reshape(-1, *array.shape[2:]),",
        "lambda array: array[1:].reshape(-1, *array.shape[2:]),",
        ["tests/agents/test_normalization.py::test_statistics_equal_numpys"],
    ),
    Mutant(
        "a_normalizer_moves_within_a_round",
        "ObservationNormalization.keep_moments",
        "variable.assign(value)",
        "variable.assign(value); self.commit()",
        ["tests/agents/test_normalization.py::test_statistics_equal_numpys"],
    ),
    Mutant(
        "observations_far_off_are_overlooked",
        "ObservationNormalization.are_ordinary",
        "(1.0 + 0.5 * most / total)",
        "(1.0 + 2.0 * most / total)",
        ["tests/layers/test_observation_normalization.py"],
    ),
    Mutant(
        "entries_that_were_constant_stay_so",
        "ObservationNormalization.bounded",
        "(variance > 1e-10 * ops.square(mean))",
        "(variance >= 0.0 * ops.square(mean))",
        ["tests/layers/test_observation_normalization.py"],
    ),
    Mutant(
        "resets_are_counted_as_far_off",
        "_accumulate_bounded",
        "tf.reduce_any(differs, axes) & valid",
        "tf.reduce_any(differs, axes)",
        ["tests/updates/test_outliers.py"],
    ),
    Mutant(
        "choices_are_far_off",
        "_accumulate_bounded",
        "layer.bounded(x) if is_limited else x",
        "layer.bounded(x)",
        ["tests/updates/test_outliers.py"],
    ),
    Mutant(
        "a_normalizer_does_not_clip",
        "ObservationNormalization.call",
        "ops.clip(x, -self.clip, self.clip)",
        "x",
        ["tests/layers/test_observation_normalization.py"],
    ),
    Mutant(
        "what_has_no_finite_square_is_taken_in_at_the_limit",
        "ObservationNormalization.bounded",
        "            ops.isfinite(ops.square(x)),\n",
        "            ops.isfinite(ops.zeros_like(x)),\n",
        ["tests/layers/test_observation_normalization.py"],
    ),
    Mutant(
        "the_number_of_observations_far_off_begins_anew",
        "agent_state:write",
        'int(state.get("clipped_observations", 0))',
        "0",
        ["tests/updates/test_outliers.py"],
    ),
]
