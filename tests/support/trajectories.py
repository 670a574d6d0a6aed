"""Trajectories without an environment."""

import types

import numpy as np


def trajectory(observation, reward=None, valid=None, action=None):
    """T steps of B environments; `observation` holds one row more."""
    shape = observation.shape[0] - 1, observation.shape[1]
    return types.SimpleNamespace(
        observation=observation,
        action=np.zeros(shape, np.int32) if action is None else action,
        reward=np.zeros(shape) if reward is None else np.array(reward),
        valid=np.ones(shape, bool) if valid is None else np.array(valid),
    )
