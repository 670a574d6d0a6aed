"""Mistakes in what callbacks do, and in what they remember."""

from mutants.mutant import Mutant

_RESUMED = ["tests/callbacks/test_resumed_callbacks.py"]

MUTANTS = [
    Mutant(
        "the_cooldown_of_plateaus_is_forgotten",
        "resumable:",
        '("best", "wait", "cooldown_counter")',
        '("best", "wait")',
        _RESUMED,
    ),
    Mutant(
        "the_wait_of_plateaus_is_forgotten",
        "resumable:",
        '("best", "wait", "cooldown_counter")',
        '("best", "cooldown_counter")',
        _RESUMED,
    ),
    Mutant(
        "best_weights_are_forgotten",
        "resumable:",
        '        "best_weights",\n',
        "",
        _RESUMED,
    ),
    Mutant(
        "batches_since_the_last_saving_are_forgotten",
        "resumable:",
        '        "_batches_seen_since_last_saving",\n'
        '        "_last_batch_seen",\n    ),',
        '        "_last_batch_seen",\n    ),',
        _RESUMED,
    ),
    Mutant(
        "the_last_batch_is_forgotten",
        "resumable:",
        '        "_batches_seen_since_last_saving",\n'
        '        "_last_batch_seen",\n    ),',
        '        "_batches_seen_since_last_saving",\n    ),',
        _RESUMED,
    ),
    Mutant(
        "averages_are_taken_for_weights",
        "resumable:",
        '("_ema_weights_in_model",)',
        "()",
        _RESUMED,
    ),
    Mutant(
        "callbacks_of_a_class_have_one_state",
        "_by_name",
        "        seen[kind] += 1\n",
        "",
        _RESUMED,
    ),
    Mutant(
        "the_second_of_a_class_takes_the_state_of_the_first",
        "CallbackStates.write",
        "        for each in states:\n",
        '        for each in ({**s, "name": s["name"][:-1] + n} '
        'for n in "01" for s in states if s["name"][-1] == "0"):\n',
        _RESUMED,
    ),
    Mutant(
        "rows_after_the_checkpoint_stay",
        "_is_cut",
        'os.truncate(path, files["size"])',
        "pass",
        _RESUMED,
    ),
    Mutant(
        "tables_begin_anew",
        "added_to",
        "    own.append = True\n",
        "",
        _RESUMED,
    ),
    Mutant(
        "a_later_fit_adds_to_the_table",
        "added_to",
        "own.append, own.append_header = before",
        "pass",
        _RESUMED,
    ),
    Mutant(
        "columns_of_a_table_change",
        "resumable:",
        '"keras.CSVLogger": ("keys",)',
        '"keras.CSVLogger": ("append",)',
        _RESUMED,
    ),
    Mutant(
        "events_after_the_checkpoint_stay",
        "stock_files:write",
        "EventWriter(Path(own.log_dir, name)).set_state(files.get(name, {}))",
        "pass",
        _RESUMED,
    ),
    Mutant(
        "callbacks_hear_twice_of_batches",
        "fitting:train",
        "done = run.rounds * dataset.updates_per_round",
        "done = 0 * dataset.updates_per_round",
        _RESUMED,
    ),
    Mutant(
        "an_epoch_in_progress_begins_twice",
        "Checkpoint._finish_putting_back",
        'if not self._resumed["position"]["rounds"]:',
        "if self._resumed:",
        _RESUMED,
    ),
]
