"""Trajectories as compiled functions are given them."""

from typing import Any

from keras_rl2.basics.shapes import Tensor


def unpack(packed: dict[str, Any]) -> dict[str, Any]:
    """Undoes `Trajectory.packed_arrays`, in the graph.

    Args:
        packed: dict of tensors.

    Returns:
        dict as of `Trajectory.arrays`; without final observations where none
        were packed.

    Example:

    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("CartPole-v1", horizon=8, seed=0)
    >>> rollouts.bind(rl.PPO.for_env(rollouts.env, hidden=(8,), seed=0))
    >>> trajectory = rollouts.collect()
    >>> arrays = unpack(trajectory.packed_arrays(with_final=False))
    >>> arrays["reward"].shape
    (8, 1)
    """
    arrays = {key: value for key, value in packed.items() if key != "outcome"}
    outcome: Tensor = packed["outcome"]
    arrays["reward"] = outcome[0]
    for position, flag in enumerate(("terminated", "truncated", "valid"), 1):
        arrays[flag] = outcome[position] > 0.5
    return arrays
