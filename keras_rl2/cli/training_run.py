"""One training of `keras-rl2 train`, from the preset to the evaluation."""

import contextlib
import sys
import warnings
from pathlib import Path

from keras_rl2.agents import Agent
from keras_rl2.agents.loader import load
from keras_rl2.callbacks import Checkpoint
from keras_rl2.callbacks import Progress
from keras_rl2.callbacks import TensorBoard
from keras_rl2.cli.evaluate import describe
from keras_rl2.cli.run_folder import RunFolder
from keras_rl2.cli.run_folder import write_json
from keras_rl2.cli.training import Training
from keras_rl2.cli.training_files import AgentFiles
from keras_rl2.cli.training_files import ProgressFile
from keras_rl2.cli.training_files import count
from keras_rl2.data.evaluation import EvaluationDataset
from keras_rl2.offline.offline import OfflineDataset
from keras_rl2.presets import Preset

EVALUATION_EPISODES = 20
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
    length = preset.updates or preset.total_steps
    if evaluate is None:
        evaluate = max(length // _EVALUATIONS, 1)
    axis = "updates" if preset.updates else "env_steps"
    unit = axis.removeprefix("env_")
    episodes = evaluation_of(preset, seed)
    files = AgentFiles(folder, episodes, checkpoint, evaluate, axis)
    with contextlib.ExitStack() as stack:
        stack.callback(files.close)
        taken = 0
        if resume and folder.agent.is_file():
            agent = load(folder.agent)
            taken = count(agent, axis)
            if taken >= length:
                print(
                    f"{folder.agent}: has {taken:,} of {length:,} {unit} "
                    f"already; --{unit} asks for more"
                )
                # The training may have been killed before this comparison.
                files.remember()
                files.conclude(agent)
                return
        saved = resume and folder.holds_checkpoint
        # Another seed where an earlier release saved the agent alone: it must
        # not see the same episodes again.
        own_seed = seed if saved else seed + taken
        training = Training.from_preset(preset, seed=own_seed, data=data)
        stack.callback(training.close)
        if resume and not saved:
            # Into a new agent: its schedules span the new total of steps.
            _load_into(training.agent, folder.agent)
        resumed = f", resumed at {taken:,}" if taken else ""
        print(
            f"{preset.algorithm} on {preset.environment}, seed {seed}, "
            f"{length:,} {unit}, {_experience(training)}{resumed}: "
            f"{folder.path}"
        )
        if resume:
            files.remember()
        else:
            folder.clear()
        folder.path.mkdir(parents=True, exist_ok=True)
        write_json(folder.preset, training.preset.to_dict())
        _fit(training, files, length, taken)
        results = files.conclude(training.agent)
    for file, score in ((folder.agent, results), (folder.best, files.score)):
        print(f"{file}: {describe(score, EVALUATION_EPISODES, 'greedy')}")


def evaluation_of(preset: Preset, seed: int) -> EvaluationDataset:
    """Returns episodes to evaluate on, in environments of their own."""
    return EvaluationDataset(
        preset.environment,
        EVALUATION_EPISODES,
        num_envs=EVALUATION_EPISODES,
        seed=seed,
        env_kwargs=preset.env_kwargs,
    )


def _fit(
    training: Training, files: AgentFiles, length: int, taken: int
) -> None:
    """Trains to the end of the run, and saves whatever happens."""
    agent, folder, axis = training.agent, files.folder, files.axis
    unit = axis.removeprefix("env_")
    table = ProgressFile(folder.progress, axis)
    # The steps of a round that ends with an episode are not known before.
    progress = Progress(length - taken if agent.whole_episodes else None)
    everything = Checkpoint(
        folder.checkpoints, every_steps=files.save_every or _NEVER, keep=_KEPT
    )
    board = TensorBoard(folder.path)
    try:
        training.run([everything, files, progress, table, board])
    except BaseException:
        # Also after Ctrl-C or an error of the environment: the weights of the
        # last round may have taken hours.
        done = count(agent, axis)
        if done > taken:
            files.save(agent)
            # The line of progress has not been ended.
            line_break = "\n" if sys.stdout.isatty() else ""
            print(f"{line_break}{folder.agent}: saved at {done:,} {unit}")
        raise
    finally:
        table.close()
    files.save(agent)
    if count(agent, axis) == taken:
        print(
            f"nothing was left of {length:,} {unit}, of which resets were "
            f"some; --{unit} asks for more"
        )


def _load_into(agent: Agent, path: Path) -> None:
    """Loads weights, optimizer state and step count into an agent."""
    agent.optimizer.build(agent.trainable_variables)
    try:
        with warnings.catch_warnings():
            # Keras only warns if it does not load an optimizer.
            warnings.simplefilter("error", UserWarning)
            agent.load_weights(path)
    except (ValueError, UserWarning) as error:
        raise ValueError(
            f"{path}: does not fit the settings of its preset.json: {error}"
        ) from error


def _experience(training: Training) -> str:
    """Returns the source of experience in words."""
    if isinstance(training.dataset, OfflineDataset):
        return training.dataset.in_words
    envs = training.preset.num_envs
    return f"{envs} environment{'s' if envs > 1 else ''}"
