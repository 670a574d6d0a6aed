"""`keras-rl2 export`: the policy without the library."""

import argparse
import functools
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from keras_rl2.agents import Agent
from keras_rl2.agents import ExportCheck
from keras_rl2.agents.loader import load
from keras_rl2.cli.evaluate import MOST_ENVS
from keras_rl2.cli.run_folder import RunFolder
from keras_rl2.export import policy_file as formats
from keras_rl2.offline.recorder import record
from keras_rl2.spaces.trees import map_leaves

# Steps of the agent, and random steps, in which int8 finds its ranges.
_RECORDED = 1000


def run(arguments: argparse.Namespace) -> int:
    """Exports the policy, if it passes the check, and prints where it is."""
    folder, file = RunFolder.holding(arguments.path)
    agent = load(file)
    name = f"policy{formats.ENDINGS[arguments.format]}"
    output = Path(arguments.output or folder.path / name)
    write = functools.partial(
        agent.export,
        format=arguments.format,
        deterministic=not arguments.stochastic,
        quantize=arguments.quantize,
        representative=_representative(agent, folder, arguments),
        batch_size=arguments.batch_size,
    )
    summary = ""
    if arguments.check:
        with tempfile.TemporaryDirectory() as temporary:
            draft = Path(temporary, output.name)
            write(draft)
            check = _checked(agent, folder, arguments, draft)
        summary = _described(output, check)
        if not check.passed:
            print(f"{summary}; not written", file=sys.stderr)
            return 1
    output.parent.mkdir(parents=True, exist_ok=True)
    write(output)
    how, noise = "greedy", ""
    if arguments.stochastic:
        how, noise = "stochastic", " and noise"
    kind = f", {arguments.quantize}" if arguments.quantize else ""
    print(
        f"{output}: {how} policy as {arguments.format}{kind}, raw "
        f"observations{noise} in, actions out"
    )
    if summary:
        print(summary)
    return 0


def _representative(
    agent: Agent, folder: RunFolder, arguments: argparse.Namespace
) -> Any:
    """Records the observations in which int8 finds its ranges.

    A trained policy sees little besides its own path, and its ranges would not
    cover the way back to it: so half of the steps are random.
    """
    if arguments.quantize != formats.INT8:
        return None
    env_id, env_kwargs = folder.environment(arguments)
    observations = []
    for policy in (agent, "random"):
        dataset = record(policy, env_id, _RECORDED, env_kwargs=env_kwargs)
        observations.append(dataset.recorded.observation)
    return map_leaves(lambda *each: np.concatenate(each), *observations)


def _checked(
    agent: Agent, folder: RunFolder, arguments: argparse.Namespace, path: Path
) -> ExportCheck:
    """Plays a file against the agent."""
    env_id, env_kwargs = folder.environment(arguments)
    return agent.check_export(
        path,
        env_id,
        episodes=arguments.episodes,
        num_envs=arguments.batch_size or min(arguments.episodes, MOST_ENVS),
        seed=arguments.seed,
        env_kwargs=env_kwargs,
    )


def _described(path: Path, check: ExportCheck) -> str:
    """Describes the results of a check in words."""
    verdict = "acts as the agent" if check.passed else "FAILED"
    return (
        f"{path}: {verdict}: on {check.observations:,} observations numbers "
        f"differ by up to {check.difference:.2g} and {check.disagreements:.2%} "
        f"of choices differ; return {check.file_episode_return:.1f}, the "
        f"agent's {check.episode_return:.1f}"
    )
