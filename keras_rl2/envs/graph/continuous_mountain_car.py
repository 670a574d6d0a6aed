"""MountainCar with a continuous action, within a graph."""

import gymnasium
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph.graph_env import GraphEnv
from keras_rl2.envs.graph.mountain_car import at_rest
from keras_rl2.envs.graph.mountain_car import driven

_GOAL = 0.45
_POWER, _GRAVITY = 0.0015, 0.0025


class ContinuousMountainCar(GraphEnv):
    """The car of `MountainCar`, with any force, which costs.

    It equals Gymnasium's `MountainCarContinuous-v0`.

    Args:
        max_episode_steps: int. Time limit. Defaults to `999`.

    Example:

    >>> env = ContinuousMountainCar()
    >>> state, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    >>> observation.shape
    TensorShape([2])
    """

    def __init__(self, max_episode_steps: int = 999) -> None:
        self.max_episode_steps = max_episode_steps
        env = gymnasium.make("MountainCarContinuous-v0")
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
        force = ops.clip(action[0], -1.0, 1.0)
        state = driven(state, force * _POWER, _GRAVITY)
        terminated = (state[0] >= _GOAL) & (state[1] >= 0.0)
        # The cost is that of the action as it was given.
        reward = ops.where(terminated, 100.0, 0.0) - 0.1 * action[0] ** 2
        return state, state, reward, terminated, ops.zeros((), "bool")
