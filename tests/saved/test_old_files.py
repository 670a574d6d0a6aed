"""What releases have saved keeps loading, acts as it did and trains on."""

import json
import pathlib

import numpy as np
import pytest

import keras_rl2 as rl

_FOLDER = pathlib.Path(__file__).parent


def _cases():
    for known in sorted(_FOLDER.glob("*/agents.json")):
        agents = json.loads(known.read_text())["agents"]
        for name, expected in agents.items():
            path = known.parent / f"{name}.keras"
            yield pytest.param(path, expected, id=f"{path.parent.name}-{name}")


@pytest.mark.parametrize(("path", "expected"), list(_cases()))
def test_loads_acts_and_trains_on(path, expected):
    agent = rl.load(path)
    assert type(agent) is getattr(rl, expected["class"])
    assert agent.env_steps == expected["env_steps"]
    assert int(agent.optimizer.iterations) == expected["iterations"]
    observation = np.array(expected["observation"], np.float32)
    actions = agent.act(observation, deterministic=True)
    np.testing.assert_allclose(actions, expected["action"], rtol=1e-5)
    env = expected["environment"]
    if agent.on_policy:
        dataset = rl.RolloutDataset(
            env, horizon=8, passes=1, batch_size=8, seed=0
        )
    else:
        dataset = rl.ReplayDataset(
            env,
            capacity=64,
            batch_size=8,
            steps_per_round=8,
            updates_per_round=1,
            warm_up=8,
            rounds_per_epoch=1,
        )
    # It goes on from the file's arguments, without what tracing takes.
    agent.run_eagerly = True
    agent.fit(dataset, verbose=0)
    assert agent.env_steps > expected["env_steps"]
    assert int(agent.optimizer.iterations) == expected["iterations"] + 1
