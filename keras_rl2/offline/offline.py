"""Fixed datasets for off-policy agents."""

import math
from collections.abc import Sequence
from typing import Any
from typing import cast

import gymnasium
import numpy as np

from keras_rl2.basics import arguments
from keras_rl2.basics import seeds
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.data.memory import bytes_of
from keras_rl2.data.replay_buffer import Transform
from keras_rl2.data.replay_buffer import into_minibatches
from keras_rl2.data.replay_buffer import transformed
from keras_rl2.data.replay_buffer import transition_spec
from keras_rl2.data.round_dataset import MOST_BYTES
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.data.round_dataset import Samples
from keras_rl2.data.round_dataset import largest_divisor
from keras_rl2.data.round_dataset import tensor_specs
from keras_rl2.offline.episodes import TransitionBlock
from keras_rl2.offline.sources import GivenSource
from keras_rl2.offline.sources import read_episodes
from keras_rl2.policies.agent_protocols import CollectingAgent
from keras_rl2.policies.agent_protocols import learns_offline
from keras_rl2.policies.agent_protocols import refuse_on_policy
from keras_rl2.saving.checkpoint_folder import SegmentLog
from keras_rl2.spaces import supported as spaces
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import leaves

# A round is drawn at once, and lies in memory twice.
_MOST_UPDATES = 100


class OfflineDataset(RoundDataset):
    """Recorded episodes, drawn at random as minibatches for `fit`.

    There is no environment: `agent.fit(offline, epochs=...)` takes no steps,
    and an epoch is a number of updates. Every agent that learns from replay
    and is not recurrent can learn from it, with the same kind of minibatches.

    All data is held in memory. Numbers recorded as float64 are stored as
    float32.

    Args:
        source: The recorded data. One of
            - a dict of arrays, one step after the other: `observations`
              `[N, ...]` (or a dict or tuple of such), `actions` `[N, ...]` as
              the environment took them, `rewards`, `terminations` and
              `truncations` `[N]`, and optionally `next_observations`. Without
              those the last step of a truncated episode is left out, since
              its next observation is unknown. D4RL's names `terminals` and
              `timeouts` are supported, too;
            - the path of an `.npz` file of these arrays;
            - the folder of a Minari dataset, or a `minari.MinariDataset`;
            - a `keras_rl2.ReplayDataset`, for the content of its buffer.
        batch_size: int. Transitions of one minibatch. Defaults to `256`.
        n_step: int. Rewards that a transition adds up before it bootstraps.
            Defaults to `1`.
        seed: int or None. Seeds the draws. Defaults to `0`.
        updates_per_epoch: int. Updates of one Keras epoch. Defaults to
            `1000`.
        observation_space: `gymnasium.Space` or None. The space of
            observations; None for that of the source, or else of the agent.
            Defaults to `None`.
        action_space: `gymnasium.Space` or None. The space of actions; None
            for that of the source, or else of the agent. Defaults to `None`.
        transform: sequence of functions of a drawn minibatch and a view of the
            stored steps, which return the changed minibatch; see
            `keras_rl2.data.ReplayBuffer`. Defaults to `()`.

    Attributes:
        observation_space: `gymnasium.Space`. None until it is known.
        action_space: `gymnasium.Space`. None until it is known.
        episodes: int. Number of episodes.
        transitions: int. Number of their transitions.
        episode_returns: `[E]` float64. Their returns.
        recorded: `Episodes`. All of them, one after the other.

    Raises:
        ValueError: If a number is out of bounds, or the source cannot be used:
            arrays that are missing or of different lengths, actions outside of
            their space, NaN, a damaged file, a file that holds objects.

    Example:

    >>> import keras_rl2 as rl
    >>> offline = OfflineDataset({
    ...     "observations": np.zeros((8, 4), "float32"),
    ...     "actions": np.array([0, 1] * 4), "rewards": np.ones(8),
    ...     "terminations": np.arange(8) % 4 == 3,
    ...     "truncations": np.zeros(8, bool)}, batch_size=32)
    >>> offline
    <OfflineDataset: 2 episodes, 8 transitions, mean return 4.0 (4.0 to 4.0)>
    >>> agent = rl.DQN.for_env("CartPole-v1", seed=0)
    >>> offline.bind(agent)
    >>> sorted(offline.sample(5))
    ['action', 'discount', 'next_observation', 'observation', 'reward',
     'weight']
    """

    @arguments.refusing_unknown
    def __init__(
        self,
        source: GivenSource,
        batch_size: int = 256,
        n_step: int = 1,
        seed: int | None = 0,
        *,
        updates_per_epoch: int = 1000,
        observation_space: gymnasium.Space[Any] | None = None,
        action_space: gymnasium.Space[Any] | None = None,
        transform: Sequence[Transform] = (),
    ) -> None:
        arguments.check_positive(
            batch_size=batch_size,
            n_step=n_step,
            updates_per_epoch=updates_per_epoch,
        )
        arguments.check_seed(seed)
        super().__init__(rounds_per_epoch=1)
        self.batch_size = int(batch_size)
        self.n_step = int(n_step)
        self.seed = seed
        self.transform = tuple(transform)
        self.updates_per_epoch = int(updates_per_epoch)
        self.steps_per_round = 0
        self._settle_round(_MOST_UPDATES)
        recorded = self.recorded = read_episodes(source)
        self._name = recorded.name
        self.observation_space = self._agreed(
            "observation", observation_space, recorded.observation_space
        )
        self.action_space = self._agreed(
            "action", action_space, recorded.action_space
        )
        recorded.check_finite()
        if self.action_space is not None:
            recorded.check_actions(self.action_space)
        self.episode_returns = recorded.returns
        self.episodes = len(recorded.lengths)
        self.transitions = len(recorded.reward)
        self._generator = np.random.default_rng(
            seeds.sequence(seed).spawn(1)[0]
        )
        self._block: TransitionBlock | None = None

    def _agreed(
        self,
        kind: str,
        space: gymnasium.Space[Any] | None,
        read: gymnasium.Space[Any] | None,
    ) -> gymnasium.Space[Any] | None:
        """Returns the space passed as an argument, or else of the source."""
        if space is not None and read is not None:
            spaces.check_same(self._name, **{kind: (read, space)})
        return read if space is None else space

    def bind(self, agent: CollectingAgent) -> None:
        """Binds the dataset to an agent, and takes its discount factor.

        An agent that normalises observations updates its statistics once, by
        the data.

        Args:
            agent: `keras_rl2.Agent`. The agent that learns.

        Raises:
            ValueError: If the agent learns from fresh rollouts only, or is
                recurrent, or its networks or spaces do not fit the data.
        """
        if not learns_offline(agent):
            refuse_on_policy(agent, self)
        if agent is self.agent and self._block is not None:
            if agent.gamma != self._block.gamma:
                self._block = self._make_block(agent)
            return
        self._bind_spaces(agent)
        if agent.policy.initial_state(1):
            raise ValueError(
                "Expected an agent that is not recurrent: sequences are not "
                f"drawn from an {type(self).__name__}. Received: a recurrent "
                f"{type(agent).__name__}"
            )
        self._block = self._make_block(agent)
        # Minibatches of a round that fit into memory.
        numbers = bytes_of(leaves(agent.policy.observation_spec))
        most = MOST_BYTES // (self.batch_size * (2 * numbers + 16))
        self._settle_round(min(most, _MOST_UPDATES))
        self.agent = agent
        self.ready = None
        for trajectory in self._block.trajectories():
            agent.observe(trajectory)
        agent.begin_round()

    def _make_block(self, agent: CollectingAgent) -> TransitionBlock:
        """Makes the transitions for an agent."""
        return TransitionBlock(
            self.recorded, agent, self.n_step, self._generator
        )

    def _bind_spaces(self, agent: Any) -> None:
        """Settles the spaces between data and agent."""
        observation = arguments.given_or(
            self.observation_space, agent.observation_space
        )
        action = arguments.given_or(self.action_space, agent.action_space)
        agent.bind(observation, action)
        self.recorded.check_observations(observation)
        if self.action_space is None:
            self.recorded.check_actions(action)
        self.observation_space, self.action_space = observation, action

    def _settle_round(self, most: int) -> None:
        """Sets the updates of a round, the largest divisor of an epoch's."""
        updates = self.updates_per_epoch
        self.updates_per_round = largest_divisor(updates, most)
        self.rounds_per_epoch = updates // self.updates_per_round

    def collect(self) -> None:
        """Takes no steps: the data is recorded."""

    def prepare(self, trajectory: Trajectory | None) -> Samples:
        """Draws the minibatches of a round.

        Args:
            trajectory: None. There is none.

        Returns:
            dict; see `RoundDataset.prepare`.

        Raises:
            ValueError: If the dataset is not bound to an agent.
        """
        del trajectory
        with self._section("preparing"):
            updates = self.updates_per_round
            drawn = self.sample(updates * self.batch_size)
            cast(CollectingAgent, self.agent).offline_updates += updates
            return {"batches": into_minibatches(drawn, updates)}

    def sample(self, batch_size: int) -> dict[str, Any]:
        """Draws one minibatch uniformly, with replacement.

        Args:
            batch_size: int. Transitions, M.

        Returns:
            dict of `observation` `[M, ...]`, `action` `[M, ...]`, `reward`
            `[M]` float32, `discount` `[M]` float32, `next_observation`
            `[M, ...]` and `weight` `[M]` float32, all of it 1.

        Raises:
            ValueError: If the dataset is not bound to an agent, whose action
                space and discount factor it needs.
        """
        arguments.check_positive(batch_size=batch_size)
        if self._block is None:
            raise ValueError(
                f"Expected an {type(self).__name__} bound to an agent: call "
                "`agent.fit(...)` or `bind(agent)` first. Received: no agent"
            )
        index = self._generator.integers(len(self._block), size=batch_size)
        weight = np.ones(batch_size, np.float32)
        batch = {**self._block.take(index), "weight": weight, "index": index}
        batch = transformed(batch, self.transform, self._block)
        del batch["index"]
        return batch

    def largest_return(self) -> float:
        """Returns a bound of the discounted returns of the data."""
        if self._block is None or self.transform:
            return math.inf
        return self._block.largest_return

    @property
    def in_words(self) -> str:
        """Numbers of episodes and transitions, and returns, in one line."""
        returns = self.episode_returns
        return (
            f"{self.episodes:,} episodes, {self.transitions:,} transitions, "
            f"mean return {returns.mean():.1f} ({returns.min():.1f} to "
            f"{returns.max():.1f})"
        )

    def __repr__(self) -> str:
        """Returns the class with `in_words`."""
        return f"<{type(self).__name__}: {self.in_words}>"

    def settings(self) -> dict[str, Any]:
        """Returns the numbers that define a round, and the source's name."""
        return {**super().settings(), "source": self._name}

    def get_state(self, log: SegmentLog | None = None) -> dict[str, Any]:
        """Returns the state that later draws depend on, without the data.

        Args:
            log: `SegmentLog` or None. Not used. Defaults to `None`.
        """
        return {"generator": self._generator.bit_generator.state}

    def set_state(
        self, state: dict[str, Any], log: SegmentLog | None = None
    ) -> None:
        """Restores the state from `get_state`, if bound to an agent.

        Args:
            state: dict, as returned by `get_state`.
            log: `SegmentLog` or None. Not used. Defaults to `None`.
        """
        self._generator.bit_generator.state = state["generator"]
        self.ready = None

    def _element_spec(self) -> dict[str, Any]:
        """Returns shapes and dtypes of the minibatches of a round."""
        assert self.agent is not None
        head = self.agent.policy.head
        one = transition_spec(
            self.agent.policy.observation_spec,
            ArraySpec(head.action_shape, head.action_dtype),
        )
        leading = (self.updates_per_round, self.batch_size)
        return tensor_specs(one, *leading)
