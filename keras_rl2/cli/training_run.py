"""One training of `keras-rl2 train`, from the preset to the evaluation."""

import contextlib
import sys

from keras_rl2.callbacks import Checkpoint
from keras_rl2.callbacks import Progress
from keras_rl2.callbacks import TensorBoard
from keras_rl2.cli import agent_file
from keras_rl2.cli.agent_file import AgentFile
from keras_rl2.cli.agent_file import BestAgent
from keras_rl2.cli.evaluate import describe
from keras_rl2.cli.progress_file import STEPS
from keras_rl2.cli.progress_file import ProgressFile
from keras_rl2.cli.progress_file import axis_of
from keras_rl2.cli.run_folder import RunFolder
from keras_rl2.cli.training import Training
from keras_rl2.data.evaluation import EvaluationDataset
from keras_rl2.offline.offline import OfflineDataset
from keras_rl2.presets import Preset

_EVALUATION_EPISODES = 20
# Checkpoints that are kept: an earlier one serves where the newest is damaged.
_KEPT = 2
# Steps from one to the next, where they are to be saved at the end only.
_NEVER = 2**62
# Evaluations of a run, by default.
_EVALUATIONS = 10


def train(
    preset: Preset,
    folder: RunFolder,
    *,
    seed: int,
    checkpoint: int,
    evaluate: int | None,
    resume: bool,
    data: str | None,
) -> None:
    """Trains one agent, saves it and the best one, and prints their returns.

    Args:
        preset: `Preset`. The settings.
        folder: `RunFolder`. Where files go.
        seed: int. Seeds agent and environments.
        checkpoint: int. Environment steps from one saving to the next; 0 for
            the end only. On recorded data, updates; so is the next.
        evaluate: int or None. Environment steps from one evaluation to the
            next; 0 for the end only, None for a tenth of the run.
        resume: bool. Whether to resume the training of the folder.
        data: str or None. Where recorded data is, for a preset of updates.

    Raises:
        ValueError: If settings do not fit each other, the environment or the
            data.
    """
    axis = axis_of(preset)
    length = axis.length(preset)
    taken = 0
    if resume and folder.agent.is_file():
        agent = agent_file.load(folder.agent)
        taken = axis.count(agent)
        if taken >= length:
            verb = "taken" if axis is STEPS else "made"
            print(
                f"{folder.agent}: has {verb} {taken:,} {axis.words} of "
                f"{length:,} already; {axis.option} asks for more"
            )
            # The training may have been killed before this comparison.
            with contextlib.closing(
                _best_agent(preset, folder, seed, evaluate)
            ) as best:
                best.remember()
                best.conclude(agent)
            return
    saved = resume and folder.holds_checkpoint
    # Another seed where an earlier release saved the agent alone: it must not
    # see the same episodes again.
    training = Training.from_preset(
        preset, seed=seed if saved else seed + taken, data=data
    )
    with (
        contextlib.closing(training),
        contextlib.closing(_best_agent(preset, folder, seed, evaluate)) as best,
    ):
        if resume and not saved:
            # Into a new agent: its schedules span the new total of steps.
            agent_file.load_into(training.agent, folder.agent)
        print(_headline(training, seed, folder, taken))
        if resume:
            best.remember()
        else:
            folder.clear()
        folder.path.mkdir(parents=True, exist_ok=True)
        folder.write_preset(training.preset.to_dict())
        _fit(training, folder, checkpoint, best, taken)
        results = best.conclude(training.agent)
    for file, score in ((folder.agent, results), (folder.best, best.score)):
        print(f"{file}: {describe(score, _EVALUATION_EPISODES, 'greedy')}")


def _best_agent(
    preset: Preset, folder: RunFolder, seed: int, evaluate: int | None
) -> BestAgent:
    """Makes the callback that evaluates, with its own environments."""
    episodes = EvaluationDataset(
        preset.environment,
        _EVALUATION_EPISODES,
        num_envs=_EVALUATION_EPISODES,
        seed=seed,
        env_kwargs=preset.env_kwargs,
    )
    axis = axis_of(preset)
    if evaluate is None:
        evaluate = max(axis.length(preset) // _EVALUATIONS, 1)
    return BestAgent(folder, episodes, evaluate, axis)


def _fit(
    training: Training,
    folder: RunFolder,
    checkpoint: int,
    best: BestAgent,
    taken: int,
) -> None:
    """Trains to the end of the run, and saves whatever happens."""
    agent = training.agent
    axis = axis_of(training.preset)
    file = AgentFile(folder.agent, checkpoint, axis)
    table = ProgressFile(folder.progress, axis)
    # The steps of a round that ends with an episode are not known before.
    open_end = axis.length(training.preset) - taken
    progress = Progress(open_end if agent.whole_episodes else None)
    board = TensorBoard(folder.path)
    everything = Checkpoint(
        folder.checkpoints, every_steps=checkpoint or _NEVER, keep=_KEPT
    )
    try:
        training.run([everything, best, progress, table, board, file])
    except BaseException:
        # Also after Ctrl-C or an error of the environment: the weights of the
        # last round may have taken hours.
        if axis.count(agent) > taken:
            file.save(agent)
            # The line of progress has not been ended.
            line_break = "\n" if sys.stdout.isatty() else ""
            print(
                f"{line_break}{folder.agent}: saved at "
                f"{axis.count(agent):,} {axis.words}"
            )
        raise
    finally:
        table.close()
    file.save(agent)
    if axis.count(agent) == taken:
        print(
            f"nothing was left of {axis.length(training.preset):,} "
            f"{axis.words}, of which resets were some; {axis.option} asks for "
            "more"
        )


def _headline(
    training: Training, seed: int, folder: RunFolder, taken: int
) -> str:
    """Returns the first line, which describes the training."""
    preset = training.preset
    axis = axis_of(preset)
    parts = [
        f"{preset.algorithm} on {preset.environment}",
        f"seed {seed}",
        f"{axis.length(preset):,} {axis.words}",
        _experience(training),
    ]
    if taken:
        parts.append(f"resumed at {taken:,}")
    return f"{', '.join(parts)}: {folder.path}"


def _experience(training: Training) -> str:
    """Returns the source of experience in words."""
    if isinstance(training.dataset, OfflineDataset):
        return training.dataset.in_words
    envs = training.preset.num_envs
    return f"{envs} environment{'s' if envs > 1 else ''}"
