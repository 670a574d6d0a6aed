"""Pendulum within a graph."""

import math

import gymnasium
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph import random_numbers
from keras_rl2.envs.graph.graph_env import GraphEnv

_GRAVITY = 10.0
_SECONDS = 0.05
_MOST_SPEED, _MOST_TORQUE = 8.0, 2.0


class Pendulum(GraphEnv):
    """A pendulum that is swung up by a torque, and kept upright.

    It equals Gymnasium's `Pendulum-v1`.

    Args:
        max_episode_steps: int. Time limit. Defaults to `200`.

    Example:

    >>> env = Pendulum()
    >>> state, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    >>> observation.shape
    TensorShape([3])
    """

    def __init__(self, max_episode_steps: int = 200) -> None:
        self.max_episode_steps = max_episode_steps
        env = gymnasium.make("Pendulum-v1")
        self.observation_space = env.observation_space
        self.action_space = env.action_space

    def reset(self, seed: Tensor) -> tuple[Tensor, Tensor]:
        """Begins at a random angle and speed."""
        drawn = random_numbers.uniform(seed, (2,), -1.0, 1.0)
        state = drawn * ops.convert_to_tensor([math.pi, 1.0])
        return state, _observed(state)

    def step(
        self, state: Tensor, action: Tensor, seed: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Turns the pendulum for 0.05 seconds; see `GraphEnv.step`."""
        angle, speed = ops.unstack(state)
        torque = ops.clip(action[0], -_MOST_TORQUE, _MOST_TORQUE)
        cost = angle**2 + 0.1 * speed**2 + 0.001 * torque**2
        # Mass and length are 1.
        acceleration = 1.5 * _GRAVITY * ops.sin(angle) + 3.0 * torque
        speed = ops.clip(
            speed + acceleration * _SECONDS, -_MOST_SPEED, _MOST_SPEED
        )
        angle = angle + speed * _SECONDS
        # Within a turn, float32 is the most exact.
        angle = ops.mod(angle + math.pi, 2.0 * math.pi) - math.pi
        state = ops.stack([angle, speed])
        no = ops.zeros((), "bool")
        return state, _observed(state), -cost, no, no


def _observed(state: Tensor) -> Tensor:
    """Returns the observation of a state."""
    angle, speed = ops.unstack(state)
    observation: Tensor = ops.stack([ops.cos(angle), ops.sin(angle), speed])
    return observation
