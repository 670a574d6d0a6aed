"""Trainings beside a GPU that is played give the numbers of those without."""

import pathlib

import pytest

from support.processes import printed_by

TESTS = pathlib.Path(__file__).parents[1]
CODE = """
import hashlib
import keras_rl2 as rl
sums = []
for name, env in ("PPO", "CartPole-v1"), ("SAC", "Pendulum-v1"):
    agent = getattr(rl, name).for_env(env, seed=0)
    # By default, so short a training is compiled beside a GPU alone.
    agent.compile(jit_compile=True)
    if agent.on_policy:
        dataset = rl.RolloutDataset(env, horizon=64, seed=0)
    else:
        dataset = rl.ReplayDataset(env, warm_up=100, seed=0)
    agent.fit(dataset, total_steps=256, verbose=0)
    sums += [hashlib.sha256(each).hexdigest() for each in agent.get_weights()]
print(sums)
"""


@pytest.mark.slow
def test_weights_are_equal_bit_for_bit(tmp_path):
    played = "from support import played_gpu; played_gpu.install()\n"
    without, beside = (
        printed_by(code, tmp_path, PYTHONPATH=f"{TESTS.parent}:{TESTS}")
        for code in (CODE, played + CODE)
    )
    assert beside == without
