"""One training of `keras-rl2 train`, from the preset to the evaluation."""

import sys

from keras_rl2.callbacks import Progress
from keras_rl2.callbacks import TensorBoard
from keras_rl2.cli import saved_agents
from keras_rl2.cli.agent_file import AgentFile
from keras_rl2.cli.best_agent import BestAgent
from keras_rl2.cli.evaluate import describe
from keras_rl2.cli.progress_file import ProgressFile
from keras_rl2.cli.run_folder import RunFolder
from keras_rl2.data import EvaluationDataset
from keras_rl2.presets import Preset
from keras_rl2.training import Training

_EVALUATION_EPISODES = 20
# Evaluations of a run whose steps between them nobody chose.
_EVALUATIONS = 10


def train(
    preset: Preset,
    folder: RunFolder,
    *,
    seed: int,
    checkpoint: int,
    evaluate: int | None,
    resume: bool,
) -> None:
    """Trains one agent, saves it and the best one, and prints what they give.

    Args:
        preset: `Preset`. The settings.
        folder: `RunFolder`. Where files go.
        seed: int. Seeds agent and environments.
        checkpoint: int. Environment steps from one saving to the next; 0 for
            the end only.
        evaluate: int or None. Environment steps from one evaluation to the
            next; 0 for the end only, None for a tenth of the run.
        resume: bool. Whether to go on with the agent in the folder.

    Raises:
        ValueError: If settings do not fit each other or the environment.
    """
    taken = saved_agents.load(folder.agent).env_steps if resume else 0
    if taken >= preset.total_steps:
        print(
            f"{folder.agent}: has taken {taken:,} steps of "
            f"{preset.total_steps:,} already; --steps asks for more"
        )
        return
    # Another seed: a resumed agent is not to see the same episodes again.
    training = Training.from_preset(preset, seed=seed + taken)
    best = _best_agent(training, folder, seed, evaluate)
    if resume:
        # Into an agent whose schedules span the steps now asked for.
        saved_agents.load_into(training.agent, folder.agent)
    print(_headline(training, seed, folder))
    if resume:
        best.remember()
    else:
        folder.clear()
    folder.path.mkdir(parents=True, exist_ok=True)
    folder.write_preset(training.preset.to_dict())
    _fit(training, folder, checkpoint, best)
    results = best.conclude(training.agent)
    for file, score in ((folder.agent, results), (folder.best, best.score)):
        print(f"{file}: {describe(score, _EVALUATION_EPISODES, 'greedy')}")
    best.close()
    training.dataset.close()


def _best_agent(
    training: Training, folder: RunFolder, seed: int, evaluate: int | None
) -> BestAgent:
    """Makes what evaluates, in environments of its own."""
    episodes = EvaluationDataset(
        training.env_id,
        _EVALUATION_EPISODES,
        num_envs=_EVALUATION_EPISODES,
        seed=seed,
        env_kwargs=training.preset.env_kwargs,
    )
    if evaluate is None:
        evaluate = max(training.total_steps // _EVALUATIONS, 1)
    return BestAgent(folder, episodes, evaluate)


def _fit(
    training: Training, folder: RunFolder, checkpoint: int, best: BestAgent
) -> None:
    """Trains to the total steps, and saves whatever happens."""
    agent = training.agent
    taken = agent.env_steps
    file = AgentFile(folder.agent, checkpoint)
    table = ProgressFile(folder.progress)
    progress = Progress(training.total_steps - taken)
    board = TensorBoard(folder.path)
    try:
        training.run([best, progress, table, board, file])
    except BaseException:
        # Also after Ctrl-C, or an environment that failed at night: the
        # weights are those of the last round, which took hours maybe.
        if agent.env_steps > taken:
            file.save(agent)
            # The line of progress has not been ended.
            line_break = "\n" if sys.stdout.isatty() else ""
            print(
                f"{line_break}{folder.agent}: saved at "
                f"{agent.env_steps:,} steps"
            )
        raise
    finally:
        table.close()
    file.save(agent)


def _headline(training: Training, seed: int, folder: RunFolder) -> str:
    """Says what is about to be done."""
    preset = training.preset
    envs = preset.num_envs
    parts = [
        f"{preset.algorithm} on {preset.environment}",
        f"seed {seed}",
        f"{preset.total_steps:,} steps",
        f"{envs} environment{'s' if envs > 1 else ''}",
    ]
    if training.agent.env_steps:
        parts.append(f"resumed at {training.agent.env_steps:,}")
    return f"{', '.join(parts)}: {folder.path}"
