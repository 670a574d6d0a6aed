"""`keras-rl2 doctor`: checks that an environment can be learned from."""

import argparse
import re
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING
from typing import Any

from keras_rl2.cli.argument_types import add_env_kwargs
from keras_rl2.cli.argument_types import count
from keras_rl2.cli.argument_types import whole_number

if TYPE_CHECKING:
    from keras_rl2.cli.checks import Finding

SUMMARY = "check an environment: spaces, scales, seeds, ends of episodes"
_VECTOR_STEPS = 200
_GRAPH_ENVS = 8
_TERMINAL_COLOUR = re.compile("\x1b\\[[0-9;]*m")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument(
        "environment",
        metavar="ENV",
        help="environment id, module:id, or module:Class",
    )
    add_env_kwargs(parser)
    parser.add_argument(
        "--steps",
        type=count,
        default=1000,
        help="random steps to look at (default: 1000)",
    )
    parser.add_argument(
        "--seed", type=whole_number, default=0, help="default: 0"
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints one line for each check; returns 1 if one has failed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        findings = list(
            _findings(
                arguments.environment,
                dict(arguments.env_kwargs),
                arguments.steps,
                arguments.seed,
            )
        )
    findings += _warnings(caught)
    for name, ok, text in findings:
        print(f"{'ok' if ok else 'todo':5} {name:18} {text}")
    return 0 if all(finding.ok for finding in findings) else 1


def _findings(
    env_id: str, env_kwargs: dict[str, Any], steps: int, seed: int
) -> Iterator["Finding"]:
    """Yields the findings of all checks."""
    from keras_rl2.cli import checks
    from keras_rl2.cli import environments
    from keras_rl2.cli import random_rollout
    from keras_rl2.envs.adapt import as_vector_env

    graph_env = environments.graph_env_class(env_id)
    if graph_env is not None:
        yield from _graph_findings(graph_env(**env_kwargs), steps, seed)
        return
    with environments.make(env_id, env_kwargs) as env:
        spaces = checks.check_spaces(env.observation_space, env.action_space)
        yield spaces
        if not spaces.ok:
            # The other checks need spaces that are supported.
            return
        yield from checks.check_masks(env, seed)
        rollout = random_rollout.play(env, steps, seed)
        yield from checks.check_observations(rollout, env.observation_space)
        max_steps = env.spec.max_episode_steps
    yield checks.check_rewards(rollout)
    with environments.make(env_id, env_kwargs) as env:
        again = random_rollout.play(env, steps, seed)
    yield checks.check_determinism(rollout, again)
    yield checks.check_ends(rollout, max_steps)
    together = as_vector_env(env_id, num_envs=2, env_kwargs=env_kwargs)
    yield checks.check_autoreset(together, min(steps, _VECTOR_STEPS), seed)
    together.close()


def _graph_findings(env: Any, steps: int, seed: int) -> Iterator["Finding"]:
    """Yields the findings about an environment that runs within a graph."""
    import numpy as np

    from keras_rl2.cli import checks
    from keras_rl2.graph.graph_env_checks import check_graph_env
    from keras_rl2.graph.graph_vector_env import GraphVectorEnv

    try:
        check_graph_env(env)
    except ValueError as error:
        yield checks.Finding("functions", False, " ".join(str(error).split()))
        return
    yield checks.Finding(
        "functions",
        True,
        "shapes, dtypes and numbers stay; nothing is drawn but from the seed",
    )
    yield checks.check_spaces(env.observation_space, env.action_space)
    vector = GraphVectorEnv(env, num_envs=_GRAPH_ENVS)
    vector.reset(seed=seed)
    vector.action_space.seed(seed)
    rewards, lengths = [], []
    elapsed = np.zeros(_GRAPH_ENVS, np.int64)
    for _ in range(-(-steps // _GRAPH_ENVS)):
        _, reward, terminated, truncated, _ = vector.step(
            vector.action_space.sample()
        )
        rewards.append(reward)
        elapsed += 1
        ended = terminated | truncated
        lengths.extend(elapsed[ended].tolist())
        elapsed[ended] = 0
    finite = bool(np.isfinite(rewards).all())
    yield checks.Finding(
        "rewards", finite, f"{np.min(rewards):.3g} to {np.max(rewards):.3g}"
    )
    if lengths:
        text = f"{len(lengths)} episodes of {min(lengths)} to {max(lengths)}"
        yield checks.Finding("ends", True, f"{text} steps")
    else:
        text = f"no episode has ended in {len(rewards)} steps: "
        yield checks.Finding("ends", False, text + "set max_episode_steps")


def _warnings(caught: list[warnings.WarningMessage]) -> list["Finding"]:
    """Returns the distinct warnings of Gymnasium's own checker."""
    from keras_rl2.cli.checks import Finding

    texts = [
        _TERMINAL_COLOUR.sub("", str(each.message)).removeprefix("WARN: ")
        for each in caught
        if "gymnasium" in each.filename
    ]
    return [
        Finding("gymnasium", False, " ".join(text.split()))
        for text in dict.fromkeys(texts)
    ]
