"""Minibatches of recorded and new transitions."""

import operator
from typing import Any

import numpy as np

from keras_rl2.basics.arguments import is_number
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.data.replay import ReplayDataset
from keras_rl2.data.replay_buffer import into_minibatches
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.data.round_dataset import Samples
from keras_rl2.data.round_dataset import tensor_specs
from keras_rl2.offline.offline import OfflineDataset
from keras_rl2.policies.agent_protocols import CollectingAgent
from keras_rl2.saving.checkpoint_folder import SegmentLog
from keras_rl2.spaces.trees import map_leaves


class MixedDataset(RoundDataset):
    """Minibatches of recorded transitions and of transitions from replay.

    Steps are taken by the `ReplayDataset`, with its warm-up, its rounds and
    its number of updates; a fixed share of each minibatch of its `batch_size`
    comes from the `OfflineDataset`. The share 0.5 is RLPD's symmetric
    sampling.

    Args:
        offline: `OfflineDataset`. The recorded transitions.
        replay: `ReplayDataset`. The collected transitions; not prioritised.
        ratio: float. Share of recorded transitions in a minibatch, between 0
            and 1. Defaults to `0.5`.

    Attributes:
        env: `VectorEnvAdapter`. The environment of the replay.

    Raises:
        ValueError: If the ratio is out of bounds, the two datasets have
            different `n_step`, or the replay is prioritised.

    Example:

    >>> import keras_rl2 as rl
    >>> offline = rl.record("random", "CartPole-v1", 200, seed=0)
    >>> replay = rl.ReplayDataset("CartPole-v1", 1000, 32, warm_up=64, seed=0)
    >>> mixed = MixedDataset(offline, replay, ratio=0.25)
    >>> agent = rl.DQN.for_env("CartPole-v1", seed=0)
    >>> history = agent.fit(mixed, total_steps=192, verbose=0)
    >>> mixed.sample(32)["reward"].shape
    (32,)

    Reference:
        - [Ball et al., 2023](https://arxiv.org/abs/2302.02948)
    """

    @refusing_unknown
    def __init__(
        self,
        offline: OfflineDataset,
        replay: ReplayDataset,
        ratio: float = 0.5,
    ) -> None:
        if not is_number(ratio) or not 0.0 < ratio < 1.0:
            raise ValueError(
                "Expected `ratio` to be between 0 and 1; otherwise pass one "
                f"of the datasets alone. Received: ratio={ratio}"
            )
        if offline.n_step != replay.n_step:
            raise ValueError(
                "Expected the same `n_step` of both datasets. Received: "
                f"n_step={offline.n_step} of the recorded data, "
                f"n_step={replay.n_step} of the replay"
            )
        if replay.prioritized:
            raise ValueError(
                "Expected a `ReplayDataset` that draws uniformly, as the "
                "recorded part does. Received: prioritized=True"
            )
        super().__init__(replay.rounds_per_epoch)
        self.offline = offline
        self.replay = replay
        self.ratio = ratio
        self.env = replay.env
        self._take_sizes()

    def _take_sizes(self) -> None:
        """Takes over the sizes of the replay, which depend on the agent."""
        self.steps_per_round = self.replay.steps_per_round
        self.updates_per_round = self.replay.updates_per_round
        self.batch_size = self.replay.batch_size

    @property
    def updates_per_call(self) -> int:
        """Updates that one call makes; see `ReplayDataset`."""
        return self.replay.updates_per_call

    @property
    def steps_before_first_round(self) -> int:
        """Remaining steps of the warm-up."""
        return self.replay.steps_before_first_round

    def bind(self, agent: CollectingAgent) -> None:
        """Binds both datasets to an agent.

        Args:
            agent: `keras_rl2.Agent`. The agent that acts and learns.

        Raises:
            ValueError: If the agent cannot learn from one of them.
        """
        self.replay.bind(agent)
        self.offline.bind(agent)
        self._take_sizes()
        if agent is not self.agent:
            self.agent = agent
            self.ready = None

    def begin(self) -> None:
        """Discards leftover data from a previous `fit`."""
        self.replay.begin()
        super().begin()

    def collect(self) -> Trajectory | None:
        """Stores the steps of a round; see `ReplayDataset`."""
        self.replay.stopwatch = self.stopwatch
        return self.replay.collect()

    def prepare(self, trajectory: Trajectory | None) -> Samples:
        """Draws the minibatches of a round.

        Args:
            trajectory: `Trajectory` or None, as returned by `collect`.

        Returns:
            dict; see `RoundDataset.prepare`.
        """
        del trajectory
        with self._section("preparing"):
            return self._in_parts(
                lambda: self._draw(self.updates_per_call, self.batch_size)
            )

    def _draw(self, updates: int, batch_size: int) -> dict[str, Any]:
        """Draws minibatches, `[updates, batch, ...]`."""
        recorded = min(max(round(self.ratio * batch_size), 1), batch_size - 1)
        new = self.replay.sample(updates * (batch_size - recorded))
        del new["index"]
        old = self.offline.sample(updates * recorded)
        return map_leaves(
            lambda *each: np.concatenate(each, axis=1),
            into_minibatches(old, updates),
            into_minibatches(new, updates),
        )

    def sample(self, batch_size: int) -> dict[str, Any]:
        """Draws one minibatch of both kinds.

        Args:
            batch_size: int. Transitions, M, at least 2.

        Returns:
            dict as from `OfflineDataset.sample`, recorded transitions first.

        Raises:
            ValueError: If the datasets are not bound to an agent, or nothing
                has been stored yet.
        """
        return map_leaves(operator.itemgetter(0), self._draw(1, batch_size))

    def logs(self) -> dict[str, float]:
        """Returns the logs of the replay."""
        return self.replay.logs()

    def largest_return(self) -> float:
        """Returns the larger bound of both datasets' discounted returns."""
        return max(x.largest_return() for x in (self.offline, self.replay))

    def settings(self) -> dict[str, Any]:
        """Returns the numbers that define the rounds of both, for display."""
        return {
            **{f"replay.{k}": v for k, v in self.replay.settings().items()},
            **{f"offline.{k}": v for k, v in self.offline.settings().items()},
            "ratio": self.ratio,
            "rounds_per_epoch": self.rounds_per_epoch,
        }

    def get_state(self, log: SegmentLog | None = None) -> dict[str, Any]:
        """Returns the state that later rounds of both depend on.

        Args:
            log: `SegmentLog` or None. See `ReplayDataset`. Defaults to `None`.
        """
        return {
            "offline": self.offline.get_state(),
            "replay": self.replay.get_state(log),
        }

    def set_state(
        self, state: dict[str, Any], log: SegmentLog | None = None
    ) -> None:
        """Restores the state from `get_state`, if bound to an agent.

        Args:
            state: dict, as returned by `get_state`.
            log: `SegmentLog` or None. See `ReplayDataset`. Defaults to `None`.
        """
        self.replay.set_state(state["replay"], log)
        self.offline.set_state(state["offline"])
        self.ready = None

    def _element_spec(self) -> dict[str, Any]:
        """Returns shapes and dtypes of the minibatches of a round."""
        assert self.replay.buffer is not None
        leading = (self.updates_per_call, self.batch_size)
        return tensor_specs(self.replay.buffer.spec, *leading)
