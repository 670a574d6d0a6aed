"""Seeded runs repeat bit for bit, in a new process too."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from support.agents import EVERY_AGENT
from support.agents import KINDS
from support.agents import assert_equal_weights
from support.agents import make_agent
from support.agents import make_env

TESTS = pathlib.Path(__file__).parents[1]
RUNS = [
    *((name, "plain") for name in KINDS),
    *((name, "compiled") for name in ("PPO", "SAC", "DQN")),
]


def train(name, **compile_arguments):
    case = EVERY_AGENT[name]
    env = make_env("act_box" if "box" in case.actions else case.pair)
    agent = make_agent(
        case,
        env,
        compile_arguments=compile_arguments,
        normalize_observations=True,
    )
    if case.on_policy:
        settings = {"passes": 2, "scale_rewards": True}
    else:
        # Priorities follow the TD errors, of either precision.
        jit_compile = compile_arguments.get("jit_compile")
        prioritized = not jit_compile and case.networks != ("actor",)
        settings = {"warm_up": 16, "n_step": 2, "prioritized": prioritized}
    dataset = case.make_dataset(env, **settings)
    agent.fit(dataset, epochs=3, verbose=0)
    return agent


_IN_A_PROCESS = """
import json, sys
import numpy as np
paths, file, runs = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
sys.path[:0] = paths
from agents import test_seeds
for name, run in json.loads(runs):
    agent = test_seeds.train(name, jit_compile=run == "compiled")
    np.savez(f"{file}-{name}-{run}", *agent.get_weights())
"""


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_run")
def test_new_processes_give_equal_weights(tmp_path):
    """Earlier computations of this process do not matter either."""
    running = []
    for hash_seed in ("1", "2"):
        paths = json.dumps([str(TESTS), str(TESTS.parent)])
        file = str(tmp_path / hash_seed)
        arguments = [paths, file, json.dumps(RUNS)]
        process = subprocess.Popen(
            [sys.executable, "-c", _IN_A_PROCESS, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        )
        running.append(process)
    for process in running:
        _, errors = process.communicate()
        assert process.returncode == 0, errors[-2000:]
    for name, run in RUNS:
        one, other = (
            list(np.load(tmp_path / f"{seed}-{name}-{run}.npz").values())
            for seed in ("1", "2")
        )
        assert_equal_weights(one, other)
        if run == "plain":
            assert_equal_weights(train(name, jit_compile=False), one)


#: The state of a random generator that nothing else is drawn from.
OTHER_CHANCE = np.random.default_rng(99).bit_generator.state


def bound_dataset(name, changed=None):
    """Returns a dataset in the state of one of which all seeds are 0.

    Args:
        name: Of the agent.
        changed: The source of chance that has another seed.
    """
    case = EVERY_AGENT[name]
    agent = make_agent(
        case, make_env(case.pair), seed=int(changed == "weights")
    )
    prioritized = {} if case.on_policy else {"prioritized": True}
    usual, dataset = (
        case.make_dataset(make_env(case.pair), seed=seed, **prioritized)
        for seed in (0, int(changed == "env"))
    )
    usual.bind(agent)
    dataset.bind(agent)
    return dataset, usual.get_state()


def first_rollouts(changed=None):
    """Returns the samples of a first round, and the order of its rows."""
    rollouts, state = bound_dataset("PPO", changed)
    if changed in ("noise", "shuffle"):
        state[changed] = OTHER_CHANCE
    rollouts.set_state(state)
    rollouts.refresh()
    seen = ("observation", "action", "value")
    rows = rollouts.hand_over()["rows"]
    return {**{key: rollouts.samples[key] for key in seen}, "rows": rows}


def first_replay(changed=None):
    """Returns the stored steps of a first round, and the drawn indices."""
    replay, state = bound_dataset("SAC", changed)
    if changed == "noise":
        state["noise"] = OTHER_CHANCE
    elif changed == "draws":
        state["buffer"]["generator"] = OTHER_CHANCE
    replay.set_state(state)
    replay.refresh()
    # In the order that it was stored in, but for what was drawn of it.
    buffer, batches = replay.buffer.get_state(), replay.hand_over()["batches"]
    stored = {key: buffer[key] for key in ("observation", "action")}
    return {**stored, "index": batches["index"]}


@pytest.mark.parametrize(
    ("first_round", "expected"),
    [
        (
            first_rollouts,
            {
                "env": {"observation", "value"},
                "noise": {"action"},
                "shuffle": {"rows"},
                "weights": {"value"},
            },
        ),
        (
            first_replay,
            {
                "env": {"observation"},
                "noise": {"action"},
                "draws": {"index"},
                "weights": set(),
            },
        ),
    ],
)
def test_each_source_of_chance_is_seeded(first_round, expected):
    """Each source of chance changes its own arrays, and no others."""
    usual = first_round()
    np.testing.assert_equal(first_round(), usual)
    for what, keys in expected.items():
        other = first_round(what)
        changed = {key for key in usual if (other[key] != usual[key]).any()}
        # Actions may or may not change with observations and weights.
        assert changed - {"action"} == keys - {"action"}, what
        assert "action" in changed or what != "noise"
