"""The transitions of the recent past, to draw from at random."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from keras_rl2.basics import seeds
from keras_rl2.basics.arguments import check_seed
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.files.ring_log import StateLog
from keras_rl2.replay.minibatches import transition_spec
from keras_rl2.replay.transition_ring import TransitionRing
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import is_leaf
from keras_rl2.spaces.trees import map_leaves

_TRIES = 16


class ReplayBuffer:
    """The last transitions of B environments, drawn uniformly.

    A ring of rows, one for each step of all environments. Observations are
    stored once, as they come (uint8 stays uint8): the next observation of a
    transition is the observation of a later row. Only where an environment
    has reset itself within the step is that the wrong one; the true last
    observation of the episode is kept apart then.

    What is drawn are n-step transitions: the observation and action of step
    t, the rewards of the k steps from there, and the observation after them:

        R_t = Σ_{i<k} γ^i r_{t+i},  discount = γ^k (1 - terminated_{t+k-1})

    k is n, or less where the episode ends before: a truncation shortens the
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
        seed: int. Of the draws. Defaults to `None`: never the same.

    Attributes:
        capacity: int. Transitions that are held when the buffer is full; the
            last n - 1 of each environment are waiting for their window.

    Raises:
        ValueError: If an argument is out of bounds, or the capacity is too
            small for one transition of each environment.
        MemoryError: If the machine has not got the memory, before any of it
            is allocated. It is taken only as the buffer fills up, and the
            last observations of episodes come on top.

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

    #: What a subclass keeps of each transition beside the ring.
    _bytes_beside = 0
    #: Where a subclass wants to read which transitions came or went.
    _changes: list[np.ndarray] | None = None

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
        check_seed(seed)
        self._ring = TransitionRing(
            capacity,
            num_envs,
            observation,
            (tuple(action_shape), action_dtype),
            n_step,
            gamma,
            bytes_beside=self._bytes_beside,
            changes=self._changes,
        )
        self.capacity = self._ring.capacity
        self.num_envs = self._ring.num_envs
        self.n_step = self._ring.n_step
        self.gamma = self._ring.gamma
        self._observation = observation
        self._action = ArraySpec(
            tuple(action_shape), np.dtype(action_dtype).name
        )
        self._is_array = is_leaf(observation)
        self._generator = seeds.generator(seed)

    def __len__(self) -> int:
        """Returns the number of transitions that can be drawn."""
        return len(self._ring)

    @property
    def steps(self) -> int:
        """Environment steps stored so far, those overwritten included."""
        return self._ring.steps

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, when the buffer is full."""
        return self._ring.nbytes

    @property
    def spec(self) -> dict[str, Tree[ArraySpec]]:
        """Shapes and dtypes of one transition, as agents are given it."""
        return transition_spec(self._observation, self._action)

    def add(
        self,
        observation: Any,
        action: npt.ArrayLike,
        reward: npt.ArrayLike,
        terminated: npt.ArrayLike,
        truncated: npt.ArrayLike,
        valid: npt.ArrayLike,
        next_observation: Any,
        final_observation: Any = None,
    ) -> None:
        """Stores one step of all environments.

        `extend` is the cheaper way to store many of them. Arguments are as
        `keras_rl2.envs.VectorEnvAdapter.step` takes and gives them.

        Args:
            observation: `[B, ...]`. What was acted on. A copy, if the
                environment reuses its memory.
            action: `[B, ...]`.
            reward: `[B]`.
            terminated: `[B]` bool.
            truncated: `[B]` bool.
            valid: `[B]` bool. False where the step is only the reset of a
                NEXT_STEP environment, `~env.pending_reset` before the step.
            next_observation: `[B, ...]`. What is to be acted on next.
            final_observation: `[B, ...]`. The true last observation where an
                episode ended and the environment has been reset within the
                step; other rows do not matter. Defaults to `None`: there is
                none, and `next_observation` is true everywhere.

        Raises:
            ValueError: If a shape or a dtype does not fit.
        """
        ended = np.logical_or(terminated, truncated)
        (index,) = np.nonzero(ended & (final_observation is not None))

        def rows(array: npt.ArrayLike) -> np.ndarray:
            return np.asarray(array)[index]

        # Where no tree is stored, a tuple is what an array is made of.
        each = _apply if self._is_array else map_leaves
        # No rows of whatever it is, where there are none.
        final = each(rows, final_observation if index.size else observation)
        self.extend(
            Trajectory(
                # [B, ...] -> [T, B, ...], of T = 1.
                observation=each(
                    lambda *both: np.array(both), observation, next_observation
                ),
                action=np.asarray(action)[None],
                reward=np.asarray(reward)[None],
                terminated=np.asarray(terminated)[None],
                truncated=np.asarray(truncated)[None],
                valid=np.asarray(valid)[None],
                final_observation=final,
                final_index=index,
            )
        )

    def extend(self, trajectory: Trajectory) -> None:
        """Stores T steps of all environments.

        Where the first observation is not the one that the last step led to,
        that episode was broken off, and counts as truncated there; see `cut`.

        Args:
            trajectory: `Trajectory`.

        Raises:
            ValueError: If a shape or a dtype does not fit.
        """
        self._ring.extend(trajectory)

    def discard_episodes(self, envs: np.ndarray) -> None:
        """Takes the episodes under way out of what is drawn.

        Args:
            envs: `[B]` bool. The environments whose steps since their last
                reset are discarded.
        """
        self._ring.discard_episodes(envs)

    def cut(self, envs: np.ndarray | None = None) -> None:
        """Says that the next step does not follow on the last one.

        To be called if the environments are reset, or used by somebody else,
        between two steps that are stored. The episodes under way count as
        truncated.

        Args:
            envs: `[B]` bool. Which environments; None for all. Defaults to
                `None`.
        """
        self._ring.cut(envs)

    def sample(self, batch_size: int) -> dict[str, Any]:
        """Draws transitions uniformly, with replacement.

        Args:
            batch_size: int. How many, M.

        Returns:
            dict of `observation` `[M, ...]`, `action` `[M, ...]`, `reward`
            `[M]` float32, the sum of the window, `discount` `[M]` float32,
            what the bootstrap is to be multiplied with, `next_observation`
            `[M, ...]`, the one to bootstrap from, and `index` `[M]` int64,
            the number t * B + b of the transition since the first one.

        Raises:
            ValueError: If there is nothing to draw yet.
        """
        self._check_batch_size(batch_size)
        ring = self._ring
        oldest, newest = ring.oldest, ring.steps
        index = self._generator.integers(oldest, newest, batch_size)
        place = index % ring.places
        (missed,) = np.nonzero(~ring.drawable(place))
        for _ in range(_TRIES):
            if not missed.size:
                break
            again = self._generator.integers(oldest, newest, missed.size)
            index[missed] = again
            place[missed] = again % ring.places
            missed = missed[~ring.drawable(place[missed])]
        if missed.size:
            # So few can be drawn that it is quicker to look for them.
            found = self._generator.choice(ring.drawable_places(), missed.size)
            index[missed], place[missed] = ring.index_of(found), found
        return ring.gather(place) | {"index": index}

    def record(self) -> dict[str, Any]:
        """Returns the steps that are held, one environment after the other.

        Returns:
            dict of `observations`, `actions` (the policy's own) and
            `next_observations` `[N, ...]`, `rewards`, `terminations` and
            `truncations` `[N]`, each environment's in the order of time.

        Raises:
            ValueError: If there are none, or rewards of several steps have
                been added up.
        """
        if self.n_step != 1 or not len(self):
            raise ValueError(
                "Expected a replay buffer of n_step=1 with transitions in it: "
                "rewards that were added up cannot be told apart. Received: "
                f"n_step={self.n_step}, {len(self)} transitions"
            )
        ring = self._ring
        place = np.sort(ring.index_of(ring.drawable_places())) % ring.places
        # Of each environment by itself, still in the order of time.
        place = place[np.argsort(place % self.num_envs, kind="stable")]
        drawn = ring.gather(place)
        terminated, ended = ring.ends(place)
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

    def _check_batch_size(self, batch_size: int) -> None:
        """Refuses to draw nothing, or from nothing."""
        if batch_size < 1 or not len(self):
            raise ValueError(
                f"Expected to draw one transition at least, from one at least. "
                f"Received: batch_size={batch_size} and a replay buffer with "
                f"{len(self)} transitions, of windows of "
                f"n_step={self.n_step}"
            )

    def get_state(self, log: StateLog | None = None) -> dict[str, Any]:
        """Returns everything as plain arrays and numbers, copied.

        Args:
            log: `StateLog` or None. Where to add steps that are new, which
                are not returned then. Defaults to `None`.

        Returns:
            dict. The rows that are filled, what was kept apart, the state of
            the draws, and the settings that the rest depends on.
        """
        return {
            **self._ring.get_state(log),
            "generator": self._generator.bit_generator.state,
        }

    def set_state(
        self, state: dict[str, Any], log: StateLog | None = None
    ) -> None:
        """Takes back what `get_state` gave.

        Args:
            state: dict, as returned by `get_state`.
            log: `StateLog` or None. As of `get_state`. Defaults to `None`.

        Raises:
            ValueError: If it belongs to a buffer of other settings or shapes.
        """
        self._ring.set_state(state, log)
        self._generator.bit_generator.state = state["generator"]


def _apply(function: Callable[..., np.ndarray], *arrays: Any) -> np.ndarray:
    """Applies a function to arrays, as `map_leaves` does to trees."""
    return function(*arrays)
