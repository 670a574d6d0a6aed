"""Moves modules to the rooms that they belong to, and rewrites who names them.

    python .ci/moves.py

Run on the parent of the commit of the moves it gives that commit, but for what
the commit's message names.
"""

import re
import subprocess
from pathlib import Path

ROOT = Path(
    subprocess.check_output(
        ["git", "rev-parse", "--show-toplevel"], text=True
    ).strip()
)

ROOMS = {
    "basics": """
        arguments shapes stopwatch notebook tensorflow_notes foreign_names
        seeds outliers agents.named_arguments
    """,
    "collecting": """
        litert
    """,
    "distribute": """
        replicas
    """,
    "export": """
        agents.exporting agents.export_check agents.export_manifest
        agents.quantizing agents.representative exported.formats
        exported.manifest exported.onnx_model exported.policy_file
        exported.runtimes exported.saved_model exported.saved_model_operations
        exported.wire_format exported.__init__
    """,
    "exploration": """
         agents.action_noise
    """,
    "files": """
        sealing checkpoint_folder segment_log atomic_files plain_archives
        plain_files plain_data fresh_python writer_lock data.ring_log
        data.hdf5_arrays data.late_rows
    """,
    "layers": """
        layers=observation_normalization
    """,
    "losses": """
        statistics agents.value_distributions
    """,
    "metrics": """
        metrics=mean_of_each
    """,
    "networks": """
        initialization network_inputs network_copies sequences
        agents.network_checks agents.network_outputs agents.unrolling
        agents.running  agents.default_agent=network_builder
        agents.drawing_layers
    """,
    "offline": """
        data.offline data.offline_episodes data.offline_sources
        data.offline_summary data.recorder data.recorded_episodes
        data.file_array data.array_source data.episode_source
        data.episode_rows data.block_pool data.transition_block
        data.transition_store data.hdf5_output data.minari_folder
        data.minari_metadata data.minari_writing data.mixed agents.fitted_q
        agents.offline_evaluation
    """,
    "policies": """
        data.own_round
        agents.epsilon_greedy data.agent_protocols
        agents.acting agents.observation_encoder
        data.actors data.policy_function data.conversions
    """,
    "replay": """
        data.minibatches data.shuffling
        data.step_ring data.transition_ring data.ring_arrays
        data.final_observations data.windows data.replay_buffer
        data.prioritized_replay_buffer data.sequence_replay_buffer
        data.sum_tree data.replay_sizes data.memory
    """,
    "runs": """
        training
    """,
    "saving": """
        agents.saving agents.saved_networks agents.agent_state
    """,
    "spaces": """
        space_configs trees array_spec batches action_format spaces=supported
    """,
    "training": """
        agents.learners
        agents.fitting agents.fit_alone agents.fit_arguments
        agents.fit_callbacks agents.round_execution agents.round_call
        agents.compile_arguments  agents.evaluating
        agents.from_preset agents.overriding
    """,
    "tuning": """
        tuning=fit_seeds
    """,
    "updates": """
        agents.critics
        agents.gradient_steps agents.skipped_updates agents.updating
        agents.objective agents.normalizing agents.finite_weights
        agents.rollout_samples agents.trained_variables target_networks
        optimizer_parts observers
    """,
    "video": """
        recording video=frames
    """,
}
TESTS = {
    "basics": """
        test_notebook test_stopwatch test_tensorflow_notes test_foreign_names
        test_seeds=test_global_seed test_shapes
    """,
    "export": """
        exported/test_check exported/test_deploy exported/test_hostile_exports
        exported/test_manifest exported/test_no_policy exported/test_parity
        exported/test_quantized exported/test_refused
        exported/test_wire_format exported/conftest
        agents/test_recurrent_exports agents/test_structured_exports
    """,
    "files": """
        test_atomic_files test_checkpoint_folder
        test_checkpoint_write_failures test_plain_archives test_plain_data
        test_plain_files test_sealing test_segment_log test_writer_lock
        data/test_late_rows data/test_ring_log test_missing_files
    """,
    "layers": """
        test_layers=test_observation_normalization
    """,
    "losses": """
        test_statistics test_weighted_importance_sampling
    """,
    "metrics": """
        test_metrics=test_mean_of_each
    """,
    "networks": """
        test_networks agents/test_pasted_networks
    """,
    "offline": """
        data/test_offline data/test_mixed data/test_minari_folders
        data/test_recorder data/test_array_files data/test_hostile_data
        agents/test_offline_evaluation
    """,
    "policies": """
        data/test_actors data/test_conversions agents/test_observation_encoder
    """,
    "policy_heads": """
        test_policy_heads
    """,
    "replay": """
        data/test_prioritized_replay_buffer data/test_replay_buffer
        data/test_sequence_replay_buffer data/test_sum_tree
        data/test_transition_ring data/test_replay_golden
        data/test_replay_refusals data/test_priorities
    """,
    "returns": """
        test_returns test_vtrace
    """,
    "runs": """
        test_training
    """,
    "spaces": """
        test_spaces test_space_configs test_trees
    """,
    "training": """
        agents/test_fit_alone agents/test_round_call agents/test_tracing
        agents/test_learners
    """,
    "tuning": """
        test_tuning test_tuning_of_trained_agents
    """,
    "updates": """
        agents/test_gradient_norm agents/test_not_finite
        agents/test_not_finite_weights agents/test_outliers test_observers
    """,
    "video": """
        test_recording test_video=test_frames
    """,
}


def moves():
    """Yields old and new paths of product modules, then of tests."""
    for room, names in ROOMS.items():
        for name in names.split():
            old, _, new = name.partition("=")
            new = new or old.rpartition(".")[2]
            yield (
                f"keras_rl2/{old.replace('.', '/')}.py",
                f"keras_rl2/{room}/{new}.py",
            )
    for room, names in TESTS.items():
        for name in names.split():
            old, _, new = name.partition("=")
            new = new or old.rpartition("/")[2]
            yield f"tests/{old}.py", f"tests/{room}/{new}.py"


def dotted(path):
    """Returns a path as the name of a module."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def main():
    """Moves, rewrites, and makes the doors of the new rooms."""
    pairs = list(moves())
    staged = []
    for old, new in pairs:
        (ROOT / new).parent.mkdir(exist_ok=True)
        part = new + ".moved"  # a package may take the name of a module
        subprocess.check_call(["git", "mv", old, part], cwd=ROOT)
        staged.append((part, new))
    for part, new in staged:
        subprocess.check_call(["git", "mv", part, new], cwd=ROOT)
    modules = {
        dotted(old): dotted(new)
        for old, new in pairs
        if old.startswith("keras_rl2/")
    }
    paths = dict(pairs)
    files = subprocess.check_output(
        ["git", "ls-files"], cwd=ROOT, text=True
    ).split("\n")
    for name in files:
        path = ROOT / name
        if (
            not name
            or path.is_symlink()
            or path.suffix
            not in {".py", ".md", ".cfg", ".toml", ".in", ".pyi", ".yml", ""}
            or not path.is_file()
        ):
            continue
        if (
            name.startswith(("tests/saved", "benchmarks/results"))
            or name == "CHANGELOG.md"
        ):
            continue
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        new = rewritten(text, modules, paths)
        if new != text:
            path.write_text(new, "utf-8")


def rewritten(text, modules, paths):
    """Returns a text with the new names of modules and paths."""

    def imported(match):
        indent, package, rest, name, alias = match.groups()
        if rest == "import":
            whole = f"{package}.{name}"
            if whole in modules and whole not in PUBLIC:
                home, _, stem = modules[whole].rpartition(".")
                alias = alias or (f" as {name}" if stem != name else "")
                return f"{indent}from \0{home} import {stem}{alias}"
        return match[0]

    text = re.sub(
        r"(?m)^( *)from (keras_rl2[\w.]*) (import) (\w+)( as \w+)?$",
        imported,
        text,
    )
    names = {old: new for old, new in modules.items() if old not in PUBLIC}
    names.update(paths)
    # Longest first, so that no name is taken for the beginning of another.
    either = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    text = re.sub(
        rf"(?<![\w./\0-])({either})(?!\w|\.py|\.moved)",
        lambda match: names[match[0]],
        text,
    )
    for room, (module, public) in PUBLIC.items():
        text = re.sub(
            rf"(?m)^( *)from {re.escape(room)} import (?!{public}\b)(\w+)$",
            rf"\1from {room}.{module} import \2",
            text,
        )
    return text.replace("\0", "")


PUBLIC = {
    "keras_rl2.layers": (
        "observation_normalization",
        "ObservationNormalization",
    ),
    "keras_rl2.metrics": ("mean_of_each", "MeanOfEach"),
    "keras_rl2.tuning": ("fit_seeds", "fit_seeds"),
}

if __name__ == "__main__":
    main()
