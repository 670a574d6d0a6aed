"""Scaling of rewards by the running variance of returns."""

from typing import Any

import numpy as np

from keras_rl2.basics import arguments
from keras_rl2.basics.moments import MAX_DEVIATIONS
from keras_rl2.basics.moments import Moments
from keras_rl2.basics.outliers import Outliers

PRIOR = 1e-4
"""Weight of the prior of the returns, in examples, with a variance of 1."""


class RewardScaler:
    """Divides rewards by the standard deviation of the discounted return.

        G_t = γ G_{t-1} + r_t        (G = 0 before the first step of an episode)
        r'_t = clip(r_t / sqrt(Var[G] + ε), -c, c)

    where the variance is that of all G so far, including this step's.
    Only the scale changes: subtracting a mean would change the optimal policy.

    The sum starts again with each episode. It is set to zero *after* the update
    of the step that ended the episode, whether that was terminated or
    truncated, so that it never crosses from one episode to the next.

    An outlier does not spoil the scale: after 1000 returns, a return beyond
    `max_deviations` standard deviations (of fewer than `max_deviations` squared
    returns: beyond the square root of their number) is included as if it were
    at that distance, and the sum continues without its reward. As long as all
    returns were equal, their scale is unknown, and each return is included.

    Args:
        gamma: float in [0, 1]. The discount γ.
        num_envs: int. Number of environments B.
        clip: float. Largest absolute scaled reward c. Defaults to `10.0`.
        epsilon: float. Added to the variance. Defaults to `1e-8`.
        max_deviations: float or None. Distance of a return from the mean, in
            standard deviations, beyond which it moves the scale no further.
            None for no such limit. Defaults to `100.0`.

    Attributes:
        outliers: `keras_rl2.basics.outliers.Outliers`. Rewards that did not
            move the scale.

    Raises:
        ValueError: If an argument is out of its range.

    Example:

    >>> scaler = RewardScaler(gamma=0.9, num_envs=2)
    >>> scaler(np.array([1.0, 0.0]), np.array([False, False])).round(2)
    array([2., 0.])

    Reference:
        - [Engstrom et al., 2020](https://arxiv.org/abs/2005.12729), section 3
    """

    def __init__(
        self,
        gamma: float,
        num_envs: int,
        clip: float = 10.0,
        epsilon: float = 1e-8,
        max_deviations: float | None = MAX_DEVIATIONS,
    ) -> None:
        arguments.check_in_range(gamma=(gamma, 0.0, 1.0))
        arguments.check_positive(num_envs=num_envs)
        arguments.check_above_zero(
            clip=clip,
            epsilon=epsilon,
            **arguments.present(max_deviations=max_deviations),
        )
        self.gamma = float(gamma)
        self.num_envs = int(num_envs)
        self.clip = float(clip)
        self.epsilon = float(epsilon)
        self.max_deviations = max_deviations
        self.outliers = Outliers()
        self.moments = Moments(0.0, 1.0, PRIOR)
        self.returns = np.zeros(num_envs)

    def __call__(
        self,
        reward: np.ndarray,
        ended: np.ndarray,
        valid: np.ndarray | None = None,
    ) -> np.ndarray:
        """Scales the rewards of one step.

        Args:
            reward: `[B]`. Rewards.
            ended: `[B]` bool. Whether the episode was terminated or truncated.
            valid: `[B]` bool. False for a mere reset, which changes nothing.
                Defaults to `None`: all are valid.

        Returns:
            Scaled rewards `[B]`, of the dtype of `reward` if that is floating,
            else float32.
        """
        valid = np.ones(self.num_envs, np.bool_) if valid is None else valid
        step = (np.asarray(each)[None] for each in (reward, ended, valid))
        return self.scale_rollout(*step)[0]

    def scale_rollout(
        self,
        rewards: np.ndarray,
        ended: np.ndarray,
        valid: np.ndarray | None = None,
    ) -> np.ndarray:
        """Scales the rewards of T steps, just as T calls would.

        Args:
            rewards: `[T, B]`. Rewards.
            ended: `[T, B]` bool. Whether the episode was terminated or
                truncated in that step.
            valid: `[T, B]` bool. False for a mere reset, which changes
                nothing. Defaults to `None`: all are valid.

        Returns:
            Scaled rewards `[T, B]`, of the dtype of `rewards` if that is
            floating, else float32.

        Raises:
            ValueError: If a shape is wrong, or a valid reward or the square
                of a return is not finite; such a rollout changes no state.
        """
        rewards = np.asarray(rewards)
        ended = np.asarray(ended, np.bool_)
        if valid is None:
            valid = np.ones(rewards.shape, np.bool_)
        valid = np.asarray(valid, np.bool_)
        self._check(rewards, ended, valid)
        before = self.returns, self.moments
        with np.errstate(over="ignore", invalid="ignore"):
            returns = self._accumulate(rewards, valid & ended, valid)
            mean, variance, count = self._merge(returns, valid)
        if not np.isfinite([mean[-1], variance[-1]]).all():
            self.returns, self.moments = before
            sizes = np.where(valid, np.abs(rewards), 0.0)
            step, env = np.unravel_index(np.argmax(sizes), sizes.shape)
            raise ValueError(
                "Expected rewards with a finite variance of returns. Received: "
                f"{sizes[step, env]:.6g}, without its sign, from environment "
                f"{env} at step {step} of the rollout"
            )
        # Of all examples before each step, [T, 1].
        past = Moments(mean[:-1, None], variance[:-1, None], count[:-1, None])
        bounded = past.bounded(returns, self.max_deviations, np, PRIOR)
        if (valid & (bounded != returns)).any():
            self.returns, self.moments = before
            variance = self._merge_bounded(rewards, valid & ended, valid)
        scaled = rewards / np.sqrt(variance[1:] + self.epsilon)[:, None]
        dtype = rewards.dtype if rewards.dtype.kind == "f" else np.float32
        return np.clip(scaled, -self.clip, self.clip).astype(dtype)

    def as_array(self) -> np.ndarray:
        """Returns the state of the scale for a rollout in the graph.

        Returns:
            `[4 + B]` float64: mean, variance and count of the returns, the
            number of outliers, and the return of each environment.
        """
        return np.array([*self.moments, self.outliers.count, *self.returns])

    def take_array(self, state: np.ndarray) -> None:
        """Takes the state of the scale after a rollout in the graph.

        Args:
            state: `[4 + B]`. See `as_array`.

        Raises:
            ValueError: If it is not finite; the state stays as it was.
        """
        if not np.isfinite(state).all():
            raise ValueError(
                "Expected rewards with a finite variance of returns. Received: "
                "larger ones from a rollout in the graph"
            )
        self.moments = Moments(*state[:3].tolist())
        more = int(state[3]) - self.outliers.count
        if more:
            self.outliers.add(more, "a reward of a rollout in the graph")
        self.returns = state[4:].copy()

    def begin(self, envs: np.ndarray) -> None:
        """Sets the return of environments that begin new episodes to zero.

        Args:
            envs: `[B]` bool. The environments.
        """
        self.returns = np.where(envs, 0.0, self.returns)

    def _check(
        self, rewards: np.ndarray, ended: np.ndarray, valid: np.ndarray
    ) -> None:
        """Raises an error for input that would spoil the moments for good."""
        expected = (*rewards.shape[:1], self.num_envs)
        if not rewards.shape == ended.shape == valid.shape == expected:
            raise ValueError(
                f"Expected arrays [T, B] of {self.num_envs} environments. "
                f"Received: {rewards.shape}, {ended.shape} and {valid.shape}"
            )
        if not np.isfinite(rewards, where=valid, out=~valid).all():
            raise ValueError(
                f"Expected finite rewards. Received: rewards={rewards}"
            )

    def _accumulate(
        self, rewards: np.ndarray, over: np.ndarray, valid: np.ndarray
    ) -> np.ndarray:
        """Returns G after each step `[T, B]`, and keeps the last of them."""
        gains = np.where(valid, rewards, 0.0)
        kept = np.where(valid, self.gamma, 1.0)
        goes_on = np.where(over, 0.0, 1.0)
        kept[1:] *= goes_on[:-1]
        returns = np.empty(rewards.shape)
        current = self.returns
        for t in range(len(rewards)):
            current = np.multiply(current, kept[t], out=returns[t])
            current += gains[t]
        if len(rewards):
            self.returns = current * goes_on[-1]
        return returns

    def _merge(self, returns: np.ndarray, valid: np.ndarray) -> np.ndarray:
        """Merges returns `[T, B]` with the moments, step by step.

        Returns:
            `[3, T + 1]`. Mean, variance and count at first, and after each
            step.
        """
        count = valid.sum(axis=1)
        divisor = np.maximum(count, 1)
        mean = np.where(valid, returns, 0.0).sum(axis=1) / divisor
        deviation = np.where(valid, returns - mean[:, None], 0.0)
        variance = (deviation * deviation).sum(axis=1) / divisor
        # Python's floats: the same numbers as NumPy's, but much faster.
        batches = zip(
            mean.tolist(), variance.tolist(), count.tolist(), strict=True
        )
        merged = [self.moments]
        for batch in batches:
            merged.append(merged[-1].merged(*batch) if batch[2] else merged[-1])
        self.moments = merged[-1]
        return np.array(merged).T

    def _merge_bounded(
        self, rewards: np.ndarray, over: np.ndarray, valid: np.ndarray
    ) -> np.ndarray:
        """Merges with outliers bounded; returns the variances, `[T + 1]`."""
        variance = [self.moments.variance]
        for t in range(len(rewards)):
            row = slice(t, t + 1)
            earlier = self.returns
            returns = self._accumulate(rewards[row], over[row], valid[row])
            bounded = self.moments.bounded(
                returns, self.max_deviations, np, PRIOR
            )
            moved = valid[t] & (bounded[0] != returns[0])
            if moved.any():
                # Otherwise it would recur in each later return.
                without = np.where(over[t], 0.0, earlier * self.gamma)
                self.returns = np.where(moved, without, self.returns)
                env = int(moved.argmax())
                self.outliers.add(
                    int(np.count_nonzero(moved)),
                    f"reward={rewards[t, env]:.6g} from environment {env} at "
                    f"step {t} of its rollout",
                )
            self._merge(bounded, valid[row])
            variance.append(self.moments.variance)
        return np.array(variance)

    def get_state(self) -> dict[str, Any]:
        """Returns the state of the scale, as plain arrays.

        Returns:
            A dictionary with `returns` `[B]`, `moments`, and the number of
            `outliers`.
        """
        return {
            "returns": self.returns.copy(),
            "moments": self.moments._asdict(),
            "outliers": self.outliers.count,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores a state.

        Args:
            state: dict, as returned by `get_state`.

        Raises:
            ValueError: If it belongs to another number of environments.
        """
        returns = np.array(state["returns"], np.float64)
        if returns.shape != (self.num_envs,):
            raise ValueError(
                f"Expected the state of {self.num_envs} environments. "
                f"Received: returns of shape {returns.shape}"
            )
        self.moments = Moments(**state["moments"])
        self.returns = returns
        self.outliers.count = int(state["outliers"])
