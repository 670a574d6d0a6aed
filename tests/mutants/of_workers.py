"""Mistakes in the processes that step environments."""

from mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        "final_observations_of_workers_follow_one_another",
        "_index_among_all",
        "step * num_envs + env + share.first",
        "step * share.num_envs + env + share.first",
        ["tests/workers/test_equality.py::test_shares_are_put_together"],
    ),
    Mutant(
        "all_workers_reset_with_one_seed",
        "WorkerCollector._reset_of",
        "return (self._reset[0] + share.first,)",
        "return (self._reset[0],)",
        ["tests/workers/test_equality.py::test_shares_are_put_together"],
    ),
    Mutant(
        "whoever_plays_resets_all_workers_with_one_seed",
        "WorkerEnv._reset",
        "None if seed is None else seed + share.first",
        "seed",
        ["tests/workers/test_equality.py::test_whoever_plays_sees_the_same"],
    ),
    Mutant(
        "episodes_go_on_in_other_environments",
        "Worker.collect",
        "broken.cut_before[:] = True",
        "broken.cut_before[:] = False",
        ["tests/workers/test_lost_workers.py"],
    ),
    Mutant(
        "environments_that_replace_others_repeat_them",
        "WorkerPool._making",
        "(self._seed, self.losses, index)",
        "(self._seed, index)",
        ["tests/workers/test_lost_workers.py"],
    ),
    Mutant(
        "environments_that_replace_others_are_not_seeded",
        "Worker._seed_of",
        "self._next_seed(0) if seed is None and not begun else seed",
        "seed",
        ["tests/workers/test_lost_workers.py"],
    ),
    Mutant(
        "a_plan_stays_in_memory_that_is_written_to_again",
        "Worker.plan",
        "copy.deepcopy(plan.policy).actor()",
        "plan.policy.actor()",
        ["tests/workers/test_equality.py"],
    ),
    Mutant(
        "a_state_stays_in_memory_that_is_written_to_again",
        "Worker.set_state",
        "state = plain_data.copied(state)",
        "pass",
        ["tests/workers/test_resuming.py::test_states_may_be_given_again"],
    ),
    Mutant(
        "a_worker_that_replaces_another_does_not_know_the_plan",
        "WorkerPool._take_over",
        "if self._plan is not None:",
        "if self._plan is None:",
        ["tests/workers/test_lost_workers.py"],
    ),
    Mutant(
        "what_always_dies_is_replaced_too_often",
        "WorkerPool._lose",
        "if self._losses_in_a_row[index] > MOST_LOSSES:",
        "if self._losses_in_a_row[index] > 3 * MOST_LOSSES:",
        [
            "tests/workers/test_lost_workers.py::test_what_is_always_lost_is_an_error"
        ],
    ),
    Mutant(
        "fewer_workers_than_asked_for_go_on",
        "WorkerPool._give_away",
        "if left < self._min_workers:",
        "if left < 1:",
        [
            "tests/workers/test_faults.py::test_too_few_are_an_error_within_ten_seconds"
        ],
    ),
    Mutant(
        "processes_go_on_after_ctrl_c",
        "WorkerPool.break_off",
        "if isinstance(error, Exception) or self.closed:",
        "if True:",
        ["tests/workers/test_lost_workers.py"],
    ),
    Mutant(
        "weights_of_dropped_rollouts_are_kept",
        "WorkerPool._end",
        "            shared.calls -= 1\n",
        "            shared.calls -= not call.dropped\n",
        ["tests/workers/test_lost_workers.py"],
    ),
    Mutant(
        "workers_of_refused_settings_go_on",
        "CollectingDataset._closing_if_refused",
        "isinstance(self.env, WorkerEnv):\n                self.env.close()",
        "False:\n                self.env.close()",
        ["tests/workers/test_errors.py"],
    ),
    Mutant(
        "a_worker_is_a_rollout_ahead_of_others",
        "WorkerCollector.begin",
        "            self.drop(error)\n            self._resets_seen = -1\n",
        "",
        ["tests/workers/test_lost_workers.py"],
    ),
    Mutant(
        "a_block_is_written_to_before_it_was_read",
        "SharedMemorySender._block",
        "            self._free.remove(block)\n",
        "            pass\n",
        ["tests/workers/test_processes.py::test_blocks_are_written_to_again"],
    ),
    Mutant(
        "steps_of_workers_are_not_counted",
        "WorkerCollector.finish",
        "        self._adapter.steps += self.horizon\n",
        "",
        [
            "tests/workers/test_lost_workers.py::"
            "test_new_episodes_begin_where_a_rollout_was_dropped"
        ],
    ),
    Mutant(
        "after_a_dropped_rollout_old_episodes_go_on",
        "WorkerCollector.drop",
        "        if self._rollouts:\n            self._resets_seen = -1\n",
        "",
        [
            "tests/workers/test_lost_workers.py::"
            "test_new_episodes_begin_where_a_rollout_was_dropped"
        ],
    ),
]
