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
        "keras_rl2/envs/env_state.py",
        "made is None or drawn or mark != made.mark",
        "made is None or mark != made.mark",
        [f"{_STATE}::test_a_generator_that_nobody_has_drawn_from_so_far"],
    ),
    Mutant(
        "settings_are_saved",
        "keras_rl2/envs/env_state.py",
        "made is None or drawn or mark != made.mark",
        "True",
        [f"{_STATE}::test_settings_are_those_of_the_program"],
    ),
    Mutant(
        "one_generator_becomes_two",
        "keras_rl2/envs/env_state.py",
        "        elif (same := _same_generator(attributes, value)) "
        "is not None:\n"
        "            shared[name] = same\n",
        "",
        [f"{_STATE}::test_objects_that_are_their_values"],
    ),
    Mutant(
        "what_was_as_it_was_made_stays_as_it_is",
        "keras_rl2/envs/env_state.py",
        "    put_back(env, made or {})\n",
        "",
        [f"{_STATE}::test_what_was_as_it_was_made_is_so_again"],
    ),
    Mutant(
        "what_others_hold_too_is_replaced",
        "keras_rl2/envs/env_state.py",
        "for name, value in env_values.given(state[_ATTRIBUTES]).items():\n"
        "        own[name] = env_values.replaced(own.get(name), value)",
        "for name, value in env_values.given(state[_ATTRIBUTES]).items():\n"
        "        own[name] = value",
        [f"{_STATE}::test_what_others_hold_too_stays_what_it_is"],
    ),
    Mutant(
        "draws_of_spaces_begin_anew",
        "keras_rl2/envs/env_state.py",
        "        write_draws(spaces[name], drawn)\n",
        "        pass\n",
        [f"{_STATE}::test_what_is_drawn_from_spaces"],
    ),
    Mutant(
        "any_state_is_taken",
        "keras_rl2/envs/env_state.py",
        'if state["kind"] != type(env).__name__:',
        "if not state:",
        [f"{_STATE}::test_another_kind_of_environment"],
    ),
    Mutant(
        "fewer_environments_take_a_part_of_the_state",
        "keras_rl2/envs/env_state.py",
        "for each, its in zip(value, inner, strict=True):",
        "for each, its in zip(value, inner, strict=False):",
        [f"{_STATE}::test_another_number_of_environments"],
    ),
    Mutant(
        "files_are_opened_again",
        "keras_rl2/envs/env_state.py",
        'elif hasattr(layer, "video_folder") or any(',
        'elif hasattr(layer, "video_folder") and any(',
        [f"{_STATE}::test_an_open_file_is_not_opened_again"],
    ),
    Mutant(
        "a_state_goes_on_with_the_environment",
        "keras_rl2/envs/env_state.py",
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
        "keras_rl2/envs/state_keeper.py",
        "        np.random.set_state(before[1])  # noqa: NPY002\n",
        "",
        [f"{_STATE}::test_what_is_drawn_elsewhere_is_not_drawn"],
    ),
    Mutant(
        "trials_draw_from_spaces_of_others",
        "keras_rl2/envs/state_keeper.py",
        "            env_state.write_draws(space, states)\n",
        "            pass\n",
        [f"{_STATE}::test_what_is_drawn_from_spaces"],
    ),
    Mutant(
        "all_environments_repeat",
        "keras_rl2/envs/state_keeper.py",
        "return played == _play(second, observation)[0]",
        "return bool(_play(second, observation)[0])",
        [f"{_STATE}::test_a_state_that_is_not_found"],
    ),
    Mutant(
        "environments_repeat_until_the_first_reset",
        "keras_rl2/envs/state_keeper.py",
        "in (_STEPS_COMPARED, _STEPS_COMPARED, _STEPS_WITHIN):",
        "in (_STEPS_COMPARED, _STEPS_WITHIN):",
        [f"{_STATE}::test_one_that_differs_after_a_reset"],
    ),
    Mutant(
        "environments_are_tried_at_the_beginning_of_episodes_alone",
        "keras_rl2/envs/state_keeper.py",
        "in (_STEPS_COMPARED, _STEPS_COMPARED, _STEPS_WITHIN):",
        "in (_STEPS_COMPARED, _STEPS_COMPARED, 0):",
        [f"{_ENVS}::test_others_begin_new_episodes_with_a_warning"],
    ),
    Mutant(
        "masks_are_not_heeded_as_environments_are_tried",
        "keras_rl2/envs/state_keeper.py",
        "        if self._choices is None:\n",
        "        if self._space is not None:\n",
        [f"{_ENVS}::test_it_goes_on_bit_for_bit"],
    ),
    Mutant(
        "signals_to_a_job_end_environments",
        "keras_rl2/envs/env_processes.py",
        "            before = signal.signal(number, signal.SIG_IGN)\n",
        "            before = signal.getsignal(number)\n",
        [f"{_ENVS}::test_a_signal_to_all_processes_of_a_job"],
    ),
    Mutant(
        "processes_ignore_signals_for_good",
        "keras_rl2/envs/env_processes.py",
        "        signal.signal(*_handlers.popitem())\n",
        "        _handlers.popitem()\n",
        [f"{_ENVS}::test_processes_heed_signals_after_training"],
    ),
    Mutant(
        "a_trial_that_failed_leaves_its_state",
        "keras_rl2/envs/state_keeper.py",
        "        env_state.put_back(env.env, made)\n    return False",
        "        pass\n    return False",
        [
            f"{_STATE}::"
            "test_the_number_of_a_connection_is_neither_copied_nor_kept"
        ],
    ),
    Mutant(
        "another_window_is_opened",
        "keras_rl2/envs/state_keeper.py",
        'or env.render_mode == "human"',
        "or env is None",
        [f"{_STATE}::test_no_other_window_is_opened"],
    ),
    Mutant(
        "trials_are_not_closed",
        "keras_rl2/envs/state_keeper.py",
        "            stack.callback(_close, made)\n",
        "",
        [f"{_STATE}::test_trials_are_closed"],
    ),
    Mutant(
        "a_wrapper_of_several_is_proven",
        "keras_rl2/envs/state_keeper.py",
        "whole = env is env.unwrapped or not several",
        "whole = True",
        [f"{_PROCESSES}::test_a_wrapper_around_them"],
    ),
    Mutant(
        "a_trial_counts_as_played",
        "keras_rl2/envs/state_keeper.py",
        "        env.set_state(own)\n        if not goes_on:",
        "        if not goes_on:",
        [f"{_PROCESSES}::test_a_wrapper_around_them"],
    ),
    Mutant(
        "what_does_not_repeat_is_saved",
        "keras_rl2/envs/state_keeper.py",
        "if repeats is False:",
        "if repeats is False and not names:",
        [f"{_STATE}::test_a_state_that_is_not_found"],
    ),
]

VALUES = [
    Mutant(
        "marks_say_who_else_holds_an_object",
        "keras_rl2/envs/env_values.py",
        "marshal.dumps(value, 2)\n            return",
        "marshal.dumps(value)\n            return",
        _VALUES,
    ),
    Mutant(
        "marks_say_nothing_of_shapes",
        "keras_rl2/envs/env_values.py",
        'digest.update(f"{array.dtype.str}{array.shape}".encode())',
        "digest.update(array.dtype.str.encode())",
        _VALUES,
    ),
    Mutant(
        "marks_say_nothing_of_dtypes",
        "keras_rl2/envs/env_values.py",
        'digest.update(f"{array.dtype.str}{array.shape}".encode())',
        "digest.update(str(array.shape).encode())",
        _VALUES,
    ),
    Mutant(
        "any_class_is_made",
        "keras_rl2/envs/env_values.py",
        "_is_known(kind) or issubclass(kind, enum.Enum)",
        "True",
        _VALUES,
    ),
    Mutant(
        "a_class_of_the_same_name_will_do",
        "keras_rl2/envs/env_values.py",
        "    if found is not kind:\n",
        "    if not found:\n",
        _VALUES,
    ),
    Mutant(
        "statistics_become_others",
        "keras_rl2/envs/env_values.py",
        "        vars(before).update(vars(value))\n        return before\n",
        "        return value\n",
        [f"{_STATE}::test_what_others_hold_too_stays_what_it_is"],
    ),
    Mutant(
        "spaces_within_spaces_draw_anew",
        "keras_rl2/envs/env_state.py",
        "                yield from _with_inner_spaces(each)\n",
        "                pass\n",
        [f"{_STATE}::test_what_is_drawn_from_spaces"],
    ),
    Mutant(
        "spaces_of_classes_draw_anew",
        "keras_rl2/envs/env_state.py",
        "{**of_class, **vars(env)}.items()",
        "vars(env).items()",
        [f"{_STATE}::test_what_is_drawn_from_spaces"],
    ),
    Mutant(
        "looking_at_a_space_seeds_it",
        "keras_rl2/envs/env_state.py",
        'if vars(each).get("_np_random") is not None',
        "if each.np_random is not None",
        _VALUES,
    ),
]

MUJOCO = [
    Mutant(
        "mujoco_is_warmed_up_by_what_is_computed_anew",
        "keras_rl2/envs/env_state.py",
        "    # The computation has changed the warm start of the solver.\n"
        "    mujoco.mj_setState(model, data, array, kind)\n",
        "",
        [f"{_STATE}::test_mujoco_of_an_earlier_release"],
    ),
    Mutant(
        "what_mujoco_has_computed_is_computed_anew",
        "keras_rl2/envs/env_state.py",
        "            computed[...] = before\n",
        "            pass\n",
        _MUJOCO,
        slow=True,
    ),
]

PROCESSES = [
    Mutant(
        "ends_of_episodes_are_forgotten_by_processes",
        "keras_rl2/envs/state_keeper.py",
        "            env_processes.end_episodes("
        "inner, env.pending_reset, rows)\n",
        "",
        [f"{_PROCESSES}::test_another_one_goes_on_where_it_was"],
    ),
    Mutant(
        "a_step_that_is_none_stays",
        "keras_rl2/envs/env_processes.py",
        "        del env.step\n",
        "",
        [f"{_PROCESSES}::test_another_one_goes_on_where_it_was"],
    ),
    Mutant(
        "a_worker_of_ones_own_is_asked",
        "keras_rl2/envs/env_processes.py",
        "isinstance(env, AsyncVectorEnv) and env.worker is None",
        "isinstance(env, AsyncVectorEnv)",
        [f"{_PROCESSES}::TestAsking::test_a_worker_of_ones_own_is_not_asked"],
    ),
    Mutant(
        "errors_of_what_is_asked_are_answers",
        "keras_rl2/envs/env_processes.py",
        "        if not went_well:\n",
        "        if False:\n",
        [f"{_PROCESSES}::TestAsking::test_an_error_ends_nothing"],
    ),
    Mutant(
        "descriptors_of_processes_stay_open",
        "keras_rl2/envs/worker_processes.py",
        "    for process in env.processes:\n        process.close()\n",
        "",
        [f"{_FAILURES}::test_each_fault_is_raised_in_time_and_leaves_nothing"],
    ),
    Mutant(
        "errors_are_waited_for_beyond_the_time_of_a_step",
        "keras_rl2/envs/worker_processes.py",
        "        own.error_queue.until = time.monotonic() + timeout\n",
        "",
        [f"{_FAILURES}::test_each_fault_is_raised_in_time_and_leaves_nothing"],
    ),
    Mutant(
        "a_limit_keeps_environments_alive",
        "keras_rl2/envs/worker_processes.py",
        "    own: Any = weakref.proxy(env)\n",
        "    own: Any = env\n",
        [f"{_FAILURES}::test_a_timeout_does_not_keep_environments_alive"],
    ),
    Mutant(
        "processes_that_were_made_again_are_killed_later",
        "keras_rl2/envs/worker_processes.py",
        "        timer.cancel()\n",
        "        pass\n",
        [
            f"{_FAILURES}::test_ctrl_c_in_an_environment_ends_processes_"
            "and_a_reset_makes_them_again"
        ],
    ),
]

MUTANTS = [*STATE, *TRIAL, *VALUES, *MUJOCO, *PROCESSES]
