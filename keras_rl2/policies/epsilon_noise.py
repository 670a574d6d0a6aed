"""Epsilon-greedy exploration, as noise."""

import dataclasses
from typing import Any

import numpy as np

from keras_rl2.exploration.policy_noise import Drawn
from keras_rl2.exploration.policy_noise import PolicyNoise
from keras_rl2.exploration.policy_noise import Shape

# Added to the value of an action that is taken regardless of the values.
_FORCED = 1e30


@dataclasses.dataclass(frozen=True)
class EpsilonNoise(PolicyNoise):
    """Epsilon-greedy exploration, implemented as additive noise on Q-values.

    With noise, acting is a single graph: the largest of value + noise. The
    noise is zeros, except for a number beyond all values at each action to be
    taken at random.

    Args:
        size: int. Number of actions.
        epsilon: float. Probability of a random action.
        ranked: bool. Whether all actions get such numbers, in a random order,
            since some may be forbidden. Defaults to `False`.

    Example:

    >>> noise, _ = EpsilonNoise(3, 1.0).draw(np.random.default_rng(0), (4,))
    >>> noise.shape, (noise > 0).sum(axis=-1).tolist()
    ((4, 3), [1, 1, 1, 1])
    """

    size: int
    epsilon: float
    ranked: bool = False

    @property
    def parts(self) -> list[dict[str, Any]]:
        """Description of the noise, with its present ε."""
        return [{"kind": "epsilon_greedy", **vars(self)}]

    def draw(
        self, generator: np.random.Generator, shape: Shape, state: Any = None
    ) -> Drawn:
        """Draws which actions are random; the state is that of the call."""
        shape, actions = tuple(shape), self.size
        explores = generator.random(shape) < self.epsilon
        if self.ranked:
            rank = 1.0 - generator.random((*shape, actions))
            forced = explores[..., None] * rank * _FORCED
            return forced.astype(np.float32), state
        action = generator.integers(actions, size=shape)
        forced = (np.arange(actions) == action[..., None]) & explores[..., None]
        return np.where(forced, np.float32(_FORCED), np.float32(0.0)), state
