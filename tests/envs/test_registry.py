"""Every registered environment trains, or is refused with its remedy."""

import importlib
import importlib.util

import gymnasium as gym
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.taxi import TAXI

# One game stands for all of them; their spaces are alike.
_GAMES = ("ALE/Pong-v5", "ALE/Breakout-v5")
_MAKERS = ("gymnasium.envs", "minigrid")
# Their environments are made for another backend than NumPy.
_OTHER_BACKENDS = ("phys2d", "tabular")


def _ids():
    """Returns the newest version of each id that can be made here."""
    for package in ("ale_py", "minigrid"):
        if importlib.util.find_spec(package) is not None:
            gym.register_envs(importlib.import_module(package))
    newest = {}
    for spec in gym.registry.values():
        made_by = str(spec.entry_point).startswith(_MAKERS)
        if not made_by or spec.namespace in _OTHER_BACKENDS:
            continue
        key = spec.namespace, spec.name
        if key not in newest or (spec.version or 0) > newest[key].version:
            newest[key] = spec
    found = [spec.id for spec in newest.values()]
    return sorted(found + [game for game in _GAMES if game in gym.registry])


@pytest.mark.slow
@pytest.mark.parametrize("env_id", _ids())
def test_registered_environments_are_trained_or_refused(env_id):
    try:
        env = rl.envs.make_env(env_id)
    except (ImportError, gym.error.Error, AttributeError, TypeError) as error:
        pytest.skip(f"{type(error).__name__}: {error}")
    try:
        rollouts = rl.RolloutDataset(env, 8, passes=1, batch_size=8, seed=0)
    except ValueError as error:
        words = str(error)
        assert "\n" not in words
        assert "gymnasium.wrappers." in words or "action space" in words
        return
    assert_trained(rollouts)


def assert_trained(rollouts):
    """Trains for a round."""
    agent = rl.PPO.for_env(rollouts.env, hidden=(8,), seed=0)
    agent.compile(keras.optimizers.SGD(0.01), run_eagerly=True)
    history = agent.fit(rollouts, epochs=1, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    rollouts.close()


@pytest.mark.parametrize(
    ("env_id", "wrappers"),
    [
        ("Blackjack-v1", []),
        (TAXI, [rl.envs.ActionMask]),
    ],
)
def test_blackjack_and_taxi_are_trained(env_id, wrappers):
    assert_trained(
        rl.RolloutDataset(
            env_id, horizon=16, passes=1, wrappers=wrappers, seed=0
        )
    )
