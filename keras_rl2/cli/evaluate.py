"""`keras-rl2 evaluate`: returns of a saved agent."""

import argparse

from keras_rl2.cli.argument_types import add_env_kwargs
from keras_rl2.cli.argument_types import count
from keras_rl2.cli.argument_types import whole_number
from keras_rl2.cli.run_folder import AGENT_PATH_HELP
from keras_rl2.cli.run_folder import RunFolder

SUMMARY = "play episodes with a saved agent and print their mean return"
# Environments that are stepped together, at most.
_MOST_ENVS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument("path", metavar="PATH", help=AGENT_PATH_HELP)
    parser.add_argument(
        "--env", help="environment id (default: the one it was trained in)"
    )
    add_env_kwargs(parser, ", on top of those it was trained with")
    parser.add_argument(
        "--episodes", type=count, default=20, help="default: 20"
    )
    parser.add_argument(
        "--seed", type=whole_number, default=0, help="default: 0"
    )
    parser.add_argument(
        "--stochastic",
        action="store_true",
        help="sample actions instead of taking the most probable ones",
    )


def run(arguments: argparse.Namespace) -> int:
    """Plays the episodes and prints one line."""
    from keras_rl2.cli import environments

    folder, file = RunFolder.holding(arguments.path)
    env_id, env_kwargs = folder.environment(
        arguments.env, dict(arguments.env_kwargs)
    )
    # TensorFlow takes seconds: errors that do not need it come first.
    environments.make(env_id, env_kwargs).close()

    from keras_rl2.cli import agent_file

    agent = agent_file.load(file)
    results = agent.evaluate(
        env_id,
        episodes=arguments.episodes,
        num_envs=min(arguments.episodes, _MOST_ENVS),
        deterministic=not arguments.stochastic,
        seed=arguments.seed,
        env_kwargs=env_kwargs,
    )
    how = "stochastic" if arguments.stochastic else "greedy"
    print(f"{env_id}: {describe(results, arguments.episodes, how)}")
    return 0


def describe(results: dict[str, float], episodes: int, how: str) -> str:
    """Describes the results of `agent.evaluate` in words.

    Args:
        results: dict. Returned by `agent.evaluate`.
        episodes: int. How many were played.
        how: str. `"greedy"` or `"stochastic"`.

    Returns:
        str: part of a line.

    Example:

    >>> describe({"episode_return": 499.5, "episode_return_std": 1.25,
    ...           "episode_length": 499.5}, 20, "greedy")
    'return 499.5 +- 1.2 (mean and deviation of 20 greedy episodes of 499.5
    steps)'
    """
    return (
        f"return {results['episode_return']:.1f} +- "
        f"{results['episode_return_std']:.1f} (mean and deviation of "
        f"{episodes} {how} episodes of {results['episode_length']:.1f} steps)"
    )
