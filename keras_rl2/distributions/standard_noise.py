"""Standard noise of the distributions."""

import dataclasses
from typing import Any

import numpy as np

from keras_rl2.distributions.bernoulli import logistic
from keras_rl2.distributions.categorical import gumbel
from keras_rl2.distributions.gaussian import normal
from keras_rl2.exploration.policy_noise import Drawn
from keras_rl2.exploration.policy_noise import PolicyNoise
from keras_rl2.exploration.policy_noise import Shape

_DRAWS = {"gumbel": gumbel, "logistic": logistic, "normal": normal}


@dataclasses.dataclass(frozen=True)
class StandardNoise(PolicyNoise):
    """Noise of a standard distribution, by which actions are sampled.

    Args:
        kind: str. `"gumbel"`, `"logistic"` or `"normal"`.
        size: int. Random numbers of one action.
        hold: int or None. Steps of a rollout for which the same numbers are
            used; None for all of them. Defaults to `1`.

    Example:

    >>> noise = StandardNoise("gumbel", 3)
    >>> noise.draw(np.random.default_rng(0), (16, 2))[0].shape
    (16, 2, 3)
    """

    kind: str
    size: int
    hold: int | None = 1

    @property
    def parts(self) -> list[dict[str, Any]]:
        """Description of the noise, and for how many steps it is held."""
        hold = {} if self.hold == 1 else {"hold": self.hold}
        return [{"kind": self.kind, "size": self.size, **hold}]

    def draw(
        self, generator: np.random.Generator, shape: Shape, state: Any = None
    ) -> Drawn:
        """Draws finite numbers; the state is that of the call."""
        draw, (*steps, num_envs) = _DRAWS[self.kind], shape
        if not steps or self.hold == 1:
            return draw(generator, (*shape, self.size)), state
        hold = self.hold or steps[0]
        drawn = draw(generator, (-(-steps[0] // hold), num_envs, self.size))
        return np.repeat(drawn, hold, axis=0)[: steps[0]], state
