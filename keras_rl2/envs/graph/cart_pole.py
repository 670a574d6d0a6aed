"""CartPole within a graph."""

import math

import gymnasium
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph import random_numbers
from keras_rl2.envs.graph.graph_env import GraphEnv

_GRAVITY = 9.8
_TOTAL_MASS = 1.1
_POLE_MASS = 0.1
_HALF_LENGTH = 0.5
_FORCE = 10.0
_SECONDS = 0.02
_FAR, _STEEP = 2.4, 12 * 2 * math.pi / 360


class CartPole(GraphEnv):
    """A pole on a cart, which is pushed to the left or to the right.

    It equals Gymnasium's `CartPole-v1`.

    Args:
        max_episode_steps: int. Time limit. Defaults to `500`.

    Example:

    >>> env = CartPole()
    >>> state, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    >>> observation.shape
    TensorShape([4])

    Reference:
        - Barto, Sutton and Anderson, 1983, "Neuronlike adaptive elements that
          can solve difficult learning control problems".
    """

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, max_episode_steps: int = 500) -> None:
        self.max_episode_steps = max_episode_steps
        # Bounds of speeds differ between versions of Gymnasium.
        space = gymnasium.make("CartPole-v1").observation_space
        self.observation_space = space

    def reset(self, seed: Tensor) -> tuple[Tensor, Tensor]:
        """Begins near the upright position at rest."""
        state = random_numbers.uniform(seed, (4,), -0.05, 0.05)
        return state, state

    def step(
        self, state: Tensor, action: Tensor, seed: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Moves cart and pole for 0.02 seconds; see `GraphEnv.step`."""
        x, x_speed, angle, angle_speed = ops.unstack(state)
        force = ops.where(action == 1, _FORCE, -_FORCE)
        sine, cosine = ops.sin(angle), ops.cos(angle)
        pole = _POLE_MASS * _HALF_LENGTH
        push = (force + pole * angle_speed**2 * sine) / _TOTAL_MASS
        inertia = _HALF_LENGTH * (
            4.0 / 3.0 - _POLE_MASS * cosine**2 / _TOTAL_MASS
        )
        angle_acceleration = (_GRAVITY * sine - cosine * push) / inertia
        acceleration = push - pole * angle_acceleration * cosine / _TOTAL_MASS
        state = ops.stack(
            [
                x + _SECONDS * x_speed,
                x_speed + _SECONDS * acceleration,
                angle + _SECONDS * angle_speed,
                angle_speed + _SECONDS * angle_acceleration,
            ]
        )
        terminated = (ops.abs(state[0]) > _FAR) | (ops.abs(state[2]) > _STEEP)
        return state, state, ops.ones(()), terminated, ops.zeros((), "bool")
