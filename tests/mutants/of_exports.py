"""Mistakes in what files of strangers may be, and in what finds damage."""

from mutants.mutant import Mutant

_FILES = ["tests/files/test_plain_files.py"]
_ARCHIVES = ["tests/files/test_plain_archives.py"]
_SEAL = ["tests/files/test_sealing.py"]
_WIRE = ["tests/export/test_wire_format.py"]
_EXPORTS = "tests/export/test_hostile_exports.py"
_SAVED_MODELS = [f"{_EXPORTS}::test_saved_models"]
_ONNX = [f"{_EXPORTS}::test_onnx"]
_AGENTS = "tests/loading/test_hostile_agents.py"
_CHECKPOINTS = "tests/loading/test_checkpoints.py"

FILES = [
    Mutant(
        "room_is_made_for_all_that_a_file_may_be",
        "read_bytes",
        "file.read(min(size, most_bytes) + 1)",
        "file.read(most_bytes + 1)",
        _FILES,
    ),
    Mutant(
        "large_files_are_cut_off",
        "read_bytes",
        "file.read(min(size, most_bytes) + 1)",
        "file.read(most_bytes)",
        _FILES,
    ),
    Mutant(
        "files_may_be_a_byte_smaller",
        "read_bytes",
        "if len(content) > most_bytes:",
        "if len(content) >= most_bytes:",
        _FILES,
    ),
    Mutant(
        "json_may_be_a_level_deeper",
        "parse_json",
        "    if levels > _MOST_LEVELS:\n",
        "    if levels > _MOST_LEVELS + 1:\n",
        _FILES,
    ),
    Mutant(
        "json_may_be_as_deep_as_it_likes_in_objects",
        "_levels",
        "inner += each.values()",
        "pass",
        _FILES,
    ),
    Mutant(
        "members_of_archives_may_be_links",
        "check_members",
        "if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):",
        "if mode < 0:",
        _ARCHIVES,
    ),
    Mutant(
        "members_of_archives_may_be_encrypted",
        "check_members",
        "if member.flag_bits & _ENCRYPTED:",
        "if member.flag_bits & (_ENCRYPTED << 1):",
        _ARCHIVES,
    ),
    Mutant(
        "members_of_archives_expand_to_anything",
        "check_members",
        "if member.file_size > min(",
        "if member.file_size > max(",
        _ARCHIVES,
    ),
    Mutant(
        "members_of_archives_may_share_their_bytes",
        "check_members",
        "sum(member.compress_size for member in members) > size",
        "max(member.compress_size for member in members) > size",
        _ARCHIVES,
    ),
    Mutant(
        "members_of_archives_may_share_their_name",
        "check_members",
        "!= len(members)",
        "> len(members)",
        _ARCHIVES,
    ),
    Mutant(
        "a_broken_seal_will_do",
        "is_sealed",
        "if _digest(file, size, unsealed) != expected:",
        "if not _digest(file, size, unsealed):",
        _SEAL,
    ),
    Mutant(
        "the_first_megabyte_is_sealed",
        "_digest",
        "while size > 0 and (block",
        "if size > 0 and (block",
        _SEAL,
    ),
    Mutant(
        "a_seal_that_was_cut_off_is_none",
        "is_sealed",
        "if not length and not comment:",
        "if not comment:",
        [f"{_AGENTS}::test_all_are_refused", *_SEAL],
    ),
    Mutant(
        "a_later_seal_is_damage",
        "is_sealed",
        "    if version != _FORMAT:\n",
        "    if version < _FORMAT:\n",
        _SEAL,
    ),
]

EXPORTED = [
    Mutant(
        "numbers_of_protocol_buffers_are_of_any_length",
        "_varint",
        "range(0, _MOST_BITS, 7)",
        "range(0, 10 * _MOST_BITS, 7)",
        _WIRE,
    ),
    Mutant(
        "half_a_protocol_buffer_is_read",
        "fields",
        "        if end > length:\n",
        "        if not message:\n",
        _WIRE,
    ),
    Mutant(
        "numbers_of_fixed_sizes_are_skipped_by_half",
        "wire_format:",
        "{_EIGHT: 8, _FOUR: 4}",
        "{_EIGHT: 4, _FOUR: 4}",
        _WIRE,
    ),
    Mutant(
        "any_operation_is_run",
        "_Functions._check",
        "if node.op not in OPERATIONS and node.op not in self._functions:",
        "if node.op not in OPERATIONS and not node.op:",
        _SAVED_MODELS,
    ),
    Mutant(
        "functions_of_objects_are_not_looked_at",
        "_entries",
        "        found.add(each.bare_concrete_function"
        ".concrete_function_name)\n",
        "",
        [f"{_EXPORTS}::test_refusals_of_saved_models_say_why"],
    ),
    Mutant(
        "weights_may_be_larger_than_their_files",
        "_check_variables",
        "    if declared > there:\n",
        "    if declared < 0:\n",
        [f"{_EXPORTS}::test_refusals_of_saved_models_say_why"],
    ),
    Mutant(
        "weights_of_onnx_are_read_from_anywhere",
        "OnnxModel._refuse_external",
        "if number == _EXTERNAL_DATA or (number == _LOCATION and value != 0):",
        "if number < 0:",
        _ONNX,
    ),
    Mutant(
        "weights_of_branches_are_read_from_anywhere",
        "onnx_model:",
        '        **{6: "graph", 11: "graph"},\n',
        "",
        [f"{_EXPORTS}::test_weights_in_other_files_are_not_asked_for"],
    ),
]

LOADED = [
    Mutant(
        "what_is_no_agent_is_loaded",
        "config:check",
        "if not (isinstance(made, type) and issubclass(made, Agent)):",
        "if made is None:",
        [f"{_AGENTS}::test_what_is_no_agent_is_not_made"],
    ),
    Mutant(
        "layers_of_any_code_are_made",
        "_check_object",
        'if name in _NOT_MADE or not known or "." in str(name):',
        'if not known or "." in str(name):',
        [f"{_AGENTS}::test_refusals_say_why"],
    ),
    Mutant(
        "functions_of_any_module_are_taken",
        "_check_object",
        "module in _FUNCTION_MODULES and name in _FUNCTIONS.split()",
        "module in _FUNCTION_MODULES",
        [f"{_AGENTS}::test_functions_are_those_of_a_list"],
    ),
    Mutant(
        "the_config_of_a_checkpoint_is_believed",
        "loader:load_checkpoint",
        "    config.check(made_from, custom_objects)\n",
        "",
        [f"{_CHECKPOINTS}::TestRefused::test_what_no_agent_is_made_of"],
    ),
    Mutant(
        "a_checkpoint_asks_for_any_number_of_weights",
        "loader:load_checkpoint",
        "with no_more_weights_than(elements):",
        "with no_more_weights_than(10**9):",
        [f"{_CHECKPOINTS}::TestRefused::test_more_weights_than_it_holds"],
    ),
    Mutant(
        "the_state_of_another_agent_is_taken",
        "agent_state:write",
        'if state["class"] != type(agent).__name__ or given != own:',
        'if state["class"] != type(agent).__name__:',
        [f"{_CHECKPOINTS}::TestRefused::test_another_agent_than_it_says"],
    ),
    Mutant(
        "optimizers_begin_anew",
        "variables_of",
        "[*agent.variables, *agent.optimizer.variables]",
        "[*agent.variables]",
        [f"{_CHECKPOINTS}::test_the_agent_alone"],
    ),
    Mutant(
        "two_fits_train_an_agent_at_once",
        "fit_alone",
        "if id(agent) in _fitted:",
        "if agent in _fitted:",
        ["tests/training/test_fit_alone.py::test_one_at_a_time"],
    ),
    Mutant(
        "after_a_fit_that_failed_there_is_no_other",
        "fit_alone",
        "        _fitted.discard(id(agent))\n",
        "        pass\n",
        ["tests/training/test_fit_alone.py::test_one_that_failed_is_over"],
    ),
]

MUTANTS = [*FILES, *EXPORTED, *LOADED]
