"""Mistakes in environments' adapters, collecting and evaluating."""

from mutants.mutant import Mutant

ENVS = [
    Mutant(
        "running_variance_forgets_how_means_differ",
        "RunningMoments.merge",
        "squares + delta * delta * (self.count * count / total)",
        "squares",
        ["tests/envs/test_reward_scaler.py"],
    ),
    Mutant(
        "variance_of_a_sample",
        "RunningMoments.update",
        "batch.var(axis=0)",
        "batch.var(axis=0, ddof=1)",
        ["tests/envs/test_reward_scaler.py"],
    ),
    Mutant(
        "discounted_return_crosses_episodes",
        "RewardScaler._accumulate",
        "kept[1:] *= goes_on[:-1]",
        "pass",
        ["tests/envs/test_reward_scaler.py"],
    ),
    Mutant(
        "discounted_return_crosses_rollouts",
        "RewardScaler._accumulate",
        "self.returns = current * goes_on[-1]",
        "self.returns = current * 1.0",
        ["tests/envs/test_reward_scaler.py"],
    ),
    Mutant(
        "a_reward_far_off_stays_in_the_sum",
        "RewardScaler._merge_bounded",
        "self.returns = np.where(moved, without, self.returns)",
        "pass",
        ["tests/envs/test_reward_scaler.py"],
    ),
    Mutant(
        "rewards_far_off_are_overlooked",
        "RewardScaler._may_hold_outliers",
        "most = 0.5 * self.max_deviations**2",
        "most = 4.0 * self.max_deviations**2",
        ["tests/envs/test_reward_scaler.py"],
    ),
    Mutant(
        "the_first_reward_is_far_off",
        "RunningMoments.bounded",
        "self.variance * self.count > self.of_prior(self.mean)",
        "self.variance * self.count > 0.0",
        ["tests/envs/test_reward_scaler.py"],
    ),
    Mutant(
        "rewards_are_not_discounted_in_their_scale",
        "RewardScaler._accumulate",
        "np.where(valid, self.gamma, 1.0)",
        "np.where(valid, 1.0, 1.0)",
        ["tests/envs/test_reward_scaler.py"],
    ),
    Mutant(
        "resets_count_as_rewards_of_0",
        "RewardScaler._merge",
        "count = valid.sum(axis=1)",
        "count = np.full(len(valid), self.num_envs)",
        ["tests/envs/test_reward_scaler.py"],
    ),
    Mutant(
        "reset_rows_after_truncations_are_transitions",
        "NextStepEnv._end_episodes",
        "self.pending_reset = terminated | truncated",
        "self.pending_reset = terminated",
        [
            "tests/envs/test_vector_env.py::test_actions_arrive_as_members_of_their_space"
        ],
    ),
    Mutant(
        "rows_after_truncations_are_valid",
        "RolloutStorage.valid",
        "self.terminated[:-1] | self.truncated[:-1]",
        "self.terminated[:-1]",
        ["tests/data/test_collector.py::test_modes_prepare_alike"],
    ),
    Mutant(
        "a_reset_left_from_the_last_rollout_is_valid",
        "RolloutStorage.valid",
        "valid[0] &= ~self.pending_reset",
        "valid[0] &= True",
        [
            "tests/data/test_collector.py::test_episode_statistics_equal_gymnasiums"
        ],
    ),
    Mutant(
        "final_observations_of_truncations_are_lost",
        "SameStepEnv._end_episodes",
        "ended = terminated | truncated\n"
        "        if not np.count_nonzero(ended):\n"
        "            return step\n"
        "        if ",
        "ended = terminated\n"
        "        if not np.count_nonzero(ended):\n"
        "            return step\n"
        "        if ",
        [
            "tests/envs/test_autoreset_modes.py::test_all_modes_give_the_same_transitions"
        ],
    ),
    Mutant(
        "the_first_observation_is_taken_for_the_final_one",
        "_put",
        "array[index] = row",
        "pass",
        [
            "tests/envs/test_autoreset_modes.py::test_all_modes_give_the_same_transitions"
        ],
    ),
    Mutant(
        "a_reset_writes_over_the_final_observation",
        "ManualResetEnv._end_episodes",
        "final_observation = map_leaves(np.copy, observation)\n        first",
        "final_observation = observation\n        first",
        [
            "tests/envs/test_autoreset_modes.py::test_arrays_that_environments_reuse"
        ],
    ),
    Mutant(
        "a_single_environment_goes_on_after_truncation",
        "SingleEnv._step",
        "if terminated or truncated:",
        "if terminated:",
        [
            "tests/envs/test_autoreset_modes.py::test_single_env_matches_the_bare_environment"
        ],
    ),
]

COLLECTING = [
    Mutant(
        "returns_of_episodes_begin_with_the_rollout",
        "EpisodeStatistics.count",
        "returns = self._return + np.cumsum(",
        "returns = np.cumsum(",
        [
            "tests/data/test_collector.py::test_episode_statistics_equal_gymnasiums"
        ],
    ),
    Mutant(
        "returns_of_episodes_add_up",
        "EpisodeStatistics.count",
        "before_return[b] = returns[t, b]",
        "before_return[b] = 0.0",
        [
            "tests/data/test_collector.py::test_episode_statistics_equal_gymnasiums"
        ],
    ),
    Mutant(
        "rewards_of_resets_are_counted",
        "EpisodeStatistics.count",
        "np.where(trajectory.valid, trajectory.reward, 0.0)",
        "trajectory.reward",
        [
            "tests/data/test_collector.py::test_rewards_of_mere_resets_are_not_counted"
        ],
    ),
    Mutant(
        "memory_goes_on_into_the_next_episode",
        "Collector._beginning",
        "ended: np.ndarray = storage.terminated[t] | storage.truncated[t]",
        "ended: np.ndarray = storage.terminated[t]",
        [
            "tests/agents/test_memory_of_episodes.py::test_an_episode_begins_after_a_truncation_too"
        ],
    ),
    Mutant(
        "memory_is_reset_a_step_early_in_next_step_mode",
        "Collector._beginning",
        "if self.env.masks_reset_rows:\n            return resetting",
        "if self.env.masks_reset_rows:\n"
        "            return self.env.pending_reset",
        ["tests/agents/test_memory.py::test_an_episode_begins_where_it_does"],
    ),
    Mutant(
        "memory_goes_on_within_an_evaluation",
        "EvaluationDataset._run",
        "resetting if env.masks_reset_rows else terminated | truncated",
        "resetting if env.masks_reset_rows else terminated",
        [
            "tests/agents/test_memory_of_episodes.py::test_episodes_of_an_evaluation_begin_without_a_memory"
        ],
    ),
    Mutant(
        "an_evaluation_begins_with_the_memory_of_the_last_one",
        "EvaluationDataset._run",
        "actor.begin(np.ones(env.num_envs, np.bool_))",
        "actor.begin(np.zeros(env.num_envs, np.bool_))",
        [
            "tests/agents/test_memory_of_episodes.py::test_episodes_of_an_evaluation_begin_without_a_memory"
        ],
    ),
    Mutant(
        "memory_survives_a_reset_by_others",
        "CollectingDataset._begin",
        "actor.begin(everywhere)",
        "actor.begin(~everywhere)",
        [
            "tests/agents/test_memory_of_episodes.py::test_episodes_of_an_evaluation_begin_without_a_memory"
        ],
    ),
    Mutant(
        "resets_within_sequences_are_learned_from",
        "RolloutDataset._minibatch_rows",
        "counted[rows].astype(np.float32)",
        "np.ones_like(counted[rows], np.float32)",
        [
            "tests/agents/test_memory_of_episodes.py::test_resets_within_a_sequence_are_not_learned_from"
        ],
    ),
    Mutant(
        "sequences_mix_environments",
        "as_sequences",
        "cut.swapaxes(1, 2).reshape(-1, length, *rest)",
        "cut.reshape(-1, length, *rest)",
        [
            "tests/agents/test_memory.py::test_training_sees_the_policy_that_acted"
        ],
    ),
    Mutant(
        "rewards_of_rollouts_are_scaled_over_ends",
        "RolloutDataset._take",
        "trajectory.ended,\n            trajectory.valid",
        "trajectory.terminated,\n            trajectory.valid",
        [
            "tests/agents/test_normalization.py::test_rewards_are_scaled_as_by_the_scaler_itself"
        ],
    ),
    Mutant(
        "scaled_returns_survive_a_reset",
        "RolloutDataset._cut",
        "self._scaler.begin(envs)",
        "pass",
        [
            "tests/agents/test_normalization.py::test_episodes_broken_off_leave_no_return_behind"
        ],
    ),
    Mutant(
        "each_pass_deals_alike",
        "shuffled_rows",
        "generator.permutation(valid)",
        "valid",
        ["tests/data/test_shuffling.py"],
    ),
    Mutant(
        "filled_up_rows_are_trained_on",
        "shuffled_rows",
        "counted = np.arange(columns * minibatches) < len(valid)",
        "counted = np.arange(columns * minibatches) >= 0",
        ["tests/data/test_shuffling.py"],
    ),
    Mutant(
        "a_normalizer_moves_in_evaluation",
        "EvaluationDataset._snapshot",
        "self._actor.sync()",
        "agent.begin_round(); self._actor.sync()",
        [
            "tests/agents/test_normalization.py::test_evaluating_and_acting_change_nothing"
        ],
    ),
    Mutant(
        "evaluation_acts_by_old_weights",
        "EvaluationDataset._snapshot",
        "self._actor.sync()",
        "pass",
        [
            "tests/data/test_evaluation.py::test_evaluation_of_one_dataset_follows_the_agent"
        ],
    ),
    Mutant(
        "evaluation_counts_rewards_of_resets",
        "EvaluationDataset._run",
        "counted = ~resetting",
        "counted = ~resetting | True",
        [
            "tests/data/test_evaluation.py::test_the_last_environments_play_one_more"
        ],
    ),
    Mutant(
        "evaluation_forgets_that_an_episode_ended",
        "EvaluationDataset._run",
        "current_return[index] = 0.0",
        "current_return[index] += 0.0",
        ["tests/data/test_evaluation.py::test_as_many_episodes_as_asked_for"],
    ),
    Mutant(
        "an_episode_that_is_over_is_learned_from",
        "EpisodeCollector._run",
        "running = running & ~(storage.terminated[t] | storage.truncated[t])",
        "running = running & ~storage.terminated[t]",
        [
            "tests/agents/test_reinforce.py::test_what_is_cut_off_goes_on_with_the_baseline"
        ],
    ),
    Mutant(
        "a_restart_does_not_end_the_scaled_return",
        "RewardScaler.scale_rollout",
        "            over |= anew\n",
        "            pass\n",
        [
            "tests/envs/test_reward_scaler.py::"
            "test_the_sum_ends_where_an_environment_begins_anew"
        ],
    ),
    Mutant(
        "a_gap_does_not_end_the_scaled_return",
        "CollectingDataset._take",
        "self._cut(broken.cut_before, broken.discarded_before)",
        "pass",
        [
            "tests/workers/test_lost_workers.py::"
            "test_scaled_rewards_do_not_add_up_over_a_gap"
        ],
    ),
    Mutant(
        "the_number_of_rewards_far_off_begins_anew",
        "RewardScaler.set_state",
        'int(state.get("outliers", 0))',
        "0",
        [
            "tests/envs/test_reward_scaler.py::"
            "test_the_number_of_rewards_far_off_goes_on"
        ],
    ),
    Mutant(
        "a_refused_rollout_moves_the_scale",
        "RewardScaler.scale_rollout",
        "            self.returns, self.moments = before\n            sizes",
        "            sizes",
        ["tests/envs/test_reward_scaler.py"],
    ),
]

MUTANTS = [*ENVS, *COLLECTING]
