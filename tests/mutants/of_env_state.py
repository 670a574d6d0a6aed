"""Mistakes in the state of environments, and in processes that hold some."""

from mutants.mutant import Mutant

_ENVS = "tests/callbacks/test_checkpoint_envs.py"
_STATE = "tests/envs/test_env_state.py"
_VALUES = ["tests/envs/test_env_values.py"]
_PROCESSES = "tests/envs/test_env_processes.py"
_FAILURES = "tests/envs/test_failures.py"
_MUJOCO = [f"{_STATE}::test_mujoco"]

STATE = [
    Mutant(
        "generators_that_were_not_used_yet_are_settings",
        "_has_changed",
        "made is None or drawn or mark != made.mark",
        "made is None or mark != made.mark",
        [f"{_STATE}::test_a_generator_that_nobody_has_drawn_from_so_far"],
    ),
    Mutant(
        "settings_are_saved",
        "_has_changed",
        "made is None or drawn or mark != made.mark",
        "True",
        [f"{_STATE}::test_settings_are_those_of_the_program"],
    ),
    Mutant(
        "one_generator_becomes_two",
        "env_state:_read",
        "        elif (same := _same_generator(attributes, value)) "
        "is not None:\n"
        "            shared[name] = same\n",
        "",
        [f"{_STATE}::test_objects_that_are_their_values"],
    ),
    Mutant(
        "what_was_as_it_was_made_stays_as_it_is",
        "env_state:write",
        "    put_back(env, made or {})\n",
        "",
        [f"{_STATE}::test_what_was_as_it_was_made_is_so_again"],
    ),
    Mutant(
        "what_others_hold_too_is_replaced",
        "_write",
        "for name, value in env_values.given(state[_ATTRIBUTES]).items():\n"
        "        own[name] = env_values.replaced(own.get(name), value)",
        "for name, value in env_values.given(state[_ATTRIBUTES]).items():\n"
        "        own[name] = value",
        [f"{_STATE}::test_what_others_hold_too_stays_what_it_is"],
    ),
    Mutant(
        "draws_of_spaces_begin_anew",
        "_write",
        "        write_draws(spaces[name], drawn)\n",
        "        pass\n",
        [f"{_STATE}::test_what_is_drawn_from_spaces"],
    ),
    Mutant(
        "any_state_is_taken",
        "_write",
        'if state["kind"] != type(env).__name__:',
        "if not state:",
        [f"{_STATE}::test_another_kind_of_environment"],
    ),
    Mutant(
        "fewer_environments_take_a_part_of_the_state",
        "_write",
        "for each, its in zip(value, inner, strict=True):",
        "for each, its in zip(value, inner, strict=False):",
        [f"{_STATE}::test_another_number_of_environments"],
    ),
    Mutant(
        "files_are_opened_again",
        "writes_files",
        'elif hasattr(layer, "video_folder") or any(',
        'elif hasattr(layer, "video_folder") and any(',
        [f"{_STATE}::test_an_open_file_is_not_opened_again"],
    ),
    Mutant(
        "a_state_goes_on_with_the_environment",
        "env_state:read",
        "    taken: dict[str, Any] = plain_data.copied(\n"
        "        env_values.taken(_read(env, made or {}, ()))\n    )\n",
        "    taken: dict[str, Any] = env_values.taken("
        "_read(env, made or {}, ()))\n",
        [
            f"{_STATE}::test_what_others_hold_too_stays_what_it_is",
            f"{_STATE}::test_objects_that_are_their_values",
        ],
    ),
]

TRIAL = [
    Mutant(
        "trials_draw_what_others_would_have_drawn",
        "_same_draws",
        "        np.random.set_state(before[1])  # noqa: NPY002\n",
        "",
        [f"{_STATE}::test_what_is_drawn_elsewhere_is_not_drawn"],
    ),
    Mutant(
        "trials_draw_from_spaces_of_others",
        "_same_draws",
        "            env_state.write_draws(space, states)\n",
        "            pass\n",
        [f"{_STATE}::test_what_is_drawn_from_spaces"],
    ),
    Mutant(
        "all_environments_repeat",
        "_one_repeats",
        "return played == _play(second, observation)[0]",
        "return bool(_play(second, observation)[0])",
        [f"{_STATE}::test_a_state_that_is_not_found"],
    ),
    Mutant(
        "environments_repeat_until_the_first_reset",
        "state_keeper:_play",
        "in (_STEPS_COMPARED, _STEPS_COMPARED, _STEPS_WITHIN):",
        "in (_STEPS_COMPARED, _STEPS_WITHIN):",
        [f"{_STATE}::test_one_that_differs_after_a_reset"],
    ),
    Mutant(
        "environments_are_tried_at_the_beginning_of_episodes_alone",
        "state_keeper:_play",
        "in (_STEPS_COMPARED, _STEPS_COMPARED, _STEPS_WITHIN):",
        "in (_STEPS_COMPARED, _STEPS_COMPARED, 0):",
        [f"{_ENVS}::test_others_begin_new_episodes_with_a_warning"],
    ),
    Mutant(
        "masks_are_not_heeded_as_environments_are_tried",
        "_Actions.__call__",
        "        if self._choices is None:\n",
        "        if self._space is not None:\n",
        [f"{_ENVS}::test_it_goes_on_bit_for_bit"],
    ),
    Mutant(
        "signals_to_a_job_end_environments",
        "ignore_signals",
        "            before = signal.signal(number, signal.SIG_IGN)\n",
        "            before = signal.getsignal(number)\n",
        [f"{_ENVS}::test_a_signal_to_all_processes_of_a_job"],
    ),
    Mutant(
        "processes_ignore_signals_for_good",
        "ignore_signals",
        "        signal.signal(*_handlers.popitem())\n",
        "        _handlers.popitem()\n",
        [f"{_ENVS}::test_processes_heed_signals_after_training"],
    ),
    Mutant(
        "a_trial_that_failed_leaves_its_state",
        "_goes_on",
        "        env_state.put_back(env.env, made)\n    return False",
        "        pass\n    return False",
        [
            f"{_STATE}::"
            "test_the_number_of_a_connection_is_neither_copied_nor_kept"
        ],
    ),
    Mutant(
        "another_window_is_opened",
        "_maker_of",
        'or env.render_mode == "human"',
        "or env is None",
        [f"{_STATE}::test_no_other_window_is_opened"],
    ),
    Mutant(
        "trials_are_not_closed",
        "_one_repeats",
        "            stack.callback(_close, made)\n",
        "",
        [f"{_STATE}::test_trials_are_closed"],
    ),
    Mutant(
        "a_wrapper_of_several_is_proven",
        "StateKeeper._reason",
        "whole = env is env.unwrapped or not several",
        "whole = True",
        [f"{_PROCESSES}::test_a_wrapper_around_them"],
    ),
    Mutant(
        "a_trial_counts_as_played",
        "StateKeeper.write",
        "        env.set_state(own)\n        if not goes_on:",
        "        if not goes_on:",
        [f"{_PROCESSES}::test_a_wrapper_around_them"],
    ),
    Mutant(
        "what_does_not_repeat_is_saved",
        "StateKeeper._reason",
        "if repeats is False:",
        "if repeats is False and not names:",
        [f"{_STATE}::test_a_state_that_is_not_found"],
    ),
]

VALUES = [
    Mutant(
        "marks_say_who_else_holds_an_object",
        "mark",
        "marshal.dumps(value, 2)\n            return",
        "marshal.dumps(value)\n            return",
        _VALUES,
    ),
    Mutant(
        "marks_say_nothing_of_shapes",
        "mark",
        'digest.update(f"{array.dtype.str}{array.shape}".encode())',
        "digest.update(array.dtype.str.encode())",
        _VALUES,
    ),
    Mutant(
        "marks_say_nothing_of_dtypes",
        "mark",
        'digest.update(f"{array.dtype.str}{array.shape}".encode())',
        "digest.update(str(array.shape).encode())",
        _VALUES,
    ),
    Mutant(
        "any_class_is_made",
        "env_values:_found",
        "_is_known(kind) or issubclass(kind, enum.Enum)",
        "True",
        _VALUES,
    ),
    Mutant(
        "a_class_of_the_same_name_will_do",
        "env_values:_path",
        "    if found is not kind:\n",
        "    if not found:\n",
        _VALUES,
    ),
    Mutant(
        "statistics_become_others",
        "replaced",
        "        vars(before).update(vars(value))\n        return before\n",
        "        return value\n",
        [f"{_STATE}::test_what_others_hold_too_stays_what_it_is"],
    ),
    Mutant(
        "spaces_within_spaces_draw_anew",
        "_with_inner_spaces",
        "                yield from _with_inner_spaces(each)\n",
        "                pass\n",
        [f"{_STATE}::test_what_is_drawn_from_spaces"],
    ),
    Mutant(
        "spaces_of_classes_draw_anew",
        "_own_spaces",
        "{**of_class, **vars(env)}.items()",
        "vars(env).items()",
        [f"{_STATE}::test_what_is_drawn_from_spaces"],
    ),
    Mutant(
        "looking_at_a_space_seeds_it",
        "read_draws",
        'if vars(each).get("_np_random") is not None',
        "if each.np_random is not None",
        _VALUES,
    ),
]

MUJOCO = [
    Mutant(
        "mujoco_is_warmed_up_by_what_is_computed_anew",
        "write_simulation",
        "    # The computation has changed the warm start of the solver.\n"
        "    mujoco.mj_setState(model, data, array, kind)\n",
        "",
        [f"{_STATE}::test_mujoco_of_an_earlier_release"],
    ),
    Mutant(
        "what_mujoco_has_computed_is_computed_anew",
        "write_simulation",
        "            computed[...] = before\n",
        "            pass\n",
        _MUJOCO,
        slow=True,
    ),
]

PROCESSES = [
    Mutant(
        "ends_of_episodes_are_forgotten_by_processes",
        "StateKeeper.write",
        "            env_processes.end_episodes("
        "inner, env.pending_reset, rows)\n",
        "",
        [f"{_PROCESSES}::test_another_one_goes_on_where_it_was"],
    ),
    Mutant(
        "a_step_that_is_none_stays",
        "_pretend.step",
        "        del env.step\n",
        "",
        [f"{_PROCESSES}::test_another_one_goes_on_where_it_was"],
    ),
    Mutant(
        "a_worker_of_ones_own_is_asked",
        "can_be_asked",
        "isinstance(env, AsyncVectorEnv) and env.worker is None",
        "isinstance(env, AsyncVectorEnv)",
        [f"{_PROCESSES}::TestAsking::test_a_worker_of_ones_own_is_not_asked"],
    ),
    Mutant(
        "errors_of_what_is_asked_are_answers",
        "ask",
        "        if not went_well:\n",
        "        if False:\n",
        [f"{_PROCESSES}::TestAsking::test_an_error_ends_nothing"],
    ),
    Mutant(
        "descriptors_of_processes_stay_open",
        "_release",
        "    for process in env.processes:\n        process.close()\n",
        "",
        [f"{_FAILURES}::test_each_fault_is_raised_in_time_and_leaves_nothing"],
    ),
    Mutant(
        "errors_are_waited_for_beyond_the_time_of_a_step",
        "limit_steps.limited",
        "        own.error_queue.until = time.monotonic() + timeout\n",
        "",
        [f"{_FAILURES}::test_each_fault_is_raised_in_time_and_leaves_nothing"],
    ),
    Mutant(
        "a_limit_keeps_environments_alive",
        "limit_steps",
        "    own: Any = weakref.proxy(env)\n",
        "    own: Any = env\n",
        [f"{_FAILURES}::test_a_timeout_does_not_keep_environments_alive"],
    ),
    Mutant(
        "processes_that_were_made_again_are_killed_later",
        "remake_workers",
        "        timer.cancel()\n",
        "        pass\n",
        [
            f"{_FAILURES}::test_ctrl_c_in_an_environment_ends_processes_"
            "and_a_reset_makes_them_again"
        ],
    ),
]

MUTANTS = [*STATE, *TRIAL, *VALUES, *MUJOCO, *PROCESSES]
