"""Mistakes in replay and recorded data."""

from mutants.mutant import Mutant

REPLAY = [
    Mutant(
        "windows_discount_a_step_too_often",
        "complete_windows",
        "gamma**i",
        "gamma ** (i + 1)",
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "windows_go_on_into_the_next_episode",
        "complete_windows",
        "goes_on = goes_on & ~ended[i:]",
        "goes_on = goes_on & True",
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "windows_are_a_step_short",
        "complete_windows",
        "(i == n_step - 1)",
        "(i >= n_step - 2)",
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "replay_takes_truncation_for_termination",
        "Ring.checked",
        '"terminated": np.asarray(trajectory.terminated),',
        '"terminated": np.asarray(trajectory.ended),',
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "replay_windows_cross_truncations",
        "Ring.checked",
        "np.logical_or(trajectory.terminated, trajectory.truncated)",
        "np.asarray(trajectory.terminated)",
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "replay_bootstraps_from_the_reset",
        "Ring.observations",
        "np.flatnonzero(slot >= 0)",
        "np.flatnonzero(slot < -1)",
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "replay_asks_the_step_after_the_window_for_its_end",
        "ReplayBuffer._gather",
        "last = following - self.num_envs",
        "last = following",
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "replay_discards_a_step_of_the_episode_before",
        "ReplayBuffer.discard_episodes",
        "first = ends[-1] + 1 if ends.size else 0",
        "first = ends[-1] if ends.size else 0",
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "replay_keeps_what_was_written_over",
        "ReplayBuffer.extend",
        "            self._withdraw(rows[row] * self.num_envs + env)\n",
        "",
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "a_broken_off_episode_goes_on_in_replay",
        "ReplayBuffer.cut",
        'ring.arrays["ended"][row, env] = True',
        'ring.arrays["ended"][row, env] |= False',
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "final_observations_are_forgotten_in_the_wrong_order",
        "_FinalObservations.drop",
        "self._oldest = (self._oldest + count) % max(self._room, 1)",
        "self._oldest = self._oldest % max(self._room, 1)",
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "final_observations_are_mixed_up_in_growing",
        "_FinalObservations.grow",
        "grown[: self._count] = array[slots]",
        "grown[: self._count] = array[: self._count]",
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "sequences_begin_with_the_memory_of_a_later_step",
        "SequenceReplayBuffer.sample",
        "each[start % len(each), env] for each in self._states",
        "each[(start + 1) % len(each), env] for each in self._states",
        ["tests/replay/test_sequence_replay_buffer.py"],
    ),
    Mutant(
        "sequences_begin_before_the_oldest_step",
        "SequenceReplayBuffer._starts",
        "-(-oldest // self.stride), last // self.stride + 1",
        "oldest // self.stride, last // self.stride + 1",
        ["tests/replay/test_sequence_replay_buffer.py"],
    ),
    Mutant(
        "sum_tree_takes_the_item_before_a_boundary",
        "SumTree._descend_by_left",
        "right = query >= left",
        "right = query > left",
        ["tests/replay/test_sum_tree.py"],
    ),
    Mutant(
        "sum_tree_draws_by_stale_sums",
        "SumTree.update",
        "np.cumsum(self._top, out=self._before[1:])",
        "np.cumsum(self._top[:-1], out=self._before[1:-1])",
        ["tests/replay/test_sum_tree.py"],
    ),
    Mutant(
        "sum_tree_draws_without_strata",
        "SumTree.draw",
        "np.arange(batch_size) + generator.random(batch_size)",
        "batch_size * generator.random(batch_size)",
        ["tests/replay/test_sum_tree.py"],
    ),
    Mutant(
        "priorities_without_their_exponent",
        "PrioritizedReplayBuffer.update_priorities",
        "self._tree.update(place, priority**self.alpha)",
        "self._tree.update(place, priority)",
        ["tests/replay/test_priorities.py"],
    ),
    Mutant(
        "priorities_of_signed_errors",
        "PrioritizedReplayBuffer.update_priorities",
        "np.abs(td_error) + self.epsilon",
        "np.maximum(td_error, 0.0) + self.epsilon",
        ["tests/replay/test_priorities.py"],
    ),
    Mutant(
        "new_transitions_have_a_priority_of_1",
        "PrioritizedReplayBuffer._refresh",
        "newest = self.largest_priority**self.alpha",
        "newest = 1.0",
        ["tests/replay/test_priorities.py"],
    ),
    Mutant(
        "stale_priorities_of_what_is_gone",
        "PrioritizedReplayBuffer._refresh",
        "np.where(drawable, newest, 0.0)",
        "np.where(drawable, newest, self._tree.get(place))",
        ["tests/replay/test_prioritized_replay_buffer.py"],
    ),
    Mutant(
        "late_errors_reach_a_newer_transition",
        "PrioritizedReplayBuffer.update_priorities",
        "present = self._ring.index_of(place) == index",
        "present = index >= 0",
        ["tests/replay/test_prioritized_replay_buffer.py"],
    ),
    Mutant(
        "importance_weights_are_inverted",
        "PrioritizedReplayBuffer.sample",
        "(value.min() / value) ** beta",
        "(value / value.max()) ** beta",
        ["tests/replay/test_prioritized_replay_buffer.py"],
    ),
    Mutant(
        "beta_stays_at_its_beginning",
        "PrioritizedReplayBuffer.sample",
        "self._batches += 1",
        "self._batches += 0",
        ["tests/replay/test_prioritized_replay_buffer.py"],
    ),
    Mutant(
        "errors_of_minibatches_are_not_fed_back",
        "ReplayDataset._feed_back",
        "self.update_priorities(*taken)",
        "pass",
        [
            "tests/agents/test_prioritized_learning.py::test_errors_of_a_round_are_its_priorities"
        ],
    ),
    Mutant(
        "warming_up_by_the_untrained_policy",
        "ReplayDataset.fill",
        "trained = updates > 0 or agent.initial_state(1)",
        "trained = True",
        [
            "tests/data/test_replay_dataset.py::test_the_warm_up_is_random_and_counts"
        ],
    ),
]

AHEAD = [
    Mutant(
        "draws_ahead_reach_what_is_overwritten_by_then",
        "ReplayBuffer._draw_numbers",
        "oldest = max(0, newest - self.capacity)",
        "oldest = self._ring.oldest",
        [
            "tests/replay/test_replay_buffer.py::"
            "test_draws_ahead_are_those_after_further_steps"
        ],
    ),
    Mutant(
        "draws_ahead_of_discarded_steps_are_kept",
        "ReplayBuffer.sample_ahead",
        "if self._is_missing(index).any():",
        "if not len(index):",
        [
            "tests/replay/test_replay_buffer.py::"
            "test_draws_ahead_are_those_after_further_steps"
        ],
    ),
    Mutant(
        "the_first_further_step_is_not_filled_in",
        "replay_rounds:_filled_in",
        "further >= 0",
        "further > 0",
        [
            "tests/graph/test_several_rounds.py::"
            "test_they_equal_rounds_of_a_call_each"
        ],
    ),
    Mutant(
        "rounds_of_replay_overwrite_each_other",
        "ReplayRounds.__call__",
        'carried["step"] + self._horizon',
        'carried["step"]',
        [
            "tests/graph/test_several_rounds.py::"
            "test_they_equal_rounds_of_a_call_each"
        ],
    ),
    Mutant(
        "rounds_of_a_call_do_not_begin",
        "_one_after_another",
        "        begin_round()\n",
        "",
        [
            "tests/graph/test_several_rounds.py::"
            "test_they_equal_rounds_of_a_call_each"
        ],
        slow=True,
    ),
]

RECORDED = [
    Mutant(
        "ends_of_windows_are_looked_for_at_their_beginning",
        "_windows",
        "rows.terminated.take(drawable + span - 1)",
        "rows.terminated.take(drawable)",
        [
            "tests/offline/test_offline.py::test_transitions_are_those_of_the_definition"
        ],
    ),
    Mutant(
        "recorded_windows_are_followed_by_the_next_step",
        "TransitionBlock.take",
        "following = row + self._span.take(index)",
        "following = row + 1",
        [
            "tests/offline/test_offline.py::test_transitions_are_those_of_the_definition"
        ],
    ),
    Mutant(
        "recorded_windows_are_discounted_once",
        "_windows",
        "form.gamma ** np.arange(form.n_step + 1.0)",
        "np.full(form.n_step + 1, form.gamma)",
        [
            "tests/offline/test_offline.py::test_transitions_are_those_of_the_definition"
        ],
    ),
    Mutant(
        "the_last_step_of_a_truncated_record_follows_itself",
        "ArraySource._find_episodes",
        "lengths = lengths - ~self._terminated[last]",
        "lengths = lengths - 0",
        [
            "tests/offline/test_offline.py::test_without_next_observations_the_last_of_a_truncated_episode_is_none"
        ],
    ),
    Mutant(
        "a_record_that_goes_on_elsewhere_is_not_cut",
        "ArraySource._find_episodes",
        "ended = ended | self._broken_off(count)",
        "ended = ended | False",
        [
            "tests/offline/test_offline.py::test_a_record_that_goes_on_elsewhere_is_cut_there"
        ],
    ),
    Mutant(
        "the_worst_episodes_alone",
        "choose",
        'np.argsort(-returns, kind="stable")',
        'np.argsort(returns, kind="stable")',
        ["tests/offline/test_offline.py::test_the_best_episodes_alone"],
    ),
    Mutant(
        "pieces_of_streamed_episodes_end_their_windows",
        "BlockPool._block_of",
        "pieces[:, 2] + self._ahead, self._lengths[pieces[:, 0]]",
        "pieces[:, 2], self._lengths[pieces[:, 0]]",
        [
            "tests/offline/test_offline.py::test_transitions_are_those_of_the_definition"
        ],
    ),
    Mutant(
        "the_share_of_recorded_rows_is_that_of_new_ones",
        "MixedDataset._recorded_of",
        "round(self.ratio * batch_size)",
        "round((1.0 - self.ratio) * batch_size)",
        ["tests/offline/test_mixed.py::test_each_minibatch_has_its_share"],
    ),
    Mutant(
        "minibatches_of_a_mix_are_of_the_round_before",
        "MixedDataset.refresh",
        "            self.replay.take_steps()\n"
        "            self._ready.clear()\n",
        "            self.replay.take_steps()\n",
        [
            "tests/offline/test_mixed.py::"
            "test_minibatches_are_those_of_the_newest_round"
        ],
    ),
    Mutant(
        "minibatches_of_a_mix_outlive_a_state",
        "MixedDataset.set_state",
        '        self.offline.set_state(state["offline"])\n'
        "        self._ready.clear()\n",
        '        self.offline.set_state(state["offline"])\n',
        [
            "tests/offline/test_mixed.py::"
            "test_minibatches_are_those_of_the_newest_round"
        ],
    ),
]

MUTANTS = [*REPLAY, *AHEAD, *RECORDED]
