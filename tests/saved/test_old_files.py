"""What releases have saved keeps loading, acts as it did and trains on."""

import json
import pathlib

import numpy as np
import pytest

import keras_rl2 as rl

_FOLDER = pathlib.Path(__file__).parent


RELEASES = [
    (known.parent, json.loads(known.read_text("utf-8"))["agents"])
    for known in sorted(_FOLDER.glob("*/agents.json"))
]
CASES = [
    pytest.param(folder / f"{name}.keras", known, id=f"{folder.name}-{name}")
    for folder, agents in RELEASES
    for name, known in agents.items()
]
# One of each optimizer and dataset.
TRAINED = {"ppo_box", "a2c_two_optimizers", "dqn_rainbow", "sac"}


@pytest.mark.parametrize(("path", "expected"), CASES)
def test_loads_acts_and_trains_on(path, expected):
    agent = rl.load(path)
    assert type(agent) is getattr(rl, expected["class"])
    assert agent.env_steps == expected["env_steps"]
    assert int(agent.optimizer.iterations) == expected["iterations"]
    # What it did not store has the old default.
    assert getattr(agent, "noise_color", "white") == "white"
    assert type(agent) is not rl.DQN or agent.tau == 0.03
    observation = np.array(expected["observation"], np.float32)
    actions = agent.act(observation, deterministic=True)
    np.testing.assert_allclose(actions, expected["action"], rtol=1e-5)
    if path.stem not in TRAINED:
        return
    make = rl.RolloutDataset if agent.on_policy else rl.ReplayDataset
    sizes = (
        {"horizon": 8, "passes": 1}
        if agent.on_policy
        else {"steps_per_round": 8, "updates_per_round": 1, "warm_up": 8}
    )
    # It goes on from the file's arguments, without what tracing takes.
    agent.run_eagerly = True
    dataset = make(expected["environment"], batch_size=8, seed=0, **sizes)
    agent.fit(dataset, total_steps=1 if agent.on_policy else 9, verbose=0)
    assert agent.env_steps > expected["env_steps"]
    assert int(agent.optimizer.iterations) == expected["iterations"] + 1
