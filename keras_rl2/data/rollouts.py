"""Rollouts for on-policy agents."""

import dataclasses
import functools
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple
from typing import Unpack
from typing import cast

import numpy as np
import tensorflow as tf

from keras_rl2.basics.arguments import check_flag
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.arguments import given_or
from keras_rl2.basics.arguments import present
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.basics.outliers import Outliers
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.collecting.trajectory import as_sequences
from keras_rl2.data.collecting_dataset import CollectingDataset
from keras_rl2.data.collecting_dataset import EnvironmentArguments
from keras_rl2.data.round_dataset import Round
from keras_rl2.data.round_dataset import tensor_specs
from keras_rl2.envs.reward_scaler import RewardScaler
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.policies.agent_protocols import CollectingAgent
from keras_rl2.policies.agent_protocols import RolloutAgent
from keras_rl2.policies.own_round import OwnRollout
from keras_rl2.policies.policy import ModelPolicy
from keras_rl2.saving.checkpoint_folder import SegmentLog
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.workers.workers import WorkerEnv

if TYPE_CHECKING:
    from keras_rl2.graph.graph_rounds import GraphRounds

# Assumed steps of an episode without a time limit.
_LONG_EPISODE = 1000
# Default steps that gradients flow back through.
_LONGEST_SEQUENCE = 64
# Minimum number of sequences of a minibatch.
_FEWEST_SEQUENCES = 4


class RolloutDataset(CollectingDataset[RolloutAgent]):
    """Fresh rollouts of the current policy, as minibatches for `fit`.

    Each round takes `horizon` steps in every environment, has the agent prepare
    them (log-probabilities, values, advantages: one compiled call) and returns
    them `passes` times in minibatches, reshuffled each time. Every action comes
    from the weights after all updates of the round before.

    An omitted argument is chosen by the algorithm, e.g. for PPO rounds of about
    2048 steps, 10 passes, minibatches of 64 and scaled rewards. Its value is
    known once the dataset is bound to an agent, e.g. by `fit`; `repr` then
    shows it.

    Args:
        horizon: int or None. Steps of one rollout per environment, T; None for
            the algorithm's own, which decreases with the number of
            environments. Defaults to `None`.
        passes: int or None. Number of times that every step is trained on;
            None for the algorithm's own. Defaults to `None`.
        batch_size: int, None or `"auto"`. Steps of one minibatch, at most T x
            B; None for the whole rollout; `"auto"` for the algorithm's own.
            Defaults to `"auto"`.
        rounds_per_epoch: int or None. Rounds of one Keras epoch; None for 1,
            or for the algorithm's own if `horizon` is None. Defaults to
            `None`.
        scale_rewards: bool or None. Whether rewards are divided by the running
            standard deviation of the discounted return; values and value
            losses are then on the scale of the scaled rewards. None for the
            algorithm's own. Defaults to `None`.
        seed: int or None. Seeds environments, acting and shuffling. Defaults
            to `None`.
        sequence_length: int or None. For a recurrent agent: steps that are
            trained as one sequence, through which gradients flow back, a
            divisor of `horizon`; minibatches are whole sequences. None for the
            largest divisor up to 64. Defaults to `None`.

    Raises:
        ValueError: If a number is below 1, the minibatch is larger than the
            rollout, or a space is not supported.

    Example:

    >>> import keras_rl2 as rl
    >>> rollouts = RolloutDataset("CartPole-v1", horizon=64, passes=2,
    ...                           batch_size=32, seed=0)
    >>> agent = rl.PPO.for_env(rollouts.env, seed=0)
    >>> batches = rollouts.as_dataset(agent)
    >>> rollouts.refresh()
    >>> batch = next(iter(batches))
    >>> batch["observation"].shape
    TensorShape([32, 4])
    >>> sorted(batch)
    ['action', 'advantage', 'log_prob', 'observation', 'returns', 'value',
     'weight']
    """

    horizon: int
    passes: int
    batch_size: int
    minibatches: int
    steps_per_round: int
    updates_per_round: int
    scale_rewards: bool
    _shown = (
        "horizon",
        "passes",
        "batch_size",
        "scale_rewards",
        "rounds_per_epoch",
    )

    @refusing_unknown
    def __init__(
        self,
        env: GivenEnv,
        horizon: int | None = None,
        passes: int | None = None,
        batch_size: int | str | None = "auto",
        *,
        rounds_per_epoch: int | None = None,
        scale_rewards: bool | None = None,
        sequence_length: int | None = None,
        **settings: Unpack[EnvironmentArguments],
    ) -> None:
        self._asked = _Asked(
            horizon, passes, batch_size, rounds_per_epoch, scale_rewards
        )
        self._asked.check(sequence_length)
        super().__init__(
            env, rounds_per_epoch=rounds_per_epoch or 1, **settings
        )
        self.sequence_length = sequence_length
        with self._closing_if_refused():
            _check_sizes(horizon, batch_size, self.env.num_envs)
        if horizon and passes and batch_size != "auto":
            self._set_round(horizon, passes, batch_size)
        self._samples: dict[str, Any] = {}
        self._trajectory: Trajectory | None = None
        self.valid_rows = np.empty(0, np.intp)
        self._statistics: dict[str, float] = {}
        self._shuffle = np.random.default_rng(self._own_seed)
        self._scaler: RewardScaler | None = None
        self._graph_rounds: GraphRounds | None = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Explains why a setting that the algorithm chooses is missing."""
            if name not in type(self).__annotations__:
                return super().__getattribute__(name)
            raise AttributeError(
                "Expected a RolloutDataset that is bound to an agent, or has "
                "`horizon`, `passes` and `batch_size` set, to know its "
                f"`{name}`: the algorithm chooses omitted arguments. "
                f"Received: {self!r}"
            )

    def settle(self, algorithm: RolloutAgent) -> None:
        """Sets the arguments left open to an algorithm's defaults.

        Args:
            algorithm: `keras_rl2.Agent`, or a subclass.
        """
        own = algorithm.own_rollout(self.env.observation_space)
        asked = self._asked
        horizon, batch_size = asked.horizon, asked.batch_size
        if horizon is None:
            horizon = self._in_sequences(
                _longest_episode(self.env.env)
                if algorithm.whole_episodes
                else self._own_horizon(own)
            )
            if asked.rounds_per_epoch is None:
                self.rounds_per_epoch = own.rounds_per_epoch
        if batch_size == "auto":
            num_envs = self.env.num_envs
            batch_size = own.minibatch(horizon * num_envs, num_envs)
        self.scale_rewards = given_or(asked.scale_rewards, own.scale_rewards)
        self._set_round(horizon, given_or(asked.passes, own.passes), batch_size)

    def _own_horizon(self, own: OwnRollout) -> int:
        """Returns an algorithm's own horizon, fitted to the other arguments."""
        horizon = own.horizon(self.env.num_envs)
        batch_size = self._asked.batch_size
        if isinstance(batch_size, int):
            horizon = max(horizon, -(-batch_size // self.env.num_envs))
        return horizon

    def _in_sequences(self, steps: int) -> int:
        """Returns the steps rounded up to whole sequences."""
        length = self.sequence_length or 1
        return -(-steps // length) * length

    def _set_round(self, horizon: int, passes: int, batch_size: Any) -> None:
        """Sets the number of steps and updates of a round."""
        self.horizon = horizon
        self.passes = passes
        self.steps_per_round = horizon * self.env.num_envs
        self.batch_size = batch_size or self.steps_per_round
        self.minibatches = -(-self.steps_per_round // self.batch_size)
        self.updates_per_round = self.passes * self.minibatches

    def own_settings(self) -> dict[str, Any]:
        """Returns the settings that the algorithm chose."""
        if self.agent is None:
            return {}
        return {name: getattr(self, name) for name in self._asked.left_open()}

    @property
    def fewest_steps_per_round(self) -> int:
        """Minimum steps of a round: whole episodes may end at once."""
        if self.agent is not None and self.agent.whole_episodes:
            return self.env.num_envs
        return self.steps_per_round

    def _accept(self, agent: CollectingAgent) -> RolloutAgent:
        """Returns the agent, checking that it learns from rollouts."""
        if agent.on_policy:
            return cast(RolloutAgent, agent)
        raise ValueError(
            f"Expected a `keras_rl2.ReplayDataset` for "
            f"{type(agent).__name__}, which learns from past transitions. "
            f"Received: {type(self).__name__}"
        )

    def bind(self, agent: CollectingAgent) -> None:
        """Binds the dataset to an agent, checking that the two fit.

        Args:
            agent: `keras_rl2.Agent`. Acts and prepares.

        Raises:
            ValueError: If the agent learns from replay, or its networks or
                spaces do not fit those of the environment.
        """
        super().bind(agent)
        # Each time, since the agent may allow another lag than before.
        on_workers = isinstance(self.env, WorkerEnv)
        lag: int | None = getattr(agent, "max_lag", 0) if on_workers else 0
        self._rounds_ahead = 1 if lag is None else lag // self.updates_per_round

    def _fit_to(self, agent: RolloutAgent) -> int | None:
        """Sets all that depends on the agent; changes nothing on error."""
        try:
            self.settle(agent)
            length = None
            if agent.initial_state(1):
                length = self._settle_sequences()
            elif self.sequence_length is not None:
                raise ValueError(
                    "Expected `sequence_length=None` for an agent that is not "
                    "recurrent. "
                    f"Received: sequence_length={self.sequence_length}"
                )
        except ValueError:
            if self.agent is not None:
                self.settle(self.agent)
            raise
        self._scaler = None
        self._graph_rounds = None
        if self.scale_rewards:
            self._scaler = RewardScaler(agent.gamma, self.env.num_envs)
        return length

    def _settle_sequences(self) -> int:
        """Sets the minibatches of sequences, and returns their length."""
        # The longest divisor.
        longest = min(self.horizon, _LONGEST_SEQUENCE)
        length = self.sequence_length or next(
            n for n in range(longest, 0, -1) if self.horizon % n == 0
        )
        steps = self.batch_size
        if self._asked.batch_size == "auto":
            sequences = max(steps // length, _FEWEST_SEQUENCES)
            steps = min(sequences * length, self.steps_per_round)
        if steps % length:
            raise ValueError(
                "Expected `batch_size` to be a multiple of the steps of a "
                f"sequence, {length}. Received: batch_size={steps}"
            )
        self._set_round(self.horizon, self.passes, steps)
        return length

    def _collects_in_graph(self) -> bool:
        """Whether the train function takes the steps of the next round."""
        # Observers see each trajectory.
        observed = bool(getattr(self.agent, "observers", ()))
        return super()._collects_in_graph() and not observed

    def prepare(self, trajectory: Trajectory | None) -> Round:
        """Returns the samples of a rollout, and their minibatches.

        Rewards are scaled here.

        Args:
            trajectory: `Trajectory` or None, as returned by `collect`.

        Returns:
            dict; see `RoundDataset.prepare`.
        """
        with self._section("preparing"):
            self._samples, self._trajectory = {}, None
            if trajectory is None:
                return self._inputs_of_rounds()
            self._rounds_given += 1
            self._trajectory = trajectory = self._scaled(trajectory)
            self.valid_rows = np.flatnonzero(trajectory.valid)
            if self._gives_trajectories:
                return trajectory.packed_arrays(self._sees_final)
            self._samples, self._statistics = self._bound_agent().prepare(
                trajectory
            )
            rows, weight = self._minibatch_rows(trajectory)
            return {"samples": self._samples, "rows": rows, "weight": weight}

    def graph_rounds(self) -> "GraphRounds | None":
        """Returns the maker of rounds in the graph; see `RoundDataset`."""
        if not hasattr(self.env.env, "graph_env"):
            return None
        # Few trainings need it, and it is not small.
        from keras_rl2.graph.graph_rounds import GraphRounds

        agent = self._bound_agent()
        if self._graph_rounds is None and GraphRounds.can_make(agent):
            self._graph_rounds = GraphRounds(
                cast(Any, agent),
                self.env.env,
                self.horizon,
                self.passes,
                self.minibatches,
                self.batch_size,
                self._scaler,
                self._receive_from_graph,
            )
        return self._graph_rounds

    def _inputs_of_rounds(self) -> Round:
        """Returns the inputs of the next rounds for the train function."""
        rounds = self.graph_rounds()
        assert rounds is not None
        parts = [
            cast(ModelPolicy, agent).noise_parts
            for agent in self._begin_in_graph()
        ]
        in_progress = self._bound_collector().episodes.in_progress
        return {
            "inputs": rounds.inputs(self._noise, self._shuffle, parts),
            "carried": rounds.carried(in_progress),
        }

    def _receive_from_graph(
        self,
        ended: np.ndarray,
        in_progress: np.ndarray,
        statistics: dict[str, float],
    ) -> None:
        """Receives the episodes and statistics of a round in the graph."""
        agent, collector = self._bound_agent(), self._bound_collector()
        collector.take_back(self.env.env.observations, ended, in_progress)
        self._statistics = statistics
        self._rounds_given += 1
        agent.env_steps += self.steps_per_round
        self._look_for_ends(self.steps_per_round)

    def _minibatch_rows(
        self, trajectory: Trajectory
    ) -> tuple[np.ndarray, np.ndarray]:
        """Distributes steps, or sequences of steps, to minibatches."""
        length = self._bound_collector().sequence_length
        distribute = functools.partial(
            shuffled_rows,
            generator=self._shuffle,
            passes=self.passes,
            minibatches=self.minibatches,
            batch_size=self.batch_size // (length or 1),
        )
        if length is None:
            return distribute(self.valid_rows)
        counted = as_sequences(trajectory.valid, length)
        rows, weight = distribute(np.flatnonzero(counted.any(axis=1)))
        # [U, M] -> [U, M, L]
        return rows, weight[..., None] * counted[rows].astype(np.float32)

    def _scaled(self, trajectory: Trajectory) -> Trajectory:
        """Returns a rollout with scaled rewards."""
        if self._scaler is None:
            return trajectory
        broken = self._bound_collector().broken
        scaled = self._scaler.scale_rollout(
            trajectory.reward,
            trajectory.ended,
            trajectory.valid,
            None if broken is None else broken.anew,
        )
        return dataclasses.replace(trajectory, reward=scaled)

    def _cut(self, envs: np.ndarray, discarded: np.ndarray) -> None:
        """Marks episodes that were interrupted before the next step."""
        if self._scaler is not None:
            self._scaler.begin(envs)

    @property
    def samples(self) -> dict[str, Any]:
        """Samples of the last round `[T * B, ...]`, as prepared."""
        if not self._samples and self._trajectory is not None:
            self._samples, _ = self._bound_agent().prepare(self._trajectory)
        return self._samples

    def valid_samples(self, key: str) -> Any:
        """Returns one of `samples` without the resets of NEXT_STEP, `[V, ...]`.

        Args:
            key: str. Name of the sample.

        Returns:
            Tree of arrays with one row per valid step; in the order of the
            sequences for a recurrent agent.
        """
        if self._trajectory is None:
            raise ValueError(
                "Expected a dataset that was refreshed. Received: one "
                "without samples"
            )
        valid = self._trajectory.valid
        length = self._bound_collector().sequence_length
        counted = (
            valid.ravel() if length is None else as_sequences(valid, length)
        )
        return map_leaves(lambda array: array[counted], self.samples[key])

    def logs(self) -> dict[str, float]:
        """Returns the mean of the last 100 episodes and of the last round."""
        return {**super().logs(), **self._statistics}

    @property
    def outliers(self) -> dict[str, Outliers]:
        """Outliers left out of running statistics, by their key in the logs."""
        found = super().outliers
        if self._scaler is not None:
            found["clipped_rewards"] = self._scaler.outliers
        return found

    def get_state(self, log: SegmentLog | None = None) -> dict[str, Any]:
        """Returns the state that later rollouts depend on, as plain data."""
        return {
            **super().get_state(log),
            "shuffle": self._shuffle.bit_generator.state,
            "scaler": self._scaler.get_state() if self._scaler else {},
        }

    def set_state(
        self, state: dict[str, Any], log: SegmentLog | None = None
    ) -> None:
        """Restores the state returned by `get_state`, after `bind`.

        Args:
            state: dict, as returned by `get_state`.
            log: `SegmentLog` or None. Not used. Defaults to `None`.
        """
        super().set_state(state, log)
        self._shuffle.bit_generator.state = state["shuffle"]
        if self._scaler is not None and state["scaler"]:
            self._scaler.set_state(state["scaler"])

    def _element_spec(self) -> dict[str, Any]:
        """Returns shapes and dtypes of the minibatches of a round."""
        length = self._bound_collector().sequence_length
        shape = (self.updates_per_round, self.batch_size // (length or 1))
        one_sample = self._bound_agent().sample_spec(length)
        weight = shape if length is None else (*shape, length)
        return {
            **tensor_specs(one_sample, *shape),
            "weight": tf.TensorSpec(weight, "float32"),
        }

    @property
    def _sees_final(self) -> bool:
        """Whether environments reset within the step that ends an episode."""
        return not self.env.masks_reset_rows


class _Asked(NamedTuple):
    """The arguments of a dataset that have defaults of an algorithm."""

    horizon: int | None
    passes: int | None
    batch_size: int | str | None
    rounds_per_epoch: int | None
    scale_rewards: bool | None

    def check(self, sequence_length: int | None) -> None:
        """Checks the numbers before an environment is made."""
        batch_size = None if self.batch_size == "auto" else self.batch_size
        check_positive(
            **present(
                horizon=self.horizon,
                passes=self.passes,
                rounds_per_epoch=self.rounds_per_epoch,
                sequence_length=sequence_length,
                batch_size=batch_size,
            )
        )
        check_flag(**present(scale_rewards=self.scale_rewards))
        if self.horizon and sequence_length and self.horizon % sequence_length:
            raise ValueError(
                f"Expected `sequence_length` to divide `horizon`, "
                f"{self.horizon}. Received: sequence_length={sequence_length}"
            )

    def left_open(self) -> list[str]:
        """Returns the names of the arguments that an algorithm chooses."""
        chosen = {
            "horizon": self.horizon is None,
            "passes": self.passes is None,
            "batch_size": self.batch_size == "auto",
            "rounds_per_epoch": self.horizon is self.rounds_per_epoch is None,
            "scale_rewards": self.scale_rewards is None,
        }
        return [name for name, is_open in chosen.items() if is_open]


def _check_sizes(
    horizon: int | None, batch_size: int | str | None, num_envs: int
) -> None:
    """Checks that the sizes fit each other."""
    if horizon is None:
        return
    steps = horizon * num_envs
    if isinstance(batch_size, int) and batch_size > steps:
        raise ValueError(
            "Expected `batch_size` to be at most the rollout, horizon x "
            f"environments = {horizon} x {num_envs} = {steps}. "
            f"Received: batch_size={batch_size}"
        )


def _longest_episode(env: GivenEnv) -> int:
    """Returns the time limit of an environment, or a default without one."""
    limit: int | None = getattr(
        getattr(env, "spec", None), "max_episode_steps", None
    )
    return limit or _LONG_EPISODE


def shuffled_rows(
    valid: np.ndarray,
    generator: np.random.Generator,
    passes: int,
    minibatches: int,
    batch_size: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Assigns samples to shuffled minibatches.

    All minibatches have the same shape for any number of valid samples: the
    valid samples are distributed evenly (their numbers differ by at most one),
    and the rest of each minibatch is filled with rows of weight 0. Thus no
    sample is left out, no small last minibatch makes a noisy update, and
    TensorFlow traces one signature.

    Args:
        valid: `[V]` ints. Indices of the samples that are transitions.
        generator: `np.random.Generator`. Shuffles the samples.
        passes: int. Number of times that every sample occurs.
        minibatches: int. Minibatches of one pass, M.
        batch_size: int. Number of rows of a minibatch.

    Returns:
        Rows `[passes * M, batch_size]` int32, and their weights, float32.

    Example:

    >>> rows, weight = shuffled_rows(
    ...     np.arange(3), np.random.default_rng(0), 1, 2, 2)
    >>> weight.tolist()
    [[1.0, 1.0], [1.0, 0.0]]
    """
    columns = -(-len(valid) // minibatches)
    rows = np.zeros((passes, minibatches, batch_size), np.int32)
    weight = np.zeros((passes, minibatches, batch_size), np.float32)
    dealt = np.zeros(columns * minibatches, np.int32)
    counted = np.arange(columns * minibatches) < len(valid)
    # [columns * M] -> [M, columns]: each minibatch takes every M-th sample.
    weight[:, :, :columns] = counted.reshape(columns, minibatches).T
    for one_pass in range(passes):
        dealt[: len(valid)] = generator.permutation(valid)
        rows[one_pass, :, :columns] = dealt.reshape(columns, minibatches).T
    # [passes, M, batch] -> [passes * M, batch]
    shape = (passes * minibatches, batch_size)
    return rows.reshape(shape), weight.reshape(shape)
