"""Mistakes in what callbacks do, and in what they remember."""

from mutants.mutant import Mutant

_RESUMED = ["tests/callbacks/test_resumed_callbacks.py"]

MUTANTS = [
    Mutant(
        "the_cooldown_of_plateaus_is_forgotten",
        "callbacks/resumable.py",
        '("best", "wait", "cooldown_counter")',
        '("best", "wait")',
        _RESUMED,
    ),
    Mutant(
        "the_wait_of_plateaus_is_forgotten",
        "callbacks/resumable.py",
        '("best", "wait", "cooldown_counter")',
        '("best", "cooldown_counter")',
        _RESUMED,
    ),
    Mutant(
        "best_weights_are_forgotten",
        "callbacks/resumable.py",
        '        "best_weights",\n',
        "",
        _RESUMED,
    ),
    Mutant(
        "batches_since_the_last_saving_are_forgotten",
        "callbacks/resumable.py",
        '        "_batches_seen_since_last_saving",\n'
        '        "_last_batch_seen",\n    ),',
        '        "_last_batch_seen",\n    ),',
        _RESUMED,
    ),
    Mutant(
        "the_last_batch_is_forgotten",
        "callbacks/resumable.py",
        '        "_batches_seen_since_last_saving",\n'
        '        "_last_batch_seen",\n    ),',
        '        "_batches_seen_since_last_saving",\n    ),',
        _RESUMED,
    ),
    Mutant(
        "averages_are_taken_for_weights",
        "callbacks/resumable.py",
        '("_ema_weights_in_model",)',
        "()",
        _RESUMED,
    ),
    Mutant(
        "callbacks_of_a_class_have_one_state",
        "callbacks/resumable.py",
        "        seen[kind] += 1\n",
        "",
        _RESUMED,
    ),
    Mutant(
        "the_second_of_a_class_takes_the_state_of_the_first",
        "callbacks/resumable.py",
        "        for each in states:\n",
        '        for each in ({**s, "name": s["name"][:-1] + n} '
        'for n in "01" for s in states if s["name"][-1] == "0"):\n',
        _RESUMED,
    ),
    Mutant(
        "rows_after_the_checkpoint_stay",
        "callbacks/stock_files.py",
        'os.truncate(path, files["size"])',
        "pass",
        _RESUMED,
    ),
    Mutant(
        "tables_begin_anew",
        "callbacks/stock_files.py",
        "    own.append = True\n",
        "",
        _RESUMED,
    ),
    Mutant(
        "a_later_fit_adds_to_the_table",
        "callbacks/stock_files.py",
        "own.append, own.append_header = before",
        "pass",
        _RESUMED,
    ),
    Mutant(
        "columns_of_a_table_change",
        "callbacks/resumable.py",
        '"keras.CSVLogger": ("keys",)',
        '"keras.CSVLogger": ("append",)',
        _RESUMED,
    ),
    Mutant(
        "events_after_the_checkpoint_stay",
        "callbacks/stock_files.py",
        "EventWriter(Path(own.log_dir, name)).set_state(files.get(name, {}))",
        "pass",
        _RESUMED,
    ),
    Mutant(
        "callbacks_hear_twice_of_batches",
        "keras_rl2/training/fitting.py",
        "for update in range(done, of_epoch, each_call):",
        "for update in range(0, of_epoch, each_call):",
        _RESUMED,
    ),
    Mutant(
        "an_epoch_in_progress_begins_twice",
        "callbacks/checkpoint.py",
        'if not self._resumed["position"]["rounds"]:',
        "if self._resumed:",
        _RESUMED,
    ),
]
