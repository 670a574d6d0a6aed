"""Mistakes in replay and recorded data."""

from mutants.mutant import Mutant

REPLAY = [
    Mutant(
        "windows_discount_a_step_too_often",
        "keras_rl2/replay/replay_buffer.py",
        "gamma**i",
        "gamma ** (i + 1)",
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "windows_go_on_into_the_next_episode",
        "keras_rl2/replay/replay_buffer.py",
        "goes_on = goes_on & ~ended[i:]",
        "goes_on = goes_on & True",
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "windows_are_a_step_short",
        "keras_rl2/replay/replay_buffer.py",
        "(i == n_step - 1)",
        "(i >= n_step - 2)",
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "replay_takes_truncation_for_termination",
        "keras_rl2/replay/ring.py",
        '"terminated": np.asarray(trajectory.terminated),',
        '"terminated": np.asarray(trajectory.ended),',
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "replay_windows_cross_truncations",
        "keras_rl2/replay/ring.py",
        "np.logical_or(trajectory.terminated, trajectory.truncated)",
        "np.asarray(trajectory.terminated)",
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "replay_bootstraps_from_the_reset",
        "keras_rl2/replay/ring.py",
        "np.flatnonzero(slot >= 0)",
        "np.flatnonzero(slot < -1)",
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "replay_asks_the_step_after_the_window_for_its_end",
        "keras_rl2/replay/replay_buffer.py",
        "last = following - self.num_envs",
        "last = following",
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "replay_discards_a_step_of_the_episode_before",
        "keras_rl2/replay/replay_buffer.py",
        "first = ends[-1] + 1 if ends.size else 0",
        "first = ends[-1] if ends.size else 0",
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "replay_keeps_what_was_written_over",
        "keras_rl2/replay/replay_buffer.py",
        "            self._withdraw(rows[row] * self.num_envs + env)\n",
        "",
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "a_broken_off_episode_goes_on_in_replay",
        "keras_rl2/replay/replay_buffer.py",
        'ring.arrays["ended"][row, env] = True',
        'ring.arrays["ended"][row, env] |= False',
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "final_observations_are_forgotten_in_the_wrong_order",
        "keras_rl2/replay/ring.py",
        "self._oldest = (self._oldest + count) % max(self._room, 1)",
        "self._oldest = self._oldest % max(self._room, 1)",
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "final_observations_are_mixed_up_in_growing",
        "keras_rl2/replay/ring.py",
        "grown[: self._count] = array[slots]",
        "grown[: self._count] = array[: self._count]",
        ["tests/replay/test_replay_buffer.py"],
    ),
    Mutant(
        "sequences_begin_with_the_memory_of_a_later_step",
        "keras_rl2/replay/sequence_replay_buffer.py",
        "each[start % len(each), env] for each in self._states",
        "each[(start + 1) % len(each), env] for each in self._states",
        ["tests/replay/test_sequence_replay_buffer.py"],
    ),
    Mutant(
        "sequences_begin_before_the_oldest_step",
        "keras_rl2/replay/sequence_replay_buffer.py",
        "-(-oldest // self.stride), last // self.stride + 1",
        "oldest // self.stride, last // self.stride + 1",
        ["tests/replay/test_sequence_replay_buffer.py"],
    ),
    Mutant(
        "sum_tree_takes_the_item_before_a_boundary",
        "keras_rl2/replay/sum_tree.py",
        "right = query >= left",
        "right = query > left",
        ["tests/replay/test_sum_tree.py"],
    ),
    Mutant(
        "sum_tree_draws_by_stale_sums",
        "keras_rl2/replay/sum_tree.py",
        "np.cumsum(self._top, out=self._before[1:])",
        "np.cumsum(self._top[:-1], out=self._before[1:-1])",
        ["tests/replay/test_sum_tree.py"],
    ),
    Mutant(
        "sum_tree_draws_without_strata",
        "keras_rl2/replay/sum_tree.py",
        "np.arange(batch_size) + generator.random(batch_size)",
        "batch_size * generator.random(batch_size)",
        ["tests/replay/test_sum_tree.py"],
    ),
    Mutant(
        "priorities_without_their_exponent",
        "keras_rl2/replay/prioritized_replay_buffer.py",
        "self._tree.update(place, priority**self.alpha)",
        "self._tree.update(place, priority)",
        ["tests/replay/test_priorities.py"],
    ),
    Mutant(
        "priorities_of_signed_errors",
        "keras_rl2/replay/prioritized_replay_buffer.py",
        "np.abs(td_error) + self.epsilon",
        "np.maximum(td_error, 0.0) + self.epsilon",
        ["tests/replay/test_priorities.py"],
    ),
    Mutant(
        "new_transitions_have_a_priority_of_1",
        "keras_rl2/replay/prioritized_replay_buffer.py",
        "newest = self.largest_priority**self.alpha",
        "newest = 1.0",
        ["tests/replay/test_priorities.py"],
    ),
    Mutant(
        "stale_priorities_of_what_is_gone",
        "keras_rl2/replay/prioritized_replay_buffer.py",
        "np.where(drawable, newest, 0.0)",
        "np.where(drawable, newest, self._tree.get(place))",
        ["tests/replay/test_prioritized_replay_buffer.py"],
    ),
    Mutant(
        "late_errors_reach_a_newer_transition",
        "keras_rl2/replay/prioritized_replay_buffer.py",
        "present = self._ring.index_of(place) == index",
        "present = index >= 0",
        ["tests/replay/test_prioritized_replay_buffer.py"],
    ),
    Mutant(
        "importance_weights_are_inverted",
        "keras_rl2/replay/prioritized_replay_buffer.py",
        "(value.min() / value) ** beta",
        "(value / value.max()) ** beta",
        ["tests/replay/test_prioritized_replay_buffer.py"],
    ),
    Mutant(
        "beta_stays_at_its_beginning",
        "keras_rl2/replay/prioritized_replay_buffer.py",
        "self._batches += 1",
        "self._batches += 0",
        ["tests/replay/test_prioritized_replay_buffer.py"],
    ),
    Mutant(
        "errors_of_minibatches_are_not_fed_back",
        "keras_rl2/data/replay.py",
        "self.update_priorities(*taken)",
        "pass",
        [
            "tests/agents/test_prioritized_learning.py::test_errors_of_a_round_are_its_priorities"
        ],
    ),
    Mutant(
        "warming_up_by_the_untrained_policy",
        "keras_rl2/data/replay.py",
        "trained = updates > 0 or agent.initial_state(1)",
        "trained = True",
        [
            "tests/data/test_replay_dataset.py::test_the_warm_up_is_random_and_counts"
        ],
    ),
]

RECORDED = [
    Mutant(
        "ends_of_windows_are_looked_for_at_their_beginning",
        "keras_rl2/offline/transition_block.py",
        "rows.terminated.take(drawable + span - 1)",
        "rows.terminated.take(drawable)",
        [
            "tests/offline/test_offline.py::test_transitions_are_those_of_the_definition"
        ],
    ),
    Mutant(
        "recorded_windows_are_followed_by_the_next_step",
        "keras_rl2/offline/transition_block.py",
        "following = row + self._span.take(index)",
        "following = row + 1",
        [
            "tests/offline/test_offline.py::test_transitions_are_those_of_the_definition"
        ],
    ),
    Mutant(
        "recorded_windows_are_discounted_once",
        "keras_rl2/offline/transition_block.py",
        "form.gamma ** np.arange(form.n_step + 1.0)",
        "np.full(form.n_step + 1, form.gamma)",
        [
            "tests/offline/test_offline.py::test_transitions_are_those_of_the_definition"
        ],
    ),
    Mutant(
        "the_last_step_of_a_truncated_record_follows_itself",
        "keras_rl2/offline/array_source.py",
        "lengths = lengths - ~self._terminated[last]",
        "lengths = lengths - 0",
        [
            "tests/offline/test_offline.py::test_without_next_observations_the_last_of_a_truncated_episode_is_none"
        ],
    ),
    Mutant(
        "a_record_that_goes_on_elsewhere_is_not_cut",
        "keras_rl2/offline/array_source.py",
        "ended = ended | self._broken_off(count)",
        "ended = ended | False",
        [
            "tests/offline/test_offline.py::test_a_record_that_goes_on_elsewhere_is_cut_there"
        ],
    ),
    Mutant(
        "the_worst_episodes_alone",
        "keras_rl2/offline/offline_episodes.py",
        'np.argsort(-returns, kind="stable")',
        'np.argsort(returns, kind="stable")',
        ["tests/offline/test_offline.py::test_the_best_episodes_alone"],
    ),
    Mutant(
        "pieces_of_streamed_episodes_end_their_windows",
        "keras_rl2/offline/block_pool.py",
        "pieces[:, 2] + self._ahead, self._lengths[pieces[:, 0]]",
        "pieces[:, 2], self._lengths[pieces[:, 0]]",
        [
            "tests/offline/test_offline.py::test_transitions_are_those_of_the_definition"
        ],
    ),
    Mutant(
        "the_share_of_recorded_rows_is_that_of_new_ones",
        "keras_rl2/offline/mixed.py",
        "round(self.ratio * batch_size)",
        "round((1.0 - self.ratio) * batch_size)",
        ["tests/offline/test_mixed.py::test_each_minibatch_has_its_share"],
    ),
    Mutant(
        "minibatches_of_a_mix_are_of_the_round_before",
        "keras_rl2/offline/mixed.py",
        "        self.replay.take_steps()\n        self._ready.clear()\n",
        "        self.replay.take_steps()\n",
        [
            "tests/offline/test_mixed.py::"
            "test_minibatches_are_those_of_the_newest_round"
        ],
    ),
    Mutant(
        "minibatches_of_a_mix_outlive_a_state",
        "keras_rl2/offline/mixed.py",
        '        self.offline.set_state(state["offline"])\n'
        "        self._ready.clear()\n",
        '        self.offline.set_state(state["offline"])\n',
        [
            "tests/offline/test_mixed.py::"
            "test_minibatches_are_those_of_the_newest_round"
        ],
    ),
]

MUTANTS = [*REPLAY, *RECORDED]
