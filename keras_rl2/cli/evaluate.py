"""`keras-rl2 evaluate`: returns of a saved agent."""

import argparse

from keras_rl2.agents.loader import load
from keras_rl2.cli.run_folder import RunFolder

# The largest number of environments that are stepped together.
MOST_ENVS = 20


def run(arguments: argparse.Namespace) -> None:
    """Plays the episodes and prints one line."""
    folder, file = RunFolder.holding(arguments.path)
    env_id, env_kwargs = folder.environment(arguments)
    results = load(file).evaluate(
        env_id,
        episodes=arguments.episodes,
        num_envs=min(arguments.episodes, MOST_ENVS),
        deterministic=not arguments.stochastic,
        seed=arguments.seed,
        env_kwargs=env_kwargs,
    )
    how = "stochastic" if arguments.stochastic else "greedy"
    print(f"{env_id}: {describe(results, arguments.episodes, how)}")


def describe(results: dict[str, float], episodes: int, how: str) -> str:
    """Describes the results of `agent.evaluate` in words.

    Example:

    >>> describe({"episode_return": 499.5, "episode_return_std": 1.25,
    ...           "episode_length": 499.5}, 20, "greedy")
    'return 499.5 +- 1.2 (mean and deviation of 20 greedy episodes of 499.5
    steps)'
    """
    players = "".join(
        f", {key.partition('/')[2]} {value:.1f}"
        for key, value in results.items()
        if "/" in key
    )
    return (
        f"return {results['episode_return']:.1f} +- "
        f"{results['episode_return_std']:.1f} (mean and deviation of "
        f"{episodes} {how} episodes of {results['episode_length']:.1f} steps)"
        f"{players}"
    )
