"""A replay buffer that samples uniformly."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from keras_rl2.basics import seeds
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.inherited_arguments import Described
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.data.ring import Ring
from keras_rl2.saving.checkpoint_folder import SegmentLog
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves

#: A function of a minibatch, with `index` in it, and of the buffer that it was
#: drawn from, `ReplayBuffer` or what has its `generator`, `gamma`, `n_step`,
#: `num_envs`, `episode_of` and `reached`. It returns the changed minibatch.
Transform: TypeAlias = Callable[[dict[str, Any], Any], dict[str, Any]]

_TRIES = 16


def transformed(
    batch: dict[str, Any], transforms: Iterable[Transform], view: Any
) -> dict[str, Any]:
    """Returns a minibatch after all transforms, which keep its form.

    Another shape would be broadcast by a loss without a word.
    """
    for transform in transforms:
        before, batch = _form_of(batch), transform(batch, view)
        if _form_of(batch) != before:
            raise ValueError(
                f"Expected a transform to return a minibatch of the form "
                f"{before}. Received: {_form_of(batch)}"
            )
    return batch


def _form_of(batch: Any) -> Any:
    """Returns the dtype and shape of each array of a minibatch."""
    names = ("dtype", "shape")
    return map_leaves(
        lambda each: [getattr(each, name, None) for name in names], batch
    )


class ReplayBuffer(Described):
    """The last transitions of B environments, drawn uniformly.

    A ring of rows, one for each step of all environments. Observations are
    stored once, in their own dtype (uint8 stays uint8): the next observation of
    a transition is the observation of a later row. If an environment has reset
    itself within the step, that row holds the wrong observation, and the true
    last observation of the episode is stored separately.

    The transitions are n-step transitions: the observation and action of step
    t, the rewards of the next k steps, and the observation after them:

        R_t = Σ_{i<k} γ^i r_{t+i},  discount = γ^k (1 - terminated_{t+k-1})

    k is n, or less if the episode ends earlier: a truncation shortens the
    window and keeps the bootstrap. A transition can be drawn as soon as its
    window is complete, until its row is overwritten.

    Args:
        capacity: int. Transitions to hold, of all environments together,
            rounded down to a multiple of their number.
        num_envs: int. Environments, B.
        observation: `ArraySpec`, or a tree of them. Shape and dtype of one
            observation.
        action_shape: tuple. Shape of one action.
        action_dtype: Its dtype.
        n_step: int. Rewards of a transition, n. Defaults to `1`.
        gamma: float. Discount factor, from 0 to 1. Defaults to `0.99`.
        seed: int. Seeds the draws. Defaults to `None`: not reproducible.

    Attributes:
        capacity: int. Transitions of a full buffer; the last n - 1 of each
            environment cannot be drawn until their windows are complete.

    Raises:
        ValueError: If an argument is out of bounds, or the capacity is too
            small for one transition of each environment.
        MemoryError: On Linux, if the memory is not available, before any of it
            is allocated. The memory is used only as the buffer fills up, and
            the last observations of episodes need more.

    Example:

    >>> number = ArraySpec((), "float32")
    >>> buffer = ReplayBuffer(
    ...     100, 1, number, (), np.int32, n_step=2, gamma=0.5)
    >>> for t in range(3):
    ...     buffer.add(
    ...         observation=[t], action=[7], reward=[1.0], terminated=[False],
    ...         truncated=[t == 2], valid=[True], next_observation=[t + 1],
    ...         final_observation=[t + 1])
    >>> len(buffer)
    3
    >>> batch = buffer.sample(32)
    >>> sorted(batch)
    ['action', 'discount', 'index', 'next_observation', 'observation', 'reward']
    >>> float(batch["reward"].max()), float(batch["discount"].min())
    (1.5, 0.25)
    """

    #: Bytes per transition that a subclass needs in addition to the ring.
    _bytes_beside = 0
    #: Names of the settings that a saved state must match.
    _settings: tuple[str, ...] = ("capacity", "num_envs", "n_step", "gamma")

    def __init__(
        self,
        capacity: int,
        num_envs: int,
        observation: Tree[ArraySpec],
        action_shape: tuple[int, ...],
        action_dtype: npt.DTypeLike,
        *,
        n_step: int = 1,
        gamma: float = 0.99,
        seed: int | None = None,
    ) -> None:
        check_positive(capacity=capacity, num_envs=num_envs, n_step=n_step)
        check_in_range(gamma=(gamma, 0.0, 1.0))
        if capacity < num_envs * n_step:
            raise ValueError(
                f"Expected a capacity of at least num_envs * n_step = "
                f"{num_envs * n_step}, for one transition of each environment. "
                f"Received: capacity={capacity}"
            )
        self._observation = observation
        self._action = ArraySpec(
            tuple(action_shape), np.dtype(action_dtype).name
        )
        self._ring = Ring(
            capacity,
            num_envs,
            observation,
            {
                "action": self._action,
                # Steps of the window, k, or 0 while it cannot be drawn.
                "span": ArraySpec((), np.min_scalar_type(int(n_step)).name),
            },
            self._bytes_beside,
            # Rewards of the last steps are still added up, and the last one
            # may be found to have been cut.
            unsettled=int(n_step),
        )
        self.capacity = self._ring.capacity
        self.num_envs = self._ring.num_envs
        self.n_step = int(n_step)
        self.gamma = float(gamma)
        self._discounts = self.gamma ** np.arange(n_step + 1.0)
        self._drawable = 0
        self._generator = seeds.generator(seed)

    def __len__(self) -> int:
        """Returns the number of transitions that can be drawn."""
        return self._drawable

    @property
    def generator(self) -> np.random.Generator:
        """Random generator of the draws."""
        return self._generator

    @property
    def steps(self) -> int:
        """Environment steps stored so far, including overwritten ones."""
        return self._ring.time * self.num_envs

    @property
    def nbytes(self) -> int:
        """Bytes of the stored steps, when the buffer is full."""
        return self._ring.nbytes

    @property
    def spec(self) -> dict[str, Tree[ArraySpec]]:
        """Shapes and dtypes of one transition, as passed to agents."""
        return transition_spec(self._observation, self._action)

    def add(
        self,
        observation: Tree[npt.ArrayLike],
        action: npt.ArrayLike,
        reward: npt.ArrayLike,
        terminated: npt.ArrayLike,
        truncated: npt.ArrayLike,
        valid: npt.ArrayLike,
        next_observation: Tree[npt.ArrayLike],
        final_observation: Tree[npt.ArrayLike] | None = None,
    ) -> None:
        """Stores one step of all environments.

        `extend` is the cheaper way to store many of them. See
        `keras_rl2.envs.VectorEnvAdapter.step` for the arguments.

        Args:
            observation: `[B, ...]`. Observation before the step. A copy, if
                the environment reuses its memory.
            action: `[B, ...]`.
            reward: `[B]`.
            terminated: `[B]` bool.
            truncated: `[B]` bool.
            valid: `[B]` bool. False if the step is only the reset of a
                NEXT_STEP environment, `~env.pending_reset` before the step.
            next_observation: `[B, ...]`. Observation to act on next.
            final_observation: `[B, ...]`. The true last observation if an
                episode ended and the environment was reset within the step;
                other rows are ignored. Defaults to `None`: `next_observation`
                is correct everywhere.

        Raises:
            ValueError: If a shape or a dtype does not fit.
        """
        (index,) = np.nonzero(np.logical_or(terminated, truncated))
        if final_observation is None:
            final_observation, index = next_observation, index[:0]
        self.extend(
            Trajectory(
                # [B, ...] -> [T, B, ...], of T = 1.
                observation=map_leaves(
                    lambda *both: np.array(both), observation, next_observation
                ),
                action=np.asarray(action)[None],
                reward=np.asarray(reward)[None],
                terminated=np.asarray(terminated)[None],
                truncated=np.asarray(truncated)[None],
                valid=np.asarray(valid)[None],
                final_observation=map_leaves(
                    lambda array: np.asarray(array)[index], final_observation
                ),
                final_index=index,
            )
        )

    def extend(self, trajectory: Trajectory) -> None:
        """Stores T steps of all environments.

        Call `cut` before it where episodes were interrupted since the last
        step.

        Args:
            trajectory: `Trajectory`.

        Raises:
            ValueError: If a shape or a dtype does not fit.
        """
        ring = self._ring
        steps, final, final_index = ring.checked(trajectory)
        start, horizon = 0, len(steps["reward"])
        while start < horizon:
            # A part ends with the last row of the ring at the latest.
            stop = min(horizon, start + ring.rows - ring.row)
            # One more row is lost to the observation after the last step.
            rows = ring.time + np.arange(min(stop - start + 1, ring.rows))
            rows %= ring.rows
            row, env = np.nonzero(ring.arrays["span"][rows])
            # Their transitions can be drawn no longer.
            place = rows[row] * self.num_envs + env
            ring.flat("span")[place] = 0
            self._drawable -= place.size
            self._changed(place)
            ring.write(steps, final, final_index, start, stop)
            self._complete(stop - start)
            start = stop

    def cut(self, envs: np.ndarray | None = None) -> None:
        """Marks that the next step does not follow the last one.

        Call it if the environments are reset, or stepped by other code, between
        two stored steps. The unfinished episodes count as truncated.

        Args:
            envs: `[B]` bool. The environments concerned; None for all. Defaults
                to `None`.
        """
        ring = self._ring
        if not ring.time:
            return
        row = (ring.time - 1) % ring.rows
        (env,) = np.nonzero(
            (True if envs is None else envs)
            & ring.arrays["valid"][row]
            & (ring.arrays["slot"][row] < 0)
        )
        newest = ring.row * self.num_envs + env
        ring.keep_final(
            row * self.num_envs + env,
            {key: ring.read(key, newest) for key in ring.observation},
        )
        ring.arrays["ended"][row, env] = True
        self._complete(0)

    def _complete(self, steps: int) -> None:
        """Makes transitions drawable after the last `steps` steps."""
        ring, arrays = self._ring, self._ring.arrays
        first = ring.time - min(steps + self.n_step - 1, ring.rows - 1)
        rows = np.arange(max(first, 0), ring.time) % ring.rows
        complete, total, length = complete_windows(
            arrays["reward"][rows],
            arrays["ended"][rows],
            arrays["valid"][rows] & (arrays["span"][rows] == 0),
            self.n_step,
            self.gamma,
        )
        step, env = np.nonzero(complete)
        if not step.size:
            return
        # [K] rows and environments -> [K] places
        place = rows[step] * self.num_envs + env
        # No open window reaches back to these rewards.
        ring.flat("reward")[place] = total[complete]
        ring.flat("span")[place] = length[complete]
        self._drawable += place.size
        self._changed(place)

    def _changed(self, place: np.ndarray) -> None:
        """Called with the places of added or removed transitions, `[K]`."""

    def sample(self, batch_size: int) -> dict[str, Any]:
        """Draws transitions uniformly, with replacement.

        Args:
            batch_size: int. Number of transitions, M.

        Returns:
            dict of `observation` `[M, ...]`, `action` `[M, ...]`, `reward`
            `[M]` float32, the sum of the window, `discount` `[M]` float32,
            the factor of the bootstrap, `next_observation` `[M, ...]`, the
            observation to bootstrap from, and `index` `[M]` int64, the number t
            * B + b of the transition since the first one.
        """
        self._check_batch_size(batch_size)
        index = self._draw_index(batch_size)
        return self._gather(index % self._ring.places) | {"index": index}

    def sample_ahead(
        self, batch_size: int, steps: Sequence[int]
    ) -> tuple[dict[str, Any], np.ndarray]:
        """Draws as `sample` would after further steps, not yet known.

        Only with `n_step=1`, and if each of these steps is a transition.

        Args:
            batch_size: int. Number of transitions of each draw, M.
            steps: Sequence of int. Further environment steps before each of K
                draws, at most as many as the buffer holds.

        Returns:
            dict of `[K * M, ...]`; see `sample`, without `index`. And `[K * M]`
            int64: where a transition is one of the further steps, its number
            among them, t * B + b; -1 elsewhere.
        """
        ahead = np.repeat(steps, batch_size)
        index = self._draw_index(ahead.size, ahead)
        further = np.maximum(index - self.steps, -1)
        # Any other transition stands for those to come.
        place = np.where(further < 0, index, self._ring.oldest)
        return self._gather(place % self._ring.places), further

    def _draw_index(self, batch_size: int, ahead: Any = 0) -> np.ndarray:
        """Draws numbers of transitions after further steps, int or `[M]`."""
        index = self._draw_numbers(batch_size, ahead)
        (missed,) = np.nonzero(self._is_missing(index))
        for _ in range(_TRIES):
            if not missed.size:
                break
            again = self._draw_numbers(
                missed.size, ahead[missed] if np.ndim(ahead) else ahead
            )
            index[missed] = again
            missed = missed[self._is_missing(again)]
        if missed.size:
            # So few can be drawn that a search is quicker.
            found = self._generator.choice(
                np.flatnonzero(self._ring.arrays["span"]), missed.size
            )
            index[missed] = self._ring.index_of(found)
        return index

    def _draw_numbers(self, count: int, ahead: Any) -> np.ndarray:
        """Draws numbers of steps, whether or not they can be drawn."""
        newest = self.steps + ahead
        oldest = np.maximum(0, newest - self.capacity)
        return self._generator.integers(oldest, newest, count)

    def _is_missing(self, index: np.ndarray) -> np.ndarray:
        """Returns which numbers are of past steps that cannot be drawn."""
        drawable = self._is_drawable(index % self._ring.places)
        return ~drawable & (index < self.steps)

    def _check_batch_size(self, batch_size: int) -> None:
        """Checks that at least one transition can be drawn."""
        if batch_size < 1 or not len(self):
            raise ValueError(
                f"Expected to draw at least one transition, from at least one. "
                f"Received: batch_size={batch_size} and a replay buffer with "
                f"{len(self)} transitions, of windows of "
                f"n_step={self.n_step}"
            )

    def _is_drawable(self, place: np.ndarray) -> np.ndarray:
        """Returns whether transitions can be drawn, `[M]` places -> bool."""
        return self._ring.arrays["span"].take(place) > 0

    def _gather(self, place: np.ndarray) -> dict[str, Any]:
        """Returns copies of transitions by places `[M]`, without `index`."""
        outcome, length, _, slot = self._outcome(place)
        following = place + length * self.num_envs
        return {
            "observation": self._ring.observations(place),
            **outcome,
            "next_observation": self._ring.observations(following, slot),
        }

    def _outcome(
        self, place: np.ndarray
    ) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
        """Returns the observations after steps, by places of any shape."""
        ring, arrays = self._ring, self._ring.arrays
        # `take` indexes places in the ring if no axis is passed: [rows, B] ->
        # [M].
        length = arrays["span"].take(place, mode="wrap").astype(np.int64)
        last = place + (length - 1) * self.num_envs
        terminated = arrays["terminated"].take(last, mode="wrap")
        discount = self._discounts.take(length)
        discount[terminated] = 0.0
        outcome = {
            "action": ring.flat("action").take(place, 0, mode="wrap"),
            "reward": arrays["reward"].take(place, mode="wrap"),
            "discount": discount.astype(np.float32),
        }
        slot = arrays["slot"].take(last, mode="wrap")
        return outcome, length, terminated, slot

    def episode_of(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the episodes of steps, as far as they are stored.

        Args:
            index: `[M]` ints. Numbers of stored steps.

        Returns:
            `[M]` int64 each: the number of the first stored step of the
            episode, and of the last one. If the episode is in progress, the
            last one is the newest.
        """
        ring, envs = self._ring, self.num_envs
        oldest = ring.oldest // envs
        # A reset in place of a step belongs to neither episode.
        apart = ring.arrays["ended"] | ~ring.arrays["valid"]
        # [rows, B] -> [B, T], in the order of time
        last = np.roll(apart, -oldest, axis=0)[: ring.time - oldest].T
        last[:, -1] = True
        bounds = np.append(-1, np.flatnonzero(last))
        step, env = np.divmod(index, envs)
        before = env * last.shape[1] - oldest
        end = np.searchsorted(bounds, before + step)
        first_step, last_step = bounds[end - 1] + 1, bounds[end]
        return (
            (first_step - before) * envs + env,
            (last_step - before) * envs + env,
        )

    def reached(self, index: np.ndarray) -> Any:
        """Returns the observations that steps led to.

        Args:
            index: `[M]` ints. Numbers of stored steps.

        Returns:
            tree of `[M, ...]`, copied. For the last step of an episode, this
            is its last observation.
        """
        place = index % self._ring.places
        slot = self._ring.arrays["slot"].take(place)
        return self._ring.observations(place + self.num_envs, slot)

    def largest_return(self) -> float:
        """Returns a bound of discounted returns; see `largest_return`."""
        ring = self._ring
        rows = np.arange(ring.oldest // ring.num_envs, ring.time) % ring.rows
        keys = ("reward", "span", "ended", "terminated")
        steps = (ring.arrays[key][rows] for key in keys)
        return largest_return(self.gamma, *steps)

    def record(self) -> dict[str, Any]:
        """Returns the stored steps, one environment after the other.

        Returns:
            dict of `observations`, `actions` (of the policy) and
            `next_observations` `[N, ...]`, `rewards`, `terminations` and
            `truncations` `[N]`, in the order of time for each environment.

        Raises:
            ValueError: If there are no steps, or rewards of several steps have
                been added up.
        """
        if self.n_step != 1 or not len(self):
            raise ValueError(
                "Expected a replay buffer of n_step=1 with transitions in it: "
                "summed rewards cannot be separated. Received: "
                f"n_step={self.n_step}, {len(self)} transitions"
            )
        ring, arrays = self._ring, self._ring.arrays
        place = ring.index_of(np.flatnonzero(arrays["span"]))
        place = np.sort(place) % ring.places
        # Environments follow one another, each in the order of time.
        place = place[np.argsort(place % self.num_envs, kind="stable")]
        drawn = self._gather(place)
        terminated = arrays["terminated"].take(place)
        ended = arrays["ended"].take(place)
        env = place % self.num_envs
        ended[np.append(env[1:] != env[:-1], True)] = True
        return {
            "observations": drawn["observation"],
            "actions": drawn["action"],
            "rewards": drawn["reward"],
            "terminations": terminated,
            "truncations": ended & ~terminated,
            "next_observations": drawn["next_observation"],
        }

    def get_state(self, log: SegmentLog | None = None) -> dict[str, Any]:
        """Returns everything as plain arrays and numbers, copied.

        Args:
            log: `SegmentLog` or None. Receives the new steps, which are then
                not returned. Defaults to `None`.
        """
        return {
            **self._ring.get_state(log),
            **{name: getattr(self, name) for name in self._settings},
            "generator": self._generator.bit_generator.state,
        }

    def set_state(
        self, state: dict[str, Any], log: SegmentLog | None = None
    ) -> None:
        """Restores the state returned by `get_state`.

        Raises:
            ValueError: If it belongs to a buffer of other settings or shapes.
        """
        for name in self._settings:
            if state.get(name) != getattr(self, name):
                raise ValueError(
                    "Expected the state of a replay buffer of "
                    f"{name}={getattr(self, name)}. "
                    f"Received: {name}={state.get(name)}"
                )
        self._ring.set_state(state, log)
        self._drawable = int(np.count_nonzero(self._ring.arrays["span"]))
        self._generator.bit_generator.state = state["generator"]


def largest_return(
    gamma: float,
    reward: np.ndarray,
    span: np.ndarray,
    ended: np.ndarray,
    terminated: np.ndarray,
) -> float:
    """Returns a bound of the absolute discounted returns of recorded steps.

    With the largest absolute reward r, the longest episode H and the share p of
    episodes that were not terminated, after which values are bootstrapped,

        |V| <= r (1 + γ + ... + γ^(H-1)) + p γ^H |V|

    Args:
        gamma: float. Discount factor, from 0 to 1.
        reward: `[T, B]`. Sums of the rewards of windows, discounted by `gamma`.
        span: `[T, B]` ints. Steps of each window; 0 counts as 1.
        ended: `[T, B]` bool. Whether an episode ended with the step.
        terminated: `[T, B]` bool. Whether it was terminated.

    Returns:
        float, infinity where there is no bound.
    """
    last = np.array(ended)
    last[-1:] = True
    # [T, B] -> [B * T]
    (end,) = np.nonzero(last.T.reshape(-1))
    longest = int(np.diff(end, prepend=-1).max(initial=1))
    sums = np.cumsum(gamma ** np.arange(max(longest, span.max(initial=1))))
    each = np.abs(reward) / sums[np.maximum(span, 1) - 1]
    continued = 1.0 - terminated.sum() / max(end.size, 1)
    rest = 1.0 - continued * gamma**longest
    whole = float(each.max(initial=0.0)) * sums[longest - 1]
    return whole / rest if rest > 0.0 else np.inf


def complete_windows(
    reward: np.ndarray,
    ended: np.ndarray,
    waiting: np.ndarray,
    n_step: int,
    gamma: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Finds the complete windows, and adds up their rewards.

    The window of step t reaches to the end of its episode, but spans n steps at
    most:

        R_t = Σ_{i<k} γ^i r_{t+i}

    It is complete if its last step is among the T steps.

    Args:
        reward: `[T, B]` floats.
        ended: `[T, B]` bool. Last steps of episodes, terminated or truncated.
        waiting: `[T, B]` bool. Steps with open windows.
        n_step: int. n.
        gamma: float. γ.

    Returns:
        `[T, B]` bool, the open windows that are now complete; their rewards R,
        `[T, B]` float64; and their lengths k, `[T, B]` int64.

    Example:

    >>> complete, total, length = complete_windows(
    ...     np.array([[1.0], [2.0], [4.0]]),
    ...     np.array([[False], [True], [False]]),
    ...     np.array([[True], [True], [True]]), 3, 0.5)
    >>> complete[:, 0].tolist(), total[:2, 0].tolist(), length[:2, 0].tolist()
    ([True, True, False], [2.0, 2.0], [2, 1])
    """
    complete = np.zeros(reward.shape, np.bool_)
    total = np.zeros(reward.shape, np.float64)
    length = np.zeros(reward.shape, np.int64)
    goes_on = waiting
    for i in range(min(n_step, len(reward))):
        count = len(reward) - i
        goes_on = goes_on[:count]
        total[:count] += gamma**i * np.where(goes_on, reward[i:], 0.0)
        length[:count] += goes_on
        complete[:count] |= goes_on & (ended[i:] | (i == n_step - 1))
        goes_on = goes_on & ~ended[i:]
    return complete, total, length


def transition_spec(
    observation: Tree[ArraySpec], action: ArraySpec
) -> dict[str, Tree[ArraySpec]]:
    """Returns shapes and dtypes of one transition, as passed to agents."""
    numbers = ("reward", "discount", "weight")
    return {
        "observation": observation,
        "action": action,
        "next_observation": observation,
        **dict.fromkeys(numbers, ArraySpec((), "float32")),
    }


def into_minibatches(
    drawn: dict[str, Tree[np.ndarray]], updates: int
) -> dict[str, Tree[np.ndarray]]:
    """Splits a large sample into minibatches of equal size.

    Args:
        drawn: dict of `[M, ...]`, trees of arrays. Independent draws.
        updates: int. Number of minibatches, a divisor of M.

    Returns:
        dict of `[updates, M / updates, ...]`, views where NumPy can.
    """
    return map_leaves(
        lambda each: each.reshape(
            (updates, len(each) // updates, *each.shape[1:])
        ),
        drawn,
    )
