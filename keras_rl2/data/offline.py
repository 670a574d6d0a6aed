"""Fixed datasets for off-policy agents."""

from typing import Any

import gymnasium
import numpy as np
import tensorflow as tf

from keras_rl2 import spaces
from keras_rl2.data.agent_protocols import CollectingAgent
from keras_rl2.data.agent_protocols import learns_offline
from keras_rl2.data.block_pool import BlockPool
from keras_rl2.data.collecting_dataset import check_positive
from keras_rl2.data.episode_rows import EpisodeRows
from keras_rl2.data.episode_rows import check_actions
from keras_rl2.data.episode_rows import check_rows
from keras_rl2.data.offline_sources import open_source
from keras_rl2.data.offline_summary import summary
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.data.transition_block import TransitionBlock
from keras_rl2.data.transition_block import TransitionForm
from keras_rl2.stopwatch import in_section
from keras_rl2.trees import leaves
from keras_rl2.trees import map_leaves

# A round is drawn at once, and lies in memory twice.
_MOST_UPDATES = 100
_ROUND_BYTES = 2**25
# What is held of a step beside its own numbers: windows, actions of the policy.
_BYTES_BESIDE = 40


class OfflineDataset(RoundDataset):
    """Recorded episodes, drawn at random as minibatches for `fit`.

    There is no environment: `agent.fit(offline, epochs=...)` takes no steps,
    and an epoch is a number of updates. The agents are those that learn from
    replay, and are given the same minibatches.

    What fits into `memory_limit` is held in memory. Of anything larger, runs
    of steps are read in a random order, and minibatches are drawn from those
    that are held at present. Observations are stored as float32 where they
    were recorded as float64.

    Args:
        source: What was recorded. One of
            - a dict of arrays, one step after the other: `observations`
              `[N, ...]` (or a dict or tuple of such), `actions` `[N, ...]` as
              the environment took them, `rewards`, `terminations` and
              `truncations` `[N]`, and perhaps `next_observations`. Without
              those the last step of a truncated episode is left out, since
              nobody knows what followed. `terminals` and `timeouts` are
              understood, too;
            - the path of an `.npz` file of these, or of a folder of `.npy`
              files, with dots where there is a tree (`observations.camera`);
            - the folder of a Minari dataset, or a `minari.MinariDataset`;
            - a `keras_rl2.ReplayDataset`, for what it holds.
        batch_size: int. Transitions of one minibatch. Defaults to `256`.
        n_step: int. Rewards that a transition adds up before it bootstraps.
            Defaults to `1`.
        seed: int or None. Seeds the draws. Defaults to `0`.
        updates_per_epoch: int. Updates of one Keras epoch. Defaults to
            `1000`.
        best: float or None. Share of the episodes to learn from, over 0 and
            at most 1, those of the highest return; None for all of them.
            Defaults to `None`.
        min_return: float or None. Return that an episode needs to be learned
            from. Defaults to `None`.
        observation_space: `gymnasium.Space` or None. What was observed; None
            for what the source says, or else the agent. Defaults to `None`.
        action_space: `gymnasium.Space` or None. What could be done, alike.
            Defaults to `None`.
        memory_limit: int. Bytes of data that are held in memory. Defaults to
            `536870912`, half a GiB.

    Attributes:
        observation_space: `gymnasium.Space`. None until somebody has said.
        action_space: `gymnasium.Space`. Alike.
        episodes: int. Episodes that are learned from.
        transitions: int. Transitions that they have.
        episode_returns: `[E]` float64. Their returns.
        streams: bool. Whether data is read while it is drawn.

    Raises:
        ValueError: If a number is out of bounds, or the source cannot be used:
            arrays that are missing or of different lengths, actions outside of
            their space, NaN, a damaged file, a file that refers to others or
            holds objects. Nothing is loaded then.

    Example:

    >>> import keras_rl2 as rl
    >>> offline = OfflineDataset({
    ...     "observations": np.zeros((8, 4), "float32"),
    ...     "actions": np.array([0, 1] * 4), "rewards": np.ones(8),
    ...     "terminations": np.arange(8) % 4 == 3,
    ...     "truncations": np.zeros(8, bool)}, batch_size=32)
    >>> offline
    <OfflineDataset: 2 episodes, 8 transitions, return 4.0 (4.0 to 4.0)>
    >>> agent = rl.DQN.for_env("CartPole-v1", seed=0)
    >>> offline.bind(agent)
    >>> sorted(offline.sample(5))
    ['action', 'discount', 'next_observation', 'observation', 'reward',
     'weight']
    """

    def __init__(
        self,
        source: Any,
        batch_size: int = 256,
        n_step: int = 1,
        seed: int | None = 0,
        *,
        updates_per_epoch: int = 1000,
        best: float | None = None,
        min_return: float | None = None,
        observation_space: gymnasium.Space[Any] | None = None,
        action_space: gymnasium.Space[Any] | None = None,
        memory_limit: int = 2**29,
    ) -> None:
        check_positive(
            batch_size=batch_size,
            n_step=n_step,
            updates_per_epoch=updates_per_epoch,
            memory_limit=memory_limit,
        )
        super().__init__(rounds_per_epoch=1)
        self.batch_size = int(batch_size)
        self.n_step = int(n_step)
        self.seed = seed
        self.updates_per_epoch = int(updates_per_epoch)
        self.best = best
        self.min_return = min_return
        self.memory_limit = int(memory_limit)
        self.steps_per_round = 0
        self.updates_per_round = _divisor(self.updates_per_epoch, _MOST_UPDATES)
        self.rounds_per_epoch = self.updates_per_epoch // self.updates_per_round
        self._source = open_source(source)
        self.observation_space = observation_space
        self.action_space = action_space
        self._settle_spaces()
        self._chosen = _choose(self._source.returns, best, min_return)
        self.episode_returns = self._source.returns[self._chosen]
        self._lengths = self._source.lengths[self._chosen]
        self.episodes = len(self._chosen)
        self.transitions = int(self._lengths.sum())
        self._generator, self._pool_seed = _generators(seed)
        self._rows: EpisodeRows | None = None
        self._block: TransitionBlock | None = None
        self._pool: BlockPool | None = None
        self._load()

    @property
    def streams(self) -> bool:
        """Whether data is read while it is drawn."""
        rows = self.transitions + self.episodes
        return rows * self._bytes_of_row > self.memory_limit

    @property
    def _bytes_of_row(self) -> int:
        """What a step takes in memory, with all that is made of it."""
        return self._source.row_bytes + _BYTES_BESIDE

    @property
    def rows(self) -> EpisodeRows | None:
        """All episodes, one after the other; None where data is streamed."""
        return self._rows

    def _settle_spaces(self) -> None:
        """Compares spaces that were given with those of the source."""
        for key in ("observation_space", "action_space"):
            given, read = getattr(self, key), getattr(self._source, key)
            if given is None:
                setattr(self, key, read)
            elif read is not None:
                what = key.removesuffix("_space")
                spaces.check_same(self._source.name, **{what: (read, given)})
        if self.observation_space is not None:
            spaces.check_observation_space(self.observation_space)
        if self.action_space is not None:
            spaces.check_action_space(self.action_space)

    def _load(self) -> None:
        """Reads all there is, if it fits; else one step, to see what it is."""
        lengths = self._lengths
        if self.streams:
            lengths = np.minimum(lengths[:1], 1)
        chosen = self._chosen[: len(lengths)]
        zeros = np.zeros_like(chosen)
        rows = self._read(np.stack([chosen, zeros, lengths], axis=1))
        if not self.streams:
            self._rows = rows
            self._source.close()

    def _read(self, pieces: np.ndarray) -> EpisodeRows:
        """Reads pieces of episodes, and refuses what cannot be used."""
        rows = self._source.read(pieces)
        check_rows(rows, self._source.name)
        if self.action_space is not None:
            check_actions(rows, self.action_space, self._source.name)
        return rows

    def bind(self, agent: CollectingAgent) -> None:
        """Ties the dataset to an agent, whose discount factor counts.

        An agent that normalises observations is shown the data once, what is
        held of it.

        Args:
            agent: `keras_rl2.Agent`. Learns.

        Raises:
            ValueError: If the agent learns from fresh rollouts only, or
                remembers, or its networks or spaces do not fit the data.
        """
        if not learns_offline(agent):
            raise ValueError(
                f"Expected a `keras_rl2.RolloutDataset` for "
                f"{type(agent).__name__}, which learns from its present "
                f"policy only. Received: {type(self).__name__}"
            )
        if agent is self.agent:
            return
        self._bind_spaces(agent)
        if agent.initial_state(1):
            raise ValueError(
                "Expected an agent that remembers nothing: sequences are not "
                f"drawn from an {type(self).__name__}. Received: "
                f"{type(agent).__name__} with memory"
            )
        self._prepare(agent)
        self.agent = agent
        self._ready.clear()
        self._show(agent)

    def _bind_spaces(self, agent: CollectingAgent) -> None:
        """Settles the spaces between data and agent."""
        known = (self.observation_space, self.action_space)
        own = (agent.observation_space, agent.action_space)
        observation, action = (
            ours if ours is not None else theirs
            for ours, theirs in zip(known, own, strict=True)
        )
        if observation is None or action is None:
            raise ValueError(
                f"Expected an agent that knows its spaces, or a dataset that "
                "does: pass `observation_space` and `action_space` to "
                f"`{type(self).__name__}`. Received: neither"
            )
        agent.bind(observation, action)
        if known[1] is None and self._rows is not None:
            check_actions(self._rows, action, self._source.name)
        self.observation_space, self.action_space = observation, action

    def _prepare(self, agent: CollectingAgent) -> None:
        """Makes transitions as the agent takes them."""
        form = TransitionForm(
            agent.observation_spec, agent.policy_head, self.n_step, agent.gamma
        )
        name = self._source.name
        if self._rows is not None:
            self._block = TransitionBlock(self._rows, self._lengths, form, name)
        else:
            self._pool = BlockPool(
                self._source.lengths,
                self._chosen,
                self.memory_limit // self._bytes_of_row,
                self.n_step,
                lambda pieces, drawn: TransitionBlock(
                    self._read(pieces), drawn, form, name
                ),
                self._pool_seed,
            )
        self._settle_round(agent)

    def _settle_round(self, agent: CollectingAgent) -> None:
        """Draws as many minibatches at once as a round has room for."""
        numbers = sum(
            int(np.prod(one.shape)) * np.dtype(one.dtype).itemsize
            for one in leaves(agent.observation_spec)
        )
        most = _ROUND_BYTES // (self.batch_size * (2 * numbers + 16))
        self.updates_per_round = _divisor(
            self.updates_per_epoch, min(max(most, 1), _MOST_UPDATES)
        )
        self.rounds_per_epoch = self.updates_per_epoch // self.updates_per_round

    def _show(self, agent: CollectingAgent) -> None:
        """Shows what is held to an agent, for statistics of observations."""
        blocks = [self._block] if self._block else []
        for block in self._pool.blocks() if self._pool else blocks:
            for trajectory in block.trajectories():
                agent.observe(trajectory)
        agent.begin_round()

    @in_section("preparing")
    def refresh(self) -> None:
        """Draws the minibatches of a round.

        Raises:
            ValueError: If the dataset is not bound to an agent, or something
                in a file that is read cannot be used.
        """
        updates, size = self.updates_per_round, self.batch_size
        drawn = self.sample(updates * size)
        self._ready.clear()
        # [updates * batch, ...] -> [updates, batch, ...]
        batches = map_leaves(
            lambda each: each.reshape(updates, size, *each.shape[1:]), drawn
        )
        self._ready.append({"batches": batches})

    def sample(self, batch_size: int) -> dict[str, Any]:
        """Draws one minibatch uniformly, with replacement.

        Args:
            batch_size: int. Transitions, M.

        Returns:
            dict of `observation` `[M, ...]`, `action` `[M, ...]`, `reward`
            `[M]` float32, `discount` `[M]` float32, `next_observation`
            `[M, ...]` and `weight` `[M]` float32, all of it 1.

        Raises:
            ValueError: If the dataset is not bound to an agent, whose actions
                and discount factor are asked for.
        """
        check_positive(batch_size=batch_size)
        if self._pool is not None:
            batch = self._pool.sample(self._generator, batch_size)
        elif self._block is not None:
            index = self._generator.integers(len(self._block), size=batch_size)
            batch = self._block.take(index)
        else:
            raise ValueError(
                f"Expected an {type(self).__name__} bound to an agent: call "
                "`agent.fit(...)` or `bind(agent)` first. Received: no agent"
            )
        return batch | {"weight": np.ones(batch_size, np.float32)}

    def logs(self) -> dict[str, float]:
        """Returns nothing: no episodes are played."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Returns what the dataset holds.

        Of a dataset that streams, actions are those of its first steps, as
        many as are held at a time.

        Returns:
            dict of plain numbers: `episodes`, `transitions`,
            `episode_return` and `episode_length` (each a dict of `mean`,
            `std`, `min` and `max`), `action`, the share of each choice of a
            Discrete, or `mean`, `std`, `min`, `max` of each number, and
            `observation` alike; `bytes` in memory, and whether it `streams`.
        """
        rows = self._rows if self._rows is not None else self._first_rows()
        return summary(
            rows,
            self.action_space,
            self.episode_returns,
            self._lengths,
        ) | {
            "bytes": (self.transitions + self.episodes) * self._bytes_of_row,
            "streams": self.streams,
        }

    def _first_rows(self) -> EpisodeRows:
        """Reads as many of the first steps as may be held."""
        room = self.memory_limit // (4 * self._bytes_of_row)
        before = np.cumsum(self._lengths) - self._lengths
        lengths = np.minimum(self._lengths, room - before)
        count = int(np.count_nonzero(lengths > 0))
        chosen = self._chosen[:count]
        return self._read(
            np.stack([chosen, np.zeros_like(chosen), lengths[:count]], axis=1)
        )

    @property
    def in_words(self) -> str:
        """A line that says how much it holds, and how good it is."""
        returns = self.episode_returns
        return (
            f"{self.episodes:,} episodes, {self.transitions:,} transitions, "
            f"return {returns.mean():.1f} ({returns.min():.1f} to "
            f"{returns.max():.1f})"
        )

    def __repr__(self) -> str:
        """Says in a line what it holds."""
        return f"<{type(self).__name__}: {self.in_words}>"

    def settings(self) -> dict[str, Any]:
        """Returns the numbers that it was made with, for people to read."""
        return {**super().settings(), "source": self._source.name}

    def get_state(self) -> dict[str, Any]:
        """Returns the state of the draws.

        Of a dataset that streams, the pieces that are held are not in it.
        """
        return {"generator": self._generator.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes back what `get_state` gave.

        Args:
            state: dict, as returned by `get_state`.
        """
        self._generator.bit_generator.state = state["generator"]
        self._ready.clear()

    def _element_spec(self) -> dict[str, Any]:
        """Returns shapes and dtypes of a round."""
        assert self.agent is not None
        leading = (self.updates_per_round, self.batch_size)
        head = self.agent.policy_head
        observation = map_leaves(
            lambda one: tf.TensorSpec((*leading, *one.shape), one.dtype),
            self.agent.observation_spec,
        )
        scalar = tf.TensorSpec(leading, "float32")
        return {
            "batches": {
                "observation": observation,
                "action": tf.TensorSpec(
                    (*leading, *head.action_shape), head.action_dtype
                ),
                "reward": scalar,
                "discount": scalar,
                "next_observation": observation,
                "weight": scalar,
            }
        }


def _choose(
    returns: np.ndarray, best: float | None, min_return: float | None
) -> np.ndarray:
    """Returns the episodes that are learned from, in order."""
    if best is not None and not 0.0 < best <= 1.0:
        raise ValueError(
            "Expected `best` to be a share of the episodes, over 0 and at most "
            f"1. Received: best={best}"
        )
    chosen = np.ones(len(returns), np.bool_)
    if best is not None:
        count = max(round(best * len(returns)), 1)
        # Of equal returns, the earlier ones.
        ranked = np.argsort(-returns, kind="stable")
        chosen[ranked[count:]] = False
    if min_return is not None:
        chosen &= returns >= min_return
    if not chosen.any():
        raise ValueError(
            f"Expected an episode of a return of at least {min_return}. "
            f"Received: {len(returns)} episodes, of {returns.min():g} to "
            f"{returns.max():g}"
        )
    return np.flatnonzero(chosen)


def _generators(
    seed: int | None,
) -> tuple[np.random.Generator, np.random.SeedSequence]:
    """Returns what draws, and the seed of what shuffles."""
    draws, pool = np.random.SeedSequence(seed).spawn(2)
    return np.random.default_rng(draws), pool


def _divisor(number: int, most: int) -> int:
    """Returns the largest divisor of a number up to a bound."""
    return next(k for k in range(min(number, most), 0, -1) if number % k == 0)
