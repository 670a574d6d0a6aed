"""MountainCar within a graph."""

import gymnasium
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph import random_numbers
from keras_rl2.envs.graph.graph_env import GraphEnv

_LEFT_END, _RIGHT_END, _GOAL = -1.2, 0.6, 0.5
_MOST_SPEED = 0.07
_FORCE, _GRAVITY = 0.001, 0.0025


class MountainCar(GraphEnv):
    """A car too weak for the hill, which must gain speed on the other side.

    It equals Gymnasium's `MountainCar-v0`.

    Args:
        max_episode_steps: int. Time limit. Defaults to `200`.

    Example:

    >>> env = MountainCar()
    >>> state, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    >>> float(observation[1])
    0.0

    Reference:
        - Moore, 1990, "Efficient Memory-based Learning for Robot Control".
    """

    def __init__(self, max_episode_steps: int = 200) -> None:
        self.max_episode_steps = max_episode_steps
        env = gymnasium.make("MountainCar-v0")
        self.observation_space = env.observation_space
        self.action_space = env.action_space

    def reset(self, seed: Tensor) -> tuple[Tensor, Tensor]:
        """Begins at rest in the valley."""
        state = at_rest(seed)
        return state, state

    def step(
        self, state: Tensor, action: Tensor, seed: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Drives the car; see `GraphEnv.step`."""
        push = (ops.cast(action, "float32") - 1.0) * _FORCE
        state = driven(state, push, _GRAVITY)
        terminated = (state[0] >= _GOAL) & (state[1] >= 0.0)
        return (
            state,
            state,
            -ops.ones((), "float32"),
            terminated,
            ops.zeros((), "bool"),
        )


def at_rest(seed: Tensor) -> Tensor:
    """Returns the state of a car at rest, somewhere in the valley.

    Args:
        seed: `[2]` uint32.

    Returns:
        `[2]` float32. Position and speed.
    """
    position = random_numbers.uniform(seed, (), -0.6, -0.4)
    state: Tensor = ops.stack([position, ops.zeros((), "float32")])
    return state


def driven(state: Tensor, push: Tensor, gravity: float) -> Tensor:
    """Returns the state of the car after one step.

    Args:
        state: `[2]` float32. Position and speed.
        push: scalar float32. Acceleration by the engine.
        gravity: float. Acceleration by the steepest slope.

    Returns:
        `[2]` float32.
    """
    position, speed = ops.unstack(state)
    speed = speed + push - gravity * ops.cos(3.0 * position)
    speed = ops.clip(speed, -_MOST_SPEED, _MOST_SPEED)
    position = ops.clip(position + speed, _LEFT_END, _RIGHT_END)
    # The wall on the left stops it.
    speed = ops.where((position <= _LEFT_END) & (speed < 0.0), 0.0, speed)
    after: Tensor = ops.stack([position, speed])
    return after
