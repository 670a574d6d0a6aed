"""Mistakes in when a run is saved, in what is, and in going on from it."""

from mutants.mutant import Mutant

_CHECKPOINT = "tests/callbacks/test_checkpoint.py"
_WRITING = "tests/callbacks/test_checkpoint_writing.py"
_ENDED = "tests/callbacks/test_ended_runs.py"
_SIGNALS = ["tests/callbacks/test_signals.py"]
_ROUNDS = [f"{_CHECKPOINT}::TestSignals::test_in_each_round_of_an_epoch"]

CALLBACK = [
    Mutant(
        "checkpoints_are_an_epoch_late",
        "Checkpoint._is_due",
        "self._done() - done >= self.every_steps",
        "self._done() - done > self.every_steps",
        [f"{_WRITING}::TestWhen::test_as_soon_as_so_many_steps_are_taken"],
    ),
    Mutant(
        "checkpoints_are_late_by_the_clock",
        "Checkpoint._is_due",
        "self.clock() - seconds >= self.every_seconds",
        "self.clock() - seconds > self.every_seconds",
        [f"{_WRITING}::TestWhen::test_as_soon_as_so_many_seconds_are_over"],
    ),
    Mutant(
        "a_fit_begins_with_a_checkpoint_that_is_due",
        "Checkpoint.begin",
        "        self._is_saved = self._resumed is not None\n"
        "        self._saved_at = self.clock(), self._done()\n",
        "        self._is_saved = self._resumed is not None\n",
        [f"{_WRITING}::TestWhen::test_as_soon_as_so_many_seconds_are_over"],
    ),
    Mutant(
        "a_full_disk_is_tried_again_each_epoch",
        "Checkpoint._read",
        "        self._saved_at = self.clock(), self._done()\n        agent = ",
        "        if self._writer._failing_since is None:\n"
        "            self._saved_at = self.clock(), self._done()\n"
        "        agent = ",
        [
            f"{_WRITING}::TestFailures::"
            "test_it_is_not_tried_again_before_it_is_time"
        ],
    ),
    Mutant(
        "the_end_of_a_fit_is_not_saved",
        "Checkpoint.on_epoch_begin",
        "            self._save_beside(epoch)\n"
        "        self._is_saved = False\n",
        "            self._save_beside(epoch)\n",
        [f"{_WRITING}::TestBeside::test_the_end_of_fit_waits"],
    ),
    Mutant(
        "what_the_last_checkpoint_failed_of_is_not_said",
        "Checkpoint.watching",
        "                yield\n                self._writer.wait()\n",
        "                yield\n",
        [
            f"{_WRITING}::TestFailures::"
            "test_it_is_not_tried_again_before_it_is_time"
        ],
    ),
    Mutant(
        "a_signal_in_a_resumed_half_epoch_saves_what_is_not_put_back",
        "Checkpoint.on_train_batch_begin",
        "        if self._resumed is not None:\n            # Within an epoch",
        "        if self._resumed is not None and not self._stop.received:\n"
        "            # Within an epoch",
        _ROUNDS,
    ),
    Mutant(
        "half_an_epoch_is_put_back_before_each_round",
        "Checkpoint.on_train_batch_begin",
        "            self._finish_putting_back()\n"
        "            self._resumed = None\n"
        "        # Not at the end",
        "            self._finish_putting_back()\n        # Not at the end",
        _ROUNDS,
    ),
    Mutant(
        "rounds_before_a_signal_are_forgotten",
        "Checkpoint.on_train_batch_begin",
        "self._leave(self._epoch, rounds)",
        "self._leave(self._epoch)",
        _ROUNDS,
    ),
    Mutant(
        "environments_stay_open_after_sigterm",
        "Checkpoint._end",
        "if self._stop.received == signal.SIGTERM:",
        "if self._stop.received == signal.SIGINT:",
        [f"{_CHECKPOINT}::TestSignals::test_the_round_is_finished"],
    ),
    Mutant(
        "weights_that_are_not_finite_are_saved",
        "Checkpoint._read",
        'if not all(map(is_finite, agent["variables"])):',
        'if not any(map(is_finite, agent["variables"])):',
        [f"{_CHECKPOINT}::TestDamage::test_weights_that_are_none"],
    ),
    Mutant(
        "the_second_fit_of_a_program_takes_the_state_of_the_first",
        "Checkpoint._read",
        '"number_of_fit": self._fits - 1,',
        '"number_of_fit": 0,',
        [f"{_CHECKPOINT}::test_the_second_fit_of_a_program"],
    ),
    Mutant(
        "the_last_epoch_is_trained_again",
        "Checkpoint.on_train_end",
        "done = trained[-1] + 1 if trained else self._epoch",
        "done = trained[-1] if trained else self._epoch",
        [f"{_ENDED}::test_all_that_was_asked_for"],
    ),
    Mutant(
        "what_is_done_is_not_noted_as_done",
        "Checkpoint._end_after",
        "if epoch >= epochs or has_steps:",
        "if epoch > epochs or has_steps:",
        [f"{_ENDED}::test_all_that_was_asked_for"],
    ),
    Mutant(
        "steps_of_earlier_fits_count",
        "Checkpoint._end_after",
        "(env_steps(self._agent) or 0) - begin.env_steps >= total_steps",
        "(env_steps(self._agent) or 0) >= total_steps",
        [f"{_ENDED}::test_a_second_fit_counts_its_own_steps"],
    ),
    Mutant(
        "who_may_have_stopped_is_not_noted",
        "Checkpoint.end_at",
        "{described(c): c for c in callbacks if may_stop(c)}",
        "{}",
        [f"{_ENDED}::test_another_stop_goes_on"],
    ),
    Mutant(
        "metrics_go_on_from_the_epoch_before",
        "Checkpoint.on_epoch_begin",
        "                cast(Any, self.model).reset_metrics()\n",
        "                pass\n",
        _ROUNDS,
    ),
    Mutant(
        "tables_of_a_finished_fit_begin_anew",
        "Checkpoint.on_train_begin",
        "has_ended=self._position.is_past_all,",
        "has_ended=False,",
        [
            "tests/callbacks/test_resumed_callbacks.py::"
            "TestTables::test_two_fits_of_a_program"
        ],
    ),
]

WRITER = [
    Mutant(
        "a_checkpoint_is_of_a_later_moment",
        "CheckpointWriter.write_beside",
        "{name: array.copy() for name, array in arrays.items()}",
        "dict(arrays)",
        [f"{_WRITING}::TestBeside::test_what_is_written_is_a_copy"],
    ),
    Mutant(
        "who_lost_the_lease_writes_on",
        "CheckpointWriter._write",
        "        self._lock.check()\n        ended = ",
        "        ended = ",
        [
            f"{_WRITING}::TestOneWriter::"
            "test_a_lease_that_was_taken_over_ends_the_run"
        ],
    ),
    Mutant(
        "who_lost_the_lease_notes_an_end",
        "CheckpointWriter.end_by",
        "            self._lock.check()\n            self._folder.note_end",
        "            self._folder.note_end",
        [
            f"{_WRITING}::TestOneWriter::"
            "test_a_lease_that_was_taken_over_ends_the_run"
        ],
    ),
    Mutant(
        "failures_add_up_though_some_were_written",
        "CheckpointWriter._write",
        "        self._failing_since = None\n        if self._after_save",
        "        if self._after_save",
        [f"{_WRITING}::TestFailures::test_room_in_between_is_enough"],
    ),
    Mutant(
        "an_hour_of_failures_begins_with_each",
        "CheckpointWriter.warn",
        "if self._failing_since is None:",
        "if True:",
        [f"{_WRITING}::TestFailures::test_an_hour_of_them_ends_the_run"],
    ),
    Mutant(
        "an_hour_of_failures_is_not_enough",
        "CheckpointWriter.report",
        "self._clock() - since >= _ENOUGH_SECONDS",
        "self._clock() - since > _ENOUGH_SECONDS",
        [f"{_WRITING}::TestFailures::test_an_hour_of_them_ends_the_run"],
    ),
    Mutant(
        "a_folder_is_given_back_while_it_is_written_to",
        "CheckpointWriter.alone",
        "            finally:\n                self._join()\n",
        "            finally:\n                pass\n",
        [
            f"{_WRITING}::TestOneWriter::"
            "test_ctrl_c_waits_before_it_is_given_back"
        ],
    ),
    Mutant(
        "who_asks_for_a_checkpoint_takes_no_lock",
        "CheckpointWriter.write",
        "with contextlib.nullcontext() if self._lock.is_held else self._lock:",
        "with contextlib.nullcontext():",
        [f"{_WRITING}::TestAfterSave::test_of_one_that_is_asked_for"],
    ),
    Mutant(
        "what_failed_beside_training_is_not_said",
        "CheckpointWriter.write_beside.write",
        "                self._error = error\n",
        "                del error\n",
        [f"{_WRITING}::TestBeside::test_a_fault_is_raised_at_the_next_step"],
    ),
]

END = [
    Mutant(
        "a_run_is_done_with_fewer_epochs_than_are_asked_for",
        "RunEnd.is_one_for",
        "asks_for_more = epochs > self.epochs",
        "asks_for_more = epochs >= self.epochs",
        [f"{_ENDED}::test_stopped_by_a_callback"],
    ),
    Mutant(
        "a_run_is_never_done_with_its_steps",
        "RunEnd.is_one_for",
        "asks_for_more = total_steps > self.total_steps",
        "asks_for_more = total_steps >= self.total_steps",
        [f"{_ENDED}::test_steps_of_whole_episodes"],
    ),
    Mutant(
        "a_run_that_was_stopped_rests_whatever_stops_it",
        "RunEnd.is_one_for",
        "return not asks_for_more and {*self.stops} <= {*callbacks}",
        "return not asks_for_more",
        [f"{_ENDED}::test_another_stop_goes_on"],
    ),
    Mutant(
        "a_stop_that_was_used_is_another_one",
        "described",
        "abs(callback.min_delta)",
        "callback.min_delta",
        [f"{_ENDED}::test_the_same_callback_used_again"],
    ),
    Mutant(
        "who_did_not_stop_a_run_is_said_to_have",
        "who_stopped",
        "and each.stopped_epoch > 0",
        "and each.stopped_epoch >= 0",
        [f"{_ENDED}::test_the_one_of_two_that_stopped"],
    ),
    Mutant(
        "a_fit_counts_steps_from_the_first",
        "Run.beginning",
        "env_steps=env_steps,",
        "env_steps=0,",
        [f"{_ENDED}::test_a_second_fit_counts_its_own_steps"],
    ),
    Mutant(
        "the_rounds_of_a_position_are_forgotten",
        "Run.at",
        "dataclasses.replace(self, epoch=epoch, rounds=rounds)",
        "dataclasses.replace(self, epoch=epoch)",
        _ROUNDS,
    ),
    Mutant(
        "another_environment_is_the_same_training",
        "identity",
        '        "environment": getattr(env, "name", None),\n',
        "",
        [f"{_ENDED}::TestAnotherRun::test_what_differs_is_said"],
    ),
    Mutant(
        "another_seed_is_the_same_training",
        "identity",
        '        "seed of the dataset": getattr(rounds, "seed", None),\n',
        "",
        [f"{_ENDED}::TestAnotherRun::test_what_differs_is_said"],
    ),
    Mutant(
        "the_second_signal_is_noted_too",
        "StopSignal._note",
        "        self.received = number\n        self._restore()\n",
        "        self.received = number\n",
        _SIGNALS,
    ),
    Mutant(
        "a_signal_of_the_last_fit_ends_the_next",
        "StopSignal.noticed",
        '        """\n        self.received = None\n',
        '        """\n',
        _SIGNALS,
    ),
    Mutant(
        "a_signal_that_is_ignored_is_heard",
        "StopSignal.noticed",
        "not in (None, signal.SIG_IGN)",
        "is not None",
        _SIGNALS,
    ),
    Mutant(
        "handlers_stay_after_an_error",
        "StopSignal.noticed",
        "        try:\n            yield\n        finally:\n"
        "            self._restore()\n",
        "        yield\n        self._restore()\n",
        _SIGNALS,
    ),
]

MUTANTS = [*CALLBACK, *WRITER, *END]
