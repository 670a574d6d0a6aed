"""Acrobot within a graph."""

import math

import gymnasium
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph import random_numbers
from keras_rl2.envs.graph.graph_env import GraphEnv

_SECONDS = 0.2
_GRAVITY = 9.8
# Masses and lengths of both links are 1.
_CENTRE, _INERTIA = 0.5, 1.0
_MOST_SPEEDS = 4.0 * math.pi, 9.0 * math.pi


class Acrobot(GraphEnv):
    """Two links, of which the joint between them is to lift the lower one.

    It equals Gymnasium's `Acrobot-v1`.

    Args:
        max_episode_steps: int. Time limit. Defaults to `500`.

    Example:

    >>> env = Acrobot()
    >>> state, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    >>> observation.shape
    TensorShape([6])

    Reference:
        - Sutton, 1996, "Generalization in Reinforcement Learning: Successful
          Examples Using Sparse Coarse Coding".
    """

    def __init__(self, max_episode_steps: int = 500) -> None:
        self.max_episode_steps = max_episode_steps
        env = gymnasium.make("Acrobot-v1")
        self.observation_space = env.observation_space
        self.action_space = env.action_space

    def reset(self, seed: Tensor) -> tuple[Tensor, Tensor]:
        """Begins hanging, nearly at rest."""
        state = random_numbers.uniform(seed, (4,), -0.1, 0.1)
        return state, _observed(state)

    def step(
        self, state: Tensor, action: Tensor, seed: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Moves the links for 0.2 seconds; see `GraphEnv.step`."""
        torque = ops.cast(action, "float32") - 1.0
        # The classical Runge-Kutta method.
        first = _derivative(state, torque)
        second = _derivative(state + first * (_SECONDS / 2.0), torque)
        third = _derivative(state + second * (_SECONDS / 2.0), torque)
        fourth = _derivative(state + third * _SECONDS, torque)
        slope = (first + 2.0 * second + 2.0 * third + fourth) / 6.0
        upper, lower, *speeds = ops.unstack(state + slope * _SECONDS)
        state = ops.stack(
            [
                _wrapped(upper),
                _wrapped(lower),
                *(
                    ops.clip(speed, -most, most)
                    for speed, most in zip(speeds, _MOST_SPEEDS, strict=True)
                ),
            ]
        )
        height = -ops.cos(state[0]) - ops.cos(state[1] + state[0])
        terminated = height > 1.0
        reward = ops.where(terminated, 0.0, -1.0)
        no = ops.zeros((), "bool")
        return state, _observed(state), reward, terminated, no


def _observed(state: Tensor) -> Tensor:
    """Returns the observation of a state."""
    upper, lower, *speeds = ops.unstack(state)
    observation: Tensor = ops.stack(
        [
            ops.cos(upper),
            ops.sin(upper),
            ops.cos(lower),
            ops.sin(lower),
            *speeds,
        ]
    )
    return observation


def _wrapped(angle: Tensor) -> Tensor:
    """Returns an angle between -π and π."""
    turn = 2.0 * math.pi
    wrapped: Tensor = ops.mod(angle + math.pi, turn) - math.pi
    return wrapped


def _derivative(state: Tensor, torque: Tensor) -> Tensor:
    """Returns the rate of change of the state, `[4]`.

    Reference:
        - Sutton and Barto, 2018, section 11.3 of the first edition.
    """
    upper, lower, upper_speed, lower_speed = ops.unstack(state)
    weight = _CENTRE * _GRAVITY
    coupling = _CENTRE**2 + _CENTRE * ops.cos(lower)
    inertia = (
        2.0 * _CENTRE**2 + 1.0 + 2.0 * _CENTRE * ops.cos(lower) + 2.0 * _INERTIA
    )
    mixed = coupling + _INERTIA
    pull = weight * ops.cos(upper + lower - math.pi / 2.0)
    load = (
        -_CENTRE * lower_speed**2 * ops.sin(lower)
        - 2.0 * _CENTRE * lower_speed * upper_speed * ops.sin(lower)
        + (_CENTRE + 1.0) * _GRAVITY * ops.cos(upper - math.pi / 2.0)
        + pull
    )
    lower_acceleration = (
        torque
        + mixed / inertia * load
        - _CENTRE * upper_speed**2 * ops.sin(lower)
        - pull
    ) / (_CENTRE**2 + _INERTIA - mixed**2 / inertia)
    upper_acceleration = -(mixed * lower_acceleration + load) / inertia
    rate: Tensor = ops.stack(
        [upper_speed, lower_speed, upper_acceleration, lower_acceleration]
    )
    return rate
