"""Mistakes in files: whole or not there, one writer, nothing lost of rows."""

from mutants.mutant import Mutant

_FOLDER = "tests/files/test_checkpoint_folder.py"
_ATOMIC = "tests/files/test_atomic_files.py"
_LOCK = ["tests/files/test_writer_lock.py"]
_LOG = ["tests/files/test_segment_log.py"]
_PLAIN = ["tests/files/test_plain_data.py"]
_LATE = ["tests/replay/test_late_rows.py"]
_RING = ["tests/replay/test_ring_log.py"]

FOLDER = [
    Mutant(
        "names_that_begin_alike_are_checkpoints",
        "CheckpointFolder.paths",
        "_NAME.fullmatch(each.name)",
        "_NAME.match(each.name)",
        [
            "tests/callbacks/test_checkpoint_writing.py::test_strangers_in_the_folder"
        ],
    ),
    Mutant(
        "checkpoints_are_sorted_by_their_letters",
        "CheckpointFolder.paths",
        "return sorted(named, key=_number)",
        "return sorted(named)",
        [f"{_FOLDER}::test_numbers_of_more_digits_are_newer"],
    ),
    Mutant(
        "numbers_are_given_again",
        "CheckpointFolder.write_parts",
        "number = _number(paths[-1]) + 1 if paths else 0",
        "number = len(paths)",
        [f"{_FOLDER}::test_only_the_newest_are_kept"],
    ),
    Mutant(
        "one_checkpoint_more_is_kept",
        "CheckpointFolder._tidy",
        "for old in paths[: -self.keep]:",
        "for old in paths[: -self.keep - 1]:",
        [f"{_FOLDER}::test_only_the_newest_are_kept"],
    ),
    Mutant(
        "rows_of_older_checkpoints_are_removed",
        "CheckpointFolder._tidy",
        "for path in paths[-self.keep :]:",
        "for path in paths[-1:]:",
        [f"{_FOLDER}::test_rows_of_the_one_before_stay"],
    ),
    Mutant(
        "rows_that_a_later_version_needs_are_removed",
        "CheckpointFolder._tidy",
        "                # It may refer to files unknown to this version.\n"
        "                return\n",
        "                continue\n",
        [f"{_FOLDER}::test_a_later_version"],
    ),
    Mutant(
        "rows_count_as_written_before_the_checkpoint_is",
        "CheckpointFolder.write_parts",
        '        segments = log.write(f"{number:08d}")\n',
        '        segments = log.write(f"{number:08d}")\n'
        "        log.accept(segments)\n",
        ["tests/files/test_checkpoint_write_failures.py::test_at_every_call"],
    ),
    Mutant(
        "a_damaged_manifest_is_believed",
        "_read_manifest",
        "genuine = _signed(content) == given",
        "genuine = True",
        [f"{_FOLDER}::test_no_flipped_bit_is_accepted"],
    ),
    Mutant(
        "only_sizes_of_files_are_compared",
        "checkpoint_folder:_check_members",
        'size != member["bytes"] or digest(path) != member["sha256"]',
        'size != member["bytes"]',
        [f"{_FOLDER}::test_no_flipped_bit_is_accepted"],
    ),
    Mutant(
        "links_are_followed",
        "CheckpointFolder.read",
        "        _refuse_links(path)\n",
        "",
        [
            "tests/callbacks/test_checkpoint_writing.py::test_a_link_with_the_name_of_one"
        ],
    ),
    Mutant(
        "the_end_that_was_noted_is_written_over",
        "CheckpointFolder.note_end",
        'if content.get("ended") is None:',
        "if True:",
        [f"{_FOLDER}::test_the_end_that_was_noted_first_stays"],
    ),
    Mutant(
        "checkpoints_are_removed_under_their_writer",
        "CheckpointFolder.clear",
        "with WriterLock(self.directory):",
        "if True:",
        [
            "tests/callbacks/test_checkpoint_writing.py::"
            "TestOneWriter::test_others_do_not_remove_it"
        ],
    ),
    Mutant(
        "an_unreadable_disk_is_damage",
        "CheckpointFolder.newest",
        "            except (ValueError, *_MISSING) as error:\n"
        "                if",
        "            except (ValueError, OSError) as error:\n"
        "                if",
        [f"{_FOLDER}::test_an_unreadable_disk_is_no_damage"],
    ),
]

ATOMIC = [
    Mutant(
        "names_are_not_waited_for",
        "replacing",
        "            _sync_entry(path.parent)\n",
        "",
        [f"{_ATOMIC}::TestOnTheDisk::test_a_file"],
    ),
    Mutant(
        "what_is_written_is_not_waited_for",
        "replacing",
        "            sync(unfinished)\n",
        "",
        [f"{_ATOMIC}::TestOnTheDisk::test_a_file"],
    ),
    Mutant(
        "files_of_a_folder_are_not_waited_for",
        "sync",
        "        for each in path.iterdir():\n            sync(each)\n",
        "        pass\n",
        [f"{_ATOMIC}::TestOnTheDisk::test_a_folder"],
    ),
    Mutant(
        "a_disk_that_fails_is_one_that_waits_for_files_only",
        "_sync_entry",
        "if error.errno not in (errno.EINVAL, errno.ENOTSUP):",
        "if not error.errno:",
        [f"{_ATOMIC}::TestOnTheDisk::test_a_disk_that_waits_for_files_only"],
    ),
    Mutant(
        "what_others_write_is_taken_for_abandoned",
        "_lock",
        "flock(descriptor, LOCK_EX | LOCK_NB)",
        "pass",
        [f"{_ATOMIC}::TestKilled::test_what_it_left_is_removed"],
    ),
    Mutant(
        "links_of_abandoned_folders_are_followed",
        "_lock",
        "os.O_RDONLY | os.O_NOFOLLOW",
        "os.O_RDONLY",
        [f"{_ATOMIC}::TestKilled::test_links_of_that_name_are_left_alone"],
    ),
    Mutant(
        "the_only_copy_is_removed",
        "_folder_beside",
        "        if os.path.lexists(path) or not os.path.lexists(replaced):\n"
        "            shutil",
        "        if True:\n            shutil",
        [f"{_ATOMIC}::test_what_cannot_be_named_back_is_kept"],
    ),
    Mutant(
        "an_old_folder_does_not_come_back",
        "_rename",
        "        if os.path.lexists(replaced):\n"
        "            os.rename(replaced, path)\n        raise",
        "        raise",
        [f"{_ATOMIC}::test_a_folder_that_cannot_be_renamed_comes_back"],
    ),
    Mutant(
        "a_killed_process_takes_the_old_folder_along",
        "atomic_files:_remove",
        "        if not os.path.lexists(path):\n"
        "            os.rename(replaced, path)\n",
        "        pass\n",
        [f"{_ATOMIC}::TestKilled::test_a_folder_gets_its_name_back"],
    ),
    Mutant(
        "what_is_replaced_may_be_read_by_all",
        "_rename",
        "os.chmod(unfinished, stat.S_IMODE(path.stat().st_mode))",
        "pass",
        [f"{_ATOMIC}::TestKinds::test_who_may_read_stays"],
    ),
    Mutant(
        "a_file_takes_the_place_of_a_folder",
        "replacing",
        "            _check_kind(unfinished, path)\n",
        "",
        [
            f"{_ATOMIC}::TestKinds::test_a_folder_takes_no_files_place",
            f"{_ATOMIC}::TestKinds::test_a_file_takes_no_folders_place",
        ],
    ),
    Mutant(
        "a_folder_that_others_remove_before_its_lock_is_an_error",
        "_locked_folder",
        "except (BlockingIOError, FileNotFoundError):",
        "except BlockingIOError:",
        [f"{_ATOMIC}::test_a_folder_that_was_taken_for_an_abandoned_one"],
    ),
    Mutant(
        "a_folder_that_others_have_removed_is_written_to",
        "_locked_folder",
        "        if beside.exists():\n",
        "        if True:\n",
        [f"{_ATOMIC}::test_a_folder_that_was_taken_for_an_abandoned_one"],
    ),
]

LOCK = [
    Mutant(
        "who_lost_the_lease_removes_who_has_it",
        "WriterLock.__exit__",
        "                if not _is_lost(held):\n",
        "                if True:\n",
        _LOCK,
    ),
    Mutant(
        "a_lease_of_elsewhere_is_not_waited_for",
        "WriterLock._taken",
        "timeout=1.5 * _LEASE_SECONDS",
        "timeout=0.5 * _LEASE_SECONDS",
        _LOCK,
    ),
    Mutant(
        "a_lock_is_left_behind",
        "WriterLock.__exit__",
        "Path(held.lock_file).unlink(missing_ok=True)",
        "pass",
        _LOCK,
    ),
    Mutant(
        "an_empty_folder_is_left_behind",
        "WriterLock.__exit__",
        "        if self._has_made_directory:\n",
        "        if False:\n",
        _LOCK,
    ),
    Mutant(
        "what_could_not_be_entered_stays_locked",
        "WriterLock.__enter__",
        "            self.__exit__(None, None, None)\n",
        "",
        _LOCK,
    ),
]

ROWS = [
    Mutant(
        "rows_that_could_not_be_written_are_kept",
        "SegmentLog.write",
        "pending, self._pending = self._pending, {}",
        "pending = self._pending",
        _LOG,
    ),
    Mutant(
        "a_row_too_many_is_forgotten",
        "SegmentLog.forget",
        "if s.stop >= before",
        "if s.stop > before",
        _LOG,
    ),
    Mutant(
        "only_sizes_of_segments_are_compared",
        "SegmentLog.check",
        "if size != segment.bytes or digest(path) != segment.sha256:",
        "if size != segment.bytes:",
        _LOG,
    ),
    Mutant(
        "segments_elsewhere_are_read",
        "size_of",
        "path.is_file() and not path.is_symlink()",
        "path.is_file()",
        _LOG,
    ),
    Mutant(
        "a_log_is_its_newest_segment",
        "SegmentLog.write",
        "[*self.segments.get(name, []), segment]",
        "[segment]",
        _LOG,
    ),
    Mutant(
        "the_next_row_to_be_read_is_not_kept",
        "LateRows.keep",
        "self._read <= index < self.shape[0]",
        "self._read < index < self.shape[0]",
        _LATE,
    ),
    Mutant(
        "a_row_that_is_kept_is_overwritten",
        "LateRows.keep",
        "if is_unread and index not in self._kept:",
        "if is_unread:",
        _LATE,
    ),
    Mutant(
        "rows_are_kept_without_a_copy",
        "LateRows.keep",
        "self._kept[index] = self._array[at].copy()",
        "self._kept[index] = self._array[at]",
        _LATE,
    ),
    Mutant(
        "rows_end_with_the_ring",
        "LateRows.chunks",
        'chunk, mode="wrap")',
        'chunk, mode="clip")',
        _LATE,
    ),
    Mutant(
        "rows_are_overwritten_before_they_are_read",
        "Ring.write",
        "            self._keep_late(row, count + 1)\n",
        "            pass\n",
        _LATE,
    ),
    Mutant(
        "rows_are_put_back_before_they_are_read",
        "Ring.set_state",
        "        self._keep_late(0, self.rows)\n",
        "",
        _LATE,
    ),
    Mutant(
        "rows_that_nobody_reads_are_kept",
        "Ring._keep_late",
        "        self._late = [weakref.ref(each) for each in alive]\n",
        "",
        _LATE,
    ),
    Mutant(
        "last_observations_of_segments_are_mixed_up",
        "ring:_together",
        "        before += len(part[final_keys[0]])\n",
        "",
        _RING,
    ),
    Mutant(
        "last_observations_are_sorted_by_their_rows",
        "_by_age",
        "age = (row - steps) % filled",
        "age = row",
        _RING,
    ),
]

PLAIN = [
    Mutant(
        "trees_may_be_a_level_less_deep",
        "_taken_apart",
        "if depth > _DEEPEST:",
        "if depth >= _DEEPEST:",
        _PLAIN,
    ),
    Mutant(
        "keys_are_taken_for_kinds",
        "_dict_taken_apart",
        'type(key) is str and not key.startswith("$")',
        "type(key) is str",
        _PLAIN,
    ),
    Mutant(
        "deques_forget_their_length",
        "_deque",
        "deque(from_json(items, arrays), maxlen=maxlen)",
        "deque(from_json(items, arrays))",
        _PLAIN,
    ),
    Mutant(
        "equal_sets_are_written_in_any_order",
        "_taken_apart",
        "for each in sorted(value, key=repr)]",
        "for each in value]",
        _PLAIN,
    ),
    Mutant(
        "copies_share_arrays",
        "plain_data:copied",
        "{name: each.copy() for name, each in arrays.items()}",
        "arrays",
        _PLAIN,
    ),
    Mutant(
        "generators_begin_anew",
        "_generator",
        "    bits.state = state\n",
        "",
        _PLAIN,
    ),
    Mutant(
        "objects_are_taken_for_their_values",
        "_taken_apart",
        "    if kind is dict:\n",
        "    if isinstance(value, dict):\n",
        _PLAIN,
    ),
]

MUTANTS = [*FOLDER, *ATOMIC, *LOCK, *ROWS, *PLAIN]
