"""Rollouts for on-policy agents."""

import dataclasses
import functools
from typing import Any
from typing import Unpack

import numpy as np
import tensorflow as tf

from keras_rl2.basics import arguments
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.basics.outliers import Outliers
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.collecting.trajectory import as_sequences
from keras_rl2.data.collecting_dataset import CollectingDataset
from keras_rl2.data.collecting_dataset import EnvironmentArguments
from keras_rl2.data.round_dataset import Samples
from keras_rl2.data.round_dataset import largest_divisor
from keras_rl2.data.round_dataset import tensor_specs
from keras_rl2.envs.reward_scaler import RewardScaler
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.policies.agent_protocols import CollectingAgent
from keras_rl2.policies.agent_protocols import OwnRollout
from keras_rl2.policies.agent_protocols import RolloutAgent
from keras_rl2.saving.checkpoint_folder import SegmentLog
from keras_rl2.spaces.trees import map_leaves

# Minimum steps of an epoch, where neither user nor algorithm chose it.
_STEPS_PER_EPOCH = 1000
# Assumed steps of an episode without a time limit.
_LONG_EPISODE = 1000
# Default steps that gradients flow back through.
_LONGEST_SEQUENCE = 64
# Minimum number of sequences of a minibatch.
_FEWEST_SEQUENCES = 4


class RolloutDataset(CollectingDataset):
    """Fresh rollouts of the current policy, as minibatches for `fit`.

    Each round takes `horizon` steps in every environment, has the agent prepare
    them (log-probabilities, values, advantages: one compiled call) and returns
    them `passes` times in minibatches, reshuffled each time. Every action comes
    from the weights after all updates of the round before, or from older ones
    with `APPO` and workers.

    An omitted argument is chosen by the algorithm, for example for PPO rounds
    of about 2048 steps, 10 passes, minibatches of 64 and scaled rewards. Its
    value is known once the dataset is bound to an agent, for example by `fit`;
    `repr` then shows it.

    Args:
        horizon: int or None. Steps of one rollout per environment, T; None for
            the algorithm's own, which decreases with the number of
            environments. Defaults to `None`.
        passes: int or None. Number of times that every step is trained on;
            None for the algorithm's own. Defaults to `None`.
        batch_size: int, None or `"auto"`. Steps of one minibatch, at most T x
            B; None for the whole rollout; `"auto"` for the algorithm's own.
            Defaults to `"auto"`.
        rounds_per_epoch: int or None. Rounds of one Keras epoch. None for the
            algorithm's own if `horizon` is None; otherwise for 1, or in `fit`
            with `total_steps` for as many as take 1,000 steps. Defaults to
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

    _shown = "horizon passes batch_size scale_rewards rounds_per_epoch"
    scaler: RewardScaler | None = None
    valid_rows = np.empty(0, np.intp)
    _trajectory: Trajectory | None = None

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
        arguments.check_positive(
            **arguments.present(
                horizon=horizon,
                passes=passes,
                rounds_per_epoch=rounds_per_epoch,
                sequence_length=sequence_length,
                batch_size=None if batch_size == "auto" else batch_size,
            )
        )
        arguments.check_flag(**arguments.present(scale_rewards=scale_rewards))
        if horizon and sequence_length and horizon % sequence_length:
            raise ValueError(
                f"Expected `sequence_length` to divide `horizon`, "
                f"{horizon}. Received: sequence_length={sequence_length}"
            )
        # The algorithm replaces None; a batch of 0 is the whole rollout.
        size: Any = None if batch_size == "auto" else batch_size or 0
        self._arguments = {
            "horizon": horizon,
            "passes": passes,
            "batch_size": size,
            "rounds_per_epoch": rounds_per_epoch,
            "scale_rewards": scale_rewards,
        }
        self._open_settings = [
            name for name, value in self._arguments.items() if value is None
        ]
        if horizon and not rounds_per_epoch:
            self._open_settings.remove("rounds_per_epoch")
        super().__init__(
            env, rounds_per_epoch=rounds_per_epoch or 1, **settings
        )
        self.sequence_length = sequence_length
        self._check_size(horizon, size)
        if horizon and passes and size is not None:
            self._set_round(horizon, passes, size)
        self._statistics: dict[str, float] = {}
        self.shuffle = np.random.default_rng(self._sampling_seed)

    def _check_size(self, horizon: int | None, batch_size: int | None) -> None:
        """Raises an error for minibatches that are larger than a rollout."""
        steps = (horizon or 0) * self.env.num_envs
        if horizon and (batch_size or 0) > steps:
            raise self._refused(
                "Expected `batch_size` to be at most the rollout, horizon x "
                f"environments = {horizon} x {self.env.num_envs} = {steps}. "
                f"Received: batch_size={batch_size}"
            )

    def settle(self, algorithm: RolloutAgent) -> None:
        """Sets the arguments left open to the defaults of an agent's class."""
        rollout = algorithm.own_rollout(self.env.observation_space)
        horizon, passes, batch_size, _, scales = self._arguments.values()
        if horizon is None:
            horizon = self._own_horizon(rollout, algorithm.whole_episodes)
        if "rounds_per_epoch" in self._open_settings:
            self.rounds_per_epoch = rollout.rounds_per_epoch
        if batch_size is None:
            num_envs = self.env.num_envs
            batch_size = rollout.minibatch(horizon * num_envs, num_envs)
        self.scale_rewards = arguments.given_or(scales, rollout.scale_rewards)
        passes = arguments.given_or(passes, rollout.passes)
        self._set_round(horizon, passes, batch_size)

    def _own_horizon(self, rollout: OwnRollout, whole_episodes: bool) -> int:
        """Returns an algorithm's own horizon, fitted to the other arguments."""
        num_envs, batch_size = self.env.num_envs, self._arguments["batch_size"]
        if whole_episodes:
            steps = self.env.max_episode_steps or _LONG_EPISODE
        else:
            steps = rollout.horizon(num_envs)
            steps = max(steps, -(-(batch_size or 0) // num_envs))
        # The horizon consists of whole sequences.
        length = self.sequence_length or 1
        return -(-steps // length) * length

    def _set_round(self, horizon: int, passes: int, batch_size: int) -> None:
        """Sets the number of steps and updates of a round."""
        steps = horizon * self.env.num_envs
        self.horizon = horizon
        self.passes = passes
        self.steps_per_round = steps
        self.batch_size = batch_size or steps
        self.minibatches = -(-steps // self.batch_size)
        self.updates_per_round = passes * self.minibatches

    @property
    def fewest_steps_per_round(self) -> int:
        """Minimum steps of a round: whole episodes may end at once."""
        if self.agent is not None and self.agent.whole_episodes:
            return self.env.num_envs
        return self.steps_per_round

    def rounds_of_epoch(self, needed: int) -> int:
        """Returns the rounds of an epoch, in a `fit` of `needed` rounds."""
        passed = self._arguments
        if not passed["horizon"] or passed["rounds_per_epoch"]:
            return super().rounds_of_epoch(needed)
        fewest = -(-_STEPS_PER_EPOCH // self.steps_per_round)
        if needed <= fewest:
            return needed
        # The last epoch should be a whole one, too.
        return min(range(fewest, 2 * fewest), key=lambda each: -needed % each)

    def bind(self, agent: CollectingAgent) -> None:
        """Binds the dataset to an agent, checking that the two fit."""
        if not agent.on_policy:
            raise ValueError(
                "Expected a `keras_rl2.ReplayDataset` for "
                f"{type(agent).__name__}, which learns from past transitions. "
                f"Received: {type(self).__name__}"
            )
        super().bind(agent)
        if self.scaler is not None:
            self.scaler.gamma = float(agent.gamma)
        if self.source.runs_ahead:
            # The agent may allow another lag than at the last call.
            lag: int | None = getattr(agent, "max_lag", 0)
            self.source.rounds_ahead = (
                1 if lag is None else lag // self.updates_per_round
            )

    def _fit_to(self, agent: RolloutAgent) -> int | None:
        """Sets all that depends on the agent; changes nothing on error."""
        try:
            self.settle(agent)
            length = None
            if agent.policy.initial_state(1):
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
        self.scaler = None
        if self.scale_rewards:
            self.scaler = RewardScaler(agent.gamma, self.env.num_envs)
        return length

    def _settle_sequences(self) -> int:
        """Sets the minibatches of sequences, and returns their length."""
        length = self.sequence_length or largest_divisor(
            self.horizon, _LONGEST_SEQUENCE
        )
        steps = self.batch_size
        if "batch_size" in self._open_settings:
            sequences = max(steps // length, _FEWEST_SEQUENCES)
            steps = min(sequences * length, self.steps_per_round)
        if steps % length:
            raise ValueError(
                "Expected `batch_size` to be a multiple of the steps of a "
                f"sequence, {length}. Received: batch_size={steps}"
            )
        self._set_round(self.horizon, self.passes, steps)
        return length

    def prepare(self, trajectory: Trajectory | None) -> Samples:
        """Returns samples, with scaled rewards, and their minibatches."""
        with self._section("preparing"):
            trajectory = self._scaled(trajectory)
            self._samples, self._statistics = self._bound_agent().prepare(
                trajectory
            )
            rows, weight = self._minibatch_rows(trajectory)
            return {"samples": self._samples, "rows": rows, "weight": weight}

    def pack(self, trajectory: Trajectory) -> Samples:
        """Returns the arrays of a rollout itself, with scaled rewards.

        Args:
            trajectory: `Trajectory`, as returned by `collect`.

        Returns:
            dict; see `Trajectory.packed_arrays`.
        """
        with self._section("preparing"):
            trajectory = self._scaled(trajectory)
            # Some environments reset within the last step of an episode.
            return trajectory.packed_arrays(not self.env.masks_reset_rows)

    def _scaled(self, trajectory: Trajectory | None) -> Trajectory:
        """Keeps a rollout as the last one, with scaled rewards."""
        assert trajectory is not None
        self._samples, self._trajectory = {}, None
        self.source.rounds_given += 1
        if self.scaler is not None:
            reward = self.scaler.scale_rollout(
                trajectory.reward, trajectory.ended, trajectory.valid
            )
            trajectory = dataclasses.replace(trajectory, reward=reward)
        self._trajectory = trajectory
        self.valid_rows = np.flatnonzero(trajectory.valid)
        return trajectory

    def take_round(self, statistics: dict[str, float]) -> None:
        """Receives the statistics of a round in the graph."""
        self._samples, self._trajectory = {}, None
        self._statistics = statistics
        self.source.rounds_given += 1
        self._bound_agent().env_steps += self.steps_per_round

    def _minibatch_rows(
        self, trajectory: Trajectory
    ) -> tuple[np.ndarray, np.ndarray]:
        """Distributes steps, or sequences of steps, to minibatches."""
        length = self.source.collector.sequence_length
        distribute = functools.partial(
            shuffled_rows,
            generator=self.shuffle,
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

    def _cut(self, envs: np.ndarray) -> None:
        """Marks episodes that were interrupted before the next step."""
        if self.scaler is not None:
            self.scaler.begin(envs)

    @property
    def samples(self) -> dict[str, Any]:
        """Samples of the last round `[T * B, ...]`, as prepared."""
        if not self._samples and self._trajectory is not None:
            self._samples, _ = self._bound_agent().prepare(self._trajectory)
        return self._samples

    def valid_samples(self, key: str) -> Any:
        """Returns one of `samples` for steps that are transitions, `[V, ...]`.

        In the order of the sequences for a recurrent agent.
        """
        assert self._trajectory is not None
        valid = self._trajectory.valid
        length = self.source.collector.sequence_length
        counted = (
            valid.ravel() if length is None else as_sequences(valid, length)
        )
        return map_leaves(lambda array: array[counted], self.samples[key])

    def logs(self) -> dict[str, float]:
        """Returns means of the last 100 episodes, and the last statistics."""
        return {**super().logs(), **self._statistics}

    @property
    def outliers(self) -> dict[str, Outliers]:
        """Outliers left out of running statistics, by their key in the logs."""
        found = super().outliers
        if self.scaler is not None:
            found["clipped_rewards"] = self.scaler.outliers
        return found

    def get_state(self, log: SegmentLog | None = None) -> dict[str, Any]:
        """Returns the state that later rollouts depend on, as plain data."""
        return {
            **super().get_state(log),
            "shuffle": self.shuffle.bit_generator.state,
            "scaler": self.scaler.get_state() if self.scaler else {},
        }

    def set_state(
        self, state: dict[str, Any], log: SegmentLog | None = None
    ) -> None:
        """Restores the state returned by `get_state`, after `bind`."""
        super().set_state(state, log)
        self.shuffle.bit_generator.state = state["shuffle"]
        if self.scaler is not None and state["scaler"]:
            self.scaler.set_state(state["scaler"])

    def _element_spec(self) -> dict[str, Any]:
        """Returns shapes and dtypes of the minibatches of a round."""
        length = self.source.collector.sequence_length
        shape = (self.updates_per_round, self.batch_size // (length or 1))
        one_sample = self._bound_agent().sample_spec(length)
        weight = shape if length is None else (*shape, length)
        return {
            **tensor_specs(one_sample, *shape),
            "weight": tf.TensorSpec(weight, "float32"),
        }


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
    # Rows without a sample take the last number of each pass, 0.
    order = np.zeros((passes, len(valid) + 1), np.int32)
    for one_pass in order:
        one_pass[:-1] = generator.permutation(valid)
    # [M, batch]: each minibatch takes every M-th sample.
    place = np.arange(minibatches * batch_size).reshape(-1, minibatches).T
    # [passes, M, batch] -> [passes * M, batch]
    rows = order[:, np.minimum(place, len(valid))].reshape(-1, batch_size)
    weight = np.tile(place < len(valid), (passes, 1))
    return rows, weight.astype(np.float32)
