"""Gaussian bandits: the smallest problem that a policy gradient can fail on.

`keras_rl2.envs` registers `keras_rl2/GaussianBandit-v0`. Letters: A is
the number of arms, B the number of environments.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space

from keras_rl2.basics.arguments import check_flag
from keras_rl2.basics.arguments import check_positive

# Pulls that a vector draws at once for each environment: a call of a
# generator costs as much as a hundred numbers.
_PULLS_AHEAD = 256


@dataclasses.dataclass(frozen=True)
class _Arms:
    """The rules of the game, for one environment or many."""

    means: np.ndarray
    deviations: np.ndarray
    contextual: bool
    pays: bool

    @property
    def observation_space(self) -> spaces.Box:
        """The space of payoffs, or of ones."""
        if self.contextual:
            return spaces.Box(-np.inf, np.inf, self.means.shape, np.float32)
        return spaces.Box(0.0, 1.0, self.means.shape, np.float32)

    @property
    def action_space(self) -> spaces.Discrete:
        """The space of arms."""
        return spaces.Discrete(self.means.size)

    def payoffs(self, noise: np.ndarray) -> np.ndarray:
        """Turns standard noise `[..., A]` into payoffs `[..., A]`."""
        return np.asarray(self.means + self.deviations * noise, np.float32)

    def observation(self, payoffs: np.ndarray) -> np.ndarray:
        """Returns the observation `[..., A]` of payoffs before the choice."""
        return payoffs.copy() if self.contextual else np.ones_like(payoffs)

    @property
    def is_best(self) -> np.ndarray:
        """Reward `[A]` of each arm under `reward="best_arm"`."""
        return np.asarray(self.means == self.means.max(), np.float32)


class GaussianBanditEnv(gymnasium.Env[np.ndarray, np.int64]):
    """A bandit with normally distributed payoffs of its arms.

    An episode is one pull: `reset` draws the payoff of each arm, and `step`
    takes the choice. By default, these payoffs are the observation, and the
    reward is 1 for the arm of the highest mean, whatever its payoff, and 0 for
    any other. So the best rate is 1, chance is 1 / A, and the observation does
    not matter: an actor-critic that fails here has a fault.

    Registered as `keras_rl2/GaussianBandit-v0` once `keras_rl2.envs` has been
    imported. `gymnasium.make_vec` makes a `GaussianBanditVectorEnv` of it.

    Args:
        means: `[A]` floats. Mean payoff of each arm, in units of the payoff.
            Defaults to `(10.0, 0.0)`.
        deviations: `[A]` floats. Standard deviation of each payoff. Defaults
            to `(15.0, 1.0)`.
        contextual: bool. Whether the observation is this pull's payoffs
            `[A]`; otherwise it is always ones `[A]`. Defaults to `True`.
        reward: str. `"best_arm"`: 1 for an arm of the highest mean, else 0.
            `"payoff"`: the payoff of the chosen arm. The best policy chooses
            the highest payoff if it observes them, else the highest mean.
            Defaults to `"best_arm"`.

    Raises:
        ValueError: If there are fewer than two arms, a number is not finite, a
            deviation is negative or the reward has another name.

    Example:

    >>> import keras_rl2.envs
    >>> env = gymnasium.make("keras_rl2/GaussianBandit-v0")
    >>> observation, _ = env.reset(seed=0)
    >>> [round(float(payoff), 1) for payoff in observation]
    [11.9, -0.1]
    >>> _, reward, terminated, _, _ = env.step(0)
    >>> reward, terminated
    (1.0, True)
    """

    metadata = {"render_modes": []}

    def __init__(
        self,
        means: Sequence[float] = (10.0, 0.0),
        deviations: Sequence[float] = (15.0, 1.0),
        *,
        contextual: bool = True,
        reward: str = "best_arm",
    ) -> None:
        self._arms = _arms(means, deviations, contextual, reward)
        self.observation_space = self._arms.observation_space
        self.action_space = self._arms.action_space
        self._payoffs: np.ndarray | None = None

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Draws the payoffs of the next pull.

        Args:
            seed: int or None. Begins a new stream of payoffs. Defaults to
                `None`: the stream continues.
            options: Ignored. Defaults to `None`.

        Returns:
            Observation `[A]` float32, and an empty dict.
        """
        super().reset(seed=seed)
        noise = self.np_random.standard_normal(self._arms.means.shape)
        self._payoffs = self._arms.payoffs(noise)
        return self._arms.observation(self._payoffs), {}

    def step(
        self, action: np.int64
    ) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Pulls an arm, which ends the episode.

        Args:
            action: int. The arm, from 0.

        Returns:
            The same observation again, the reward, True, False, and an empty
            dict.

        Raises:
            ValueError: If there is no such arm.
            gymnasium.error.ResetNeeded: If the pull has been made already.
        """
        if not self.action_space.contains(action):
            raise ValueError(
                f"Expected an arm of {self.action_space}. Received: {action!r}"
            )
        payoffs = self._payoffs
        if payoffs is None:
            raise gymnasium.error.ResetNeeded(
                "Expected `reset` before each pull, which is an episode"
            )
        self._payoffs = None
        rewards = payoffs if self._arms.pays else self._arms.is_best
        observation = self._arms.observation(payoffs)
        return observation, float(rewards[action]), True, False, {}


class GaussianBanditVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Many Gaussian bandits in one, stepped by array operations.

    Environment i, seeded with `reset(seed=s)`, draws the very payoffs that a
    `GaussianBanditEnv` draws which was seeded with `s + i`, in their order:
    the same as `gymnasium.vector.SyncVectorEnv`, many times as fast. Episodes
    start again in the step that ends them (`AutoresetMode.SAME_STEP`).

    Args:
        num_envs: int. B. Defaults to `1`.
        means: `[A]` floats, as for `GaussianBanditEnv`. Defaults to
            `(10.0, 0.0)`.
        deviations: `[A]` floats. Defaults to `(15.0, 1.0)`.
        contextual: bool. Defaults to `True`.
        reward: str. Defaults to `"best_arm"`.

    Raises:
        ValueError: As for `GaussianBanditEnv`.

    Example:

    >>> env = GaussianBanditVectorEnv(num_envs=3)
    >>> observation, _ = env.reset(seed=0)
    >>> observation.shape
    (3, 2)
    >>> env.step(np.array([0, 1, 0]))[1].tolist()
    [1.0, 0.0, 1.0]
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(
        self,
        num_envs: int = 1,
        means: Sequence[float] = (10.0, 0.0),
        deviations: Sequence[float] = (15.0, 1.0),
        *,
        contextual: bool = True,
        reward: str = "best_arm",
    ) -> None:
        check_positive(num_envs=num_envs)
        self._arms = _arms(means, deviations, contextual, reward)
        self.num_envs = num_envs
        self.single_observation_space = self._arms.observation_space
        self.single_action_space = self._arms.action_space
        self.observation_space = batch_space(
            self.single_observation_space, num_envs
        )
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._is_best = self._arms.is_best
        self._rows = np.arange(num_envs)
        self._generators: list[np.random.Generator] = []
        self._pulls = np.empty((0, num_envs, self._is_best.size), np.float32)
        self._next_pull = 0
        self._payoffs: np.ndarray | None = None

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Draws the payoffs of the next pull of every environment.

        Args:
            seed: int, `[B]` ints or None. Of environment i it is `seed + i`.
                Defaults to `None`: the streams continue.
            options: Ignored. Defaults to `None`.

        Returns:
            Observation `[B, A]` float32, and an empty dict.
        """
        if seed is not None or not self._generators:
            self._generators = [
                seeding.np_random(one)[0] for one in self._seeds(seed)
            ]
            self._next_pull = len(self._pulls)
        return self._draw(), {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Pulls an arm in every environment, and resets them all.

        Args:
            actions: `[B]` ints. The arms, from 0.

        Returns:
            Observation of the next pull `[B, A]` float32, reward `[B]`
            float32, all True `[B]`, all False `[B]`, and a dict in which
            `final_obs` `[B, A]` is the observation of the pull just made.

        Raises:
            ValueError: If there is no such arm.
            gymnasium.error.ResetNeeded: If there was no `reset` at all.
        """
        payoffs = self._payoffs
        if payoffs is None:
            raise gymnasium.error.ResetNeeded(
                "Expected `reset` before the first pull"
            )
        actions = np.asarray(actions)
        # A negative index would count from the end.
        if ((actions < 0) | (actions >= self._is_best.size)).any():
            raise ValueError(
                f"Expected arms of {self.single_action_space}. "
                f"Received: {actions!r}"
            )
        if self._arms.pays:
            reward = payoffs[self._rows, actions]
        else:
            reward = self._is_best[actions]
        ended = np.ones(self.num_envs, np.bool_)
        info = {
            "final_obs": self._arms.observation(payoffs),
            "_final_obs": ended.copy(),
        }
        return self._draw(), reward, ended, ~ended, info

    def _draw(self) -> np.ndarray:
        """Draws the next pull, and returns its observation."""
        if self._next_pull == len(self._pulls):
            shape = (_PULLS_AHEAD, self._is_best.size)
            noise = [rng.standard_normal(shape) for rng in self._generators]
            self._pulls = self._arms.payoffs(np.stack(noise, axis=1))
            self._next_pull = 0
        self._payoffs = self._pulls[self._next_pull]
        self._next_pull += 1
        return self._arms.observation(self._payoffs)

    def _seeds(
        self, seed: int | Sequence[int | None] | None
    ) -> Sequence[int | None]:
        """Returns a seed for each environment."""
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, (int, np.integer)):
            return [int(seed) + i for i in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ValueError(
                f"Expected {self.num_envs} seeds. Received: {len(seed)} of them"
            )
        return seed


def _arms(
    means: Sequence[float],
    deviations: Sequence[float],
    contextual: bool,
    reward: str,
) -> _Arms:
    """Checks the arguments of a bandit."""
    check_flag(contextual=contextual)
    try:
        each = [np.asarray(array, np.float64) for array in (means, deviations)]
    except (TypeError, ValueError):
        each = [np.empty(0), np.empty(0)]
    if (
        each[0].ndim != 1
        or each[0].size < 2
        or each[0].shape != each[1].shape
        or not np.isfinite(each).all()
        or (each[1] < 0).any()
    ):
        raise ValueError(
            "Expected a finite mean and a deviation of at least 0 for each of "
            "two or more arms. "
            f"Received: means={means}, deviations={deviations}"
        )
    if reward not in ("best_arm", "payoff"):
        raise ValueError(
            "Expected `reward` to be 'best_arm' or 'payoff'. "
            f"Received: reward={reward!r}"
        )
    return _Arms(each[0], each[1], bool(contextual), reward == "payoff")
