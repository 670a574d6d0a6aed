"""Gymnasium's classic control within a graph."""

import math
from typing import Any

import gymnasium
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph import random_numbers
from keras_rl2.envs.graph.graph_env import GraphEnv
from keras_rl2.envs.graph.graph_env import Outcome


class _ClassicControl(GraphEnv):
    """An environment with the spaces of one of Gymnasium's.

    Args:
        max_episode_steps: int or None. Time limit; None for Gymnasium's.
            Defaults to `None`.
    """

    _env_id: str

    def __init__(self, max_episode_steps: int | None = None) -> None:
        # Bounds of speeds differ between versions of Gymnasium.
        env = gymnasium.make(self._env_id)
        self.max_episode_steps = max_episode_steps
        if max_episode_steps is None and env.spec is not None:
            self.max_episode_steps = env.spec.max_episode_steps
        self.observation_space = env.observation_space
        self.action_space = env.action_space


class CartPole(_ClassicControl):
    """A pole on a cart, which is pushed to the left or to the right.

    It equals Gymnasium's `CartPole-v1`.

    Example:

    >>> env = CartPole()
    >>> state, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    >>> observation.shape
    TensorShape([4])

    Reference:
        - Barto, Sutton and Anderson, 1983, "Neuronlike adaptive elements that
          can solve difficult learning control problems."
    """

    _env_id = "CartPole-v1"

    def reset(self, seed: Tensor) -> tuple[Tensor, Tensor]:
        """Begins near the upright position at rest."""
        state = random_numbers.uniform(seed, (4,), -0.05, 0.05)
        return state, state

    def step(self, state: Tensor, action: Tensor, seed: Tensor) -> Outcome:
        """Moves cart and pole for 0.02 seconds; see `GraphEnv.step`."""
        seconds, gravity, half_length = 0.02, 9.8, 0.5
        total_mass, pole_mass = 1.1, 0.1
        x, x_speed, angle, angle_speed = ops.unstack(state)
        force = ops.where(action == 1, 10.0, -10.0)
        sine, cosine = ops.sin(angle), ops.cos(angle)
        pole = pole_mass * half_length
        push = (force + pole * angle_speed**2 * sine) / total_mass
        inertia = half_length * (4.0 / 3.0 - pole_mass * cosine**2 / total_mass)
        angle_acceleration = (gravity * sine - cosine * push) / inertia
        acceleration = push - pole * angle_acceleration * cosine / total_mass
        x = x + seconds * x_speed
        x_speed = x_speed + seconds * acceleration
        angle = angle + seconds * angle_speed
        angle_speed = angle_speed + seconds * angle_acceleration
        state = ops.stack([x, x_speed, angle, angle_speed])
        is_steep = ops.abs(angle) > 12 * 2 * math.pi / 360
        return state, state, ops.ones(()), (ops.abs(x) > 2.4) | is_steep, False


class Pendulum(_ClassicControl):
    """A pendulum that is swung up by a torque, and kept upright.

    It equals Gymnasium's `Pendulum-v1`.

    Example:

    >>> env = Pendulum()
    >>> state, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    >>> observation.shape
    TensorShape([3])
    """

    _env_id = "Pendulum-v1"

    def reset(self, seed: Tensor) -> tuple[Tensor, Tensor]:
        """Begins at a random angle and speed."""
        drawn = random_numbers.uniform(seed, (2,), -1.0, 1.0)
        state = drawn * ops.convert_to_tensor([math.pi, 1.0])
        return state, self._observed(state)

    def step(self, state: Tensor, action: Tensor, seed: Tensor) -> Outcome:
        """Turns the pendulum for 0.05 seconds; see `GraphEnv.step`."""
        seconds, gravity = 0.05, 10.0
        angle, speed = ops.unstack(state)
        torque = ops.clip(action[0], -2.0, 2.0)
        cost = angle**2 + 0.1 * speed**2 + 0.001 * torque**2
        # Mass and length are 1.
        acceleration = 1.5 * gravity * ops.sin(angle) + 3.0 * torque
        speed = ops.clip(speed + acceleration * seconds, -8.0, 8.0)
        # Within a turn, float32 is the most exact.
        state = ops.stack([_wrapped(angle + speed * seconds), speed])
        return state, self._observed(state), -cost, False, False

    def _observed(self, state: Tensor) -> Any:
        """Returns the observation of a state."""
        angle, speed = ops.unstack(state)
        return ops.stack([ops.cos(angle), ops.sin(angle), speed])


class Acrobot(_ClassicControl):
    """Two links, of which the joint between them is to lift the lower one.

    It equals Gymnasium's `Acrobot-v1`.

    Example:

    >>> env = Acrobot()
    >>> state, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    >>> observation.shape
    TensorShape([6])

    Reference:
        - Sutton, 1996, "Generalization in Reinforcement Learning: Successful
          Examples Using Sparse Coarse Coding."
    """

    _env_id = "Acrobot-v1"

    def reset(self, seed: Tensor) -> tuple[Tensor, Tensor]:
        """Begins hanging, nearly at rest."""
        state = random_numbers.uniform(seed, (4,), -0.1, 0.1)
        return state, self._observed(state)

    def step(self, state: Tensor, action: Tensor, seed: Tensor) -> Outcome:
        """Moves the links for 0.2 seconds; see `GraphEnv.step`."""
        seconds = 0.2
        torque = ops.cast(action, "float32") - 1.0
        # The classical Runge-Kutta method.
        first = _acrobot_rate(state, torque)
        second = _acrobot_rate(state + first * (seconds / 2.0), torque)
        third = _acrobot_rate(state + second * (seconds / 2.0), torque)
        fourth = _acrobot_rate(state + third * seconds, torque)
        slope = (first + 2.0 * second + 2.0 * third + fourth) / 6.0
        upper, lower, upper_speed, lower_speed = ops.unstack(
            state + slope * seconds
        )
        upper, lower = _wrapped(upper), _wrapped(lower)
        upper_speed = ops.clip(upper_speed, -4.0 * math.pi, 4.0 * math.pi)
        lower_speed = ops.clip(lower_speed, -9.0 * math.pi, 9.0 * math.pi)
        state = ops.stack([upper, lower, upper_speed, lower_speed])
        terminated = -ops.cos(upper) - ops.cos(lower + upper) > 1.0
        reward = ops.where(terminated, 0.0, -1.0)
        return state, self._observed(state), reward, terminated, False

    def _observed(self, state: Tensor) -> Any:
        """Returns the observation of a state."""
        upper, lower, *speeds = ops.unstack(state)
        angles = [ops.cos(upper), ops.sin(upper), ops.cos(lower)]
        return ops.stack([*angles, ops.sin(lower), *speeds])


class MountainCar(_ClassicControl):
    """A car too weak for the hill, which must gain speed on the other side.

    It equals Gymnasium's `MountainCar-v0`.

    Example:

    >>> env = MountainCar()
    >>> state, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    >>> float(observation[1])
    0.0

    Reference:
        - Moore, 1990, "Efficient Memory-based Learning for Robot Control."
    """

    _env_id = "MountainCar-v0"

    def reset(self, seed: Tensor) -> tuple[Tensor, Tensor]:
        """Begins at rest in the valley."""
        position = random_numbers.uniform(seed, (), -0.6, -0.4)
        state = ops.stack([position, ops.zeros((), "float32")])
        return state, state

    def step(self, state: Tensor, action: Tensor, seed: Tensor) -> Outcome:
        """Drives the car; see `GraphEnv.step`."""
        state = _driven(state, (ops.cast(action, "float32") - 1.0) * 0.001)
        terminated = (state[0] >= 0.5) & (state[1] >= 0.0)
        return state, state, -ops.ones((), "float32"), terminated, False


class ContinuousMountainCar(MountainCar):
    """The car of `MountainCar`, with any force, which costs.

    It equals Gymnasium's `MountainCarContinuous-v0`.

    Example:

    >>> env = ContinuousMountainCar()
    >>> state, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    >>> observation.shape
    TensorShape([2])
    """

    _env_id = "MountainCarContinuous-v0"

    def step(self, state: Tensor, action: Tensor, seed: Tensor) -> Outcome:
        """Drives the car; see `GraphEnv.step`."""
        state = _driven(state, ops.clip(action[0], -1.0, 1.0) * 0.0015)
        terminated = (state[0] >= 0.45) & (state[1] >= 0.0)
        # The cost is that of the action as it was given.
        reward = ops.where(terminated, 100.0, 0.0) - 0.1 * action[0] ** 2
        return state, state, reward, terminated, False


def _wrapped(angle: Tensor) -> Any:
    """Returns an angle between -π and π."""
    return ops.mod(angle + math.pi, 2.0 * math.pi) - math.pi


def _acrobot_rate(state: Tensor, torque: Tensor) -> Any:
    """Returns the rate of change of Acrobot's state, `[4]`.

    Reference:
        - Sutton and Barto, 2018, section 11.3 of the first edition.
    """
    # Masses and lengths of both links are 1.
    centre, moment, gravity = 0.5, 1.0, 9.8
    upper, lower, upper_speed, lower_speed = ops.unstack(state)
    inertia = 2.0 * centre**2 + 1.0 + 2.0 * centre * ops.cos(lower)
    inertia = inertia + 2.0 * moment
    mixed = centre**2 + centre * ops.cos(lower) + moment
    pull = centre * gravity * ops.cos(upper + lower - math.pi / 2.0)
    load = (
        -centre * lower_speed**2 * ops.sin(lower)
        - 2.0 * centre * lower_speed * upper_speed * ops.sin(lower)
        + (centre + 1.0) * gravity * ops.cos(upper - math.pi / 2.0)
        + pull
    )
    lower_acceleration = (
        torque
        + mixed / inertia * load
        - centre * upper_speed**2 * ops.sin(lower)
        - pull
    ) / (centre**2 + moment - mixed**2 / inertia)
    upper_acceleration = -(mixed * lower_acceleration + load) / inertia
    return ops.stack(
        [upper_speed, lower_speed, upper_acceleration, lower_acceleration]
    )


def _driven(state: Tensor, push: Tensor) -> Any:
    """Returns a car's position and speed after one step, `[2]`."""
    position, speed = ops.unstack(state)
    speed = speed + push - 0.0025 * ops.cos(3.0 * position)
    speed = ops.clip(speed, -0.07, 0.07)
    position = ops.clip(position + speed, -1.2, 0.6)
    # The wall on the left stops it.
    speed = ops.where((position <= -1.2) & (speed < 0.0), 0.0, speed)
    return ops.stack([position, speed])
