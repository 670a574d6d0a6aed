"""Several threads of a program share a policy, as in a server."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import keras_rl2 as rl
from support.export_cases import observations_of
from support.exported import export
from support.structured_envs import row

THREADS, CALLS, ROWS = 8, 400, 50


@pytest.fixture(autouse=True)
def many_switches():
    """Lets threads interrupt each other as often as on a busy machine."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def in_threads(call):
    with ThreadPoolExecutor(THREADS) as threads:
        return [*threads.map(call, range(THREADS))]


def assert_each_call_is_whole(act, observations):
    """Compares the actions of several threads with those of one."""
    alone = [np.array(act(each)) for each in observations]
    assert len(np.unique(alone, axis=0)) == len(observations)

    def serve(seed):
        rows = np.random.default_rng(seed).integers(ROWS, size=CALLS)
        wrong = [np.any(act(observations[k]) != alone[k]) for k in rows]
        return sum(wrong)

    assert in_threads(serve) == [0] * THREADS


@pytest.mark.parametrize("form", ["litert", "onnx", "tf_saved_model"])
def test_threads_share_a_file(form, agents, tmp_path):
    agent = agents("plain", "SAC")
    path = export(agent, tmp_path, form)
    batch = observations_of(agent, ROWS)
    observations = [row(batch, index) for index in range(ROWS)]
    policy = rl.PolicyFile(path, trusted=True)
    assert_each_call_is_whole(policy.act, observations)


def test_threads_share_a_policy_without_a_file(agents):
    agent = agents("plain", "SAC")
    batch = observations_of(agent, ROWS)
    observations = [row(batch, index) for index in range(ROWS)]
    assert_each_call_is_whole(agent.policy.litert(), observations)


def test_threads_share_an_evaluation():
    agent = rl.SAC.for_env("Pendulum-v1", hidden=(8,), seed=0)
    episodes = rl.EvaluationDataset("Pendulum-v1", episodes=1, seed=0)
    alone = agent.evaluate(episodes)
    found = in_threads(lambda _: agent.evaluate(episodes))
    assert found == [alone] * THREADS
