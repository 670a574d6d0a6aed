"""Experience replay for off-policy agents."""

import functools
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import SupportsFloat
from typing import Unpack

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from keras_rl2.basics import arguments
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.collecting.collector import StepNoise
from keras_rl2.collecting.policy_actor import Actor
from keras_rl2.collecting.random_actor import MaskedRandomActor
from keras_rl2.collecting.random_actor import allowed_choice_from
from keras_rl2.collecting.random_actor import random_actions
from keras_rl2.collecting.random_actor import random_actor
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.data.collecting_dataset import CollectingDataset
from keras_rl2.data.collecting_dataset import EnvironmentArguments
from keras_rl2.data.hindsight import Hindsight
from keras_rl2.data.prioritized_replay_buffer import PrioritizedReplayBuffer
from keras_rl2.data.prioritized_sequence_replay_buffer import (
    PrioritizedSequenceReplayBuffer,
)
from keras_rl2.data.replay_buffer import ReplayBuffer
from keras_rl2.data.replay_buffer import Transform
from keras_rl2.data.replay_buffer import into_minibatches
from keras_rl2.data.replay_buffer import transformed
from keras_rl2.data.round_dataset import Samples
from keras_rl2.data.round_dataset import largest_divisor
from keras_rl2.data.round_dataset import tensor_specs
from keras_rl2.data.round_dataset import updates_within
from keras_rl2.data.sequence_replay_buffer import SequenceReplayBuffer
from keras_rl2.distributions import DiscreteHead
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.policies.agent_protocols import ReplayAgent
from keras_rl2.policies.agent_protocols import refuse_on_policy
from keras_rl2.saving.checkpoint_folder import SegmentLog
from keras_rl2.spaces.supported import is_masked
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.updates.rollout_samples import state_spec

# Default environment steps of a round and of an epoch.
_STEPS_PER_ROUND = 64
_STEPS_PER_EPOCH = 1024
# Defaults of sequences.
_LENGTH = 32
_BURN_IN = 8
_SEQUENCES = 16


class ReplayDataset(CollectingDataset):
    """Past transitions, drawn at random as minibatches for `fit`.

    Each round takes `steps_per_round` steps with the current policy, stores
    them in a replay buffer, and then draws `updates_per_round` minibatches from
    it. Before the first round, `warm_up` steps are taken at random (by the
    policy itself, if the agent has been trained before or is recurrent).

    `steps_per_round=1` alternates between one step and its updates, as in
    papers. Longer rounds do the same work in fewer calls; the default makes 64
    steps and their updates at once. The transitions drawn are then up to one
    round older, which is negligible for a buffer of thousands of transitions.

    Args:
        capacity: int. Transitions that are held, of all environments together.
            On Linux, the available memory is checked first. Defaults to
            `1_000_000`.
        batch_size: int or `"auto"`. Transitions of one minibatch; `"auto"` for
            the algorithm's own. Defaults to `"auto"`.
        steps_per_round: int or None. Environment steps of a round, of all
            environments together, a multiple of their number; None for 64, or
            the next multiple. Defaults to `None`.
        updates_per_round: int or None. Updates of a round; None for the
            algorithm's own, for example one per step. Defaults to `None`.
        warm_up: int. Random steps before the first round, rounded up to whole
            rounds. Defaults to `1000`.
        n_step: int. Rewards that a transition adds up before it bootstraps.
            Defaults to `1`.
        prioritized: bool. Whether transitions, or the sequences of a recurrent
            agent, are drawn in proportion to their last TD errors. The TD
            errors of a round are fed back after it.
            Defaults to `False`.
        alpha: float. Exponent of the priorities. Defaults to `0.6`.
        beta: float, or a function from the number of minibatches drawn to one.
            Share of the bias that `weight` corrects. Defaults to `0.4`.
        rounds_per_epoch: int or None. Rounds of one Keras epoch; None for
            about 1000 steps. Defaults to `None`.
        seed: int or None. Seeds environments, acting and drawing. Defaults to
            `None`.
        rounds_ahead: int or None. Rounds that workers may collect ahead, with
            the current weights, while updates of earlier rounds run: with 0,
            either workers or updates wait; with more, the ratio of updates to
            steps stays the same. None for 1 with `workers`. Defaults to
            `None`.
        sequence_length: int or None. For a recurrent agent: transitions that
            are trained as one sequence, through which gradients flow back;
            `batch_size` then counts sequences, 16 at most by default. None for
            32. Defaults to `None`.
        burn_in: int or None. For a recurrent agent: steps before the sequence,
            which bring the recurrent state up to date with the current
            weights. None for 8. Defaults to `None`.
        transform: sequence of functions of a drawn minibatch and a view of the
            stored steps, which return the changed minibatch; see
            `keras_rl2.data.ReplayBuffer`. Defaults to `()`.
        hindsight: `keras_rl2.Hindsight` or None. Replaces goals by those that
            episodes have reached, before all of `transform`; not for a
            recurrent agent. Defaults to `None`.

    Attributes:
        buffer: `ReplayBuffer`. None until the dataset is bound to an agent.

    Raises:
        ValueError: If a number is out of bounds, or the numbers do not fit each
            other or the environment.

    Example:

    >>> import keras_rl2 as rl
    >>> replay = ReplayDataset("CartPole-v1", capacity=1000, batch_size=32,
    ...                        warm_up=64, n_step=3, seed=0)
    >>> agent = rl.DQN.for_env("CartPole-v1", seed=0)
    >>> batches = replay.as_dataset(agent)
    >>> replay.refresh()
    >>> batch = next(iter(batches))
    >>> batch["observation"].shape
    TensorShape([32, 4])
    >>> sorted(batch)
    ['action', 'discount', 'next_observation', 'observation', 'reward',
     'weight']
    >>> replay.sample(5)["reward"].shape
    (5,)
    """

    _shown = (
        "capacity batch_size steps_per_round updates_per_round warm_up n_step "
        "rounds_per_epoch"
    )
    buffer: Any = None
    # TD errors [updates, batch] of a round's minibatches, NaN for those not
    # trained on. The compiled updates write to it, the only way out of the
    # graph in the middle of a round.
    _td_errors: tf.Variable | None = None
    # Numbers of these transitions, until the errors have been read.
    _awaited: np.ndarray | None = None

    @refusing_unknown
    def __init__(
        self,
        env: GivenEnv,
        capacity: int = 1_000_000,
        batch_size: int | str = "auto",
        *,
        steps_per_round: int | None = None,
        updates_per_round: int | None = None,
        warm_up: int = 1000,
        n_step: int = 1,
        prioritized: bool = False,
        alpha: float = 0.6,
        beta: float | Callable[[int], SupportsFloat] = 0.4,
        rounds_per_epoch: int | None = None,
        rounds_ahead: int | None = None,
        sequence_length: int | None = None,
        burn_in: int | None = None,
        transform: Sequence[Transform] = (),
        hindsight: Hindsight | None = None,
        **settings: Unpack[EnvironmentArguments],
    ) -> None:
        arguments.check_positive(
            capacity=capacity,
            batch_size=1 if batch_size == "auto" else batch_size,
            n_step=n_step,
            **arguments.present(
                steps_per_round=steps_per_round,
                updates_per_round=updates_per_round,
                rounds_per_epoch=rounds_per_epoch,
                sequence_length=sequence_length,
            ),
        )
        arguments.check_at_least(
            0,
            warm_up=warm_up,
            **arguments.present(rounds_ahead=rounds_ahead, burn_in=burn_in),
        )
        arguments.check_flag(prioritized=prioritized)
        kind = "None or a keras_rl2.Hindsight"
        arguments.check_has(
            kind, "relabelled", **arguments.present(hindsight=hindsight)
        )
        self.capacity, self.warm_up, self.n_step = capacity, warm_up, n_step
        self.prioritized, self.alpha, self.beta = prioritized, alpha, beta
        self.sequence_length, self.burn_in = sequence_length, burn_in
        self.transform, self.hindsight = tuple(transform), hindsight
        super().__init__(env, **settings)
        if hindsight is not None:
            try:
                self.transform = (hindsight.transform(self.env), *transform)
            except ValueError as error:
                raise self._refused(str(error)) from error
        if self.source.runs_ahead:
            self.source.rounds_ahead = arguments.given_or(rounds_ahead, 1)
        self._set_round(
            batch_size, updates_per_round, steps_per_round, rounds_per_epoch
        )

    def _set_round(
        self,
        batch_size: int | str,
        updates: int | None,
        steps: int | None,
        rounds: int | None,
    ) -> None:
        """Sets the numbers of a round that are known."""
        # The algorithm replaces 0 by its own number.
        self.batch_size = 0 if batch_size == "auto" else int(batch_size)
        self.updates_per_round = updates or 0
        self._open_settings = [
            name
            for name in ("batch_size", "updates_per_round")
            if not getattr(self, name)
        ]
        envs = self.env.num_envs
        self.steps_per_round = steps or -(-_STEPS_PER_ROUND // envs) * envs
        self.horizon = self.steps_per_round // envs
        self.rounds_per_epoch = rounds or max(
            _STEPS_PER_EPOCH // self.steps_per_round, 1
        )
        if self.steps_per_round % envs:
            raise self._refused(
                "Expected `steps_per_round` to be a multiple of the number of "
                f"environments, {envs}. "
                f"Received: steps_per_round={self.steps_per_round}"
            )

    @property
    def steps_before_first_round(self) -> int:
        """Remaining steps of the warm-up."""
        held = 0 if self.buffer is None else self.buffer.steps
        missing = max(self.warm_up - held, 0)
        return -(-missing // self.steps_per_round) * self.steps_per_round

    def bind(self, agent: Any) -> None:
        """Binds the dataset to an agent and makes the buffer, once.

        Another agent may continue with the transitions of the first one, if its
        `gamma` is the same.

        Args:
            agent: `keras_rl2.Agent`. Acts and learns.
        """
        if agent.on_policy:
            refuse_on_policy(agent, self)
        if agent is self.agent:
            # Its `gamma` may have been changed since.
            _check_fits(self.buffer, agent)
        super().bind(agent)
        if self._td_errors is not None:
            # It is told each time: it may have learned from another dataset in
            # between.
            agent.keep_td_errors(self._td_errors)

    def _fit_to(self, agent: ReplayAgent) -> int | None:
        """Sets everything that depends on a new agent."""
        sizes = self._sequence_sizes(agent)
        if self.buffer is not None:
            _check_fits(self.buffer, agent)
        # The TD errors are those of the previous agent.
        self._feed_back()
        self.settle(agent)
        if "batch_size" in self._open_settings and sizes is not None:
            # The minibatches are of sequences.
            self.batch_size = max(min(self.batch_size // 4, _SEQUENCES), 1)
        if self.buffer is None:
            self.buffer = self._make_buffer(agent, sizes)
        buffer = self.buffer
        self._updates_per_call = updates_within(
            self.updates_per_round, buffer.spec, self.batch_size
        )
        if self.prioritized:
            shape = (self._updates_per_call, self.batch_size)
            with agent.devices.placement():
                self._td_errors = tf.Variable(
                    tf.fill(shape, np.nan), trainable=False
                )
        return (
            buffer.stride if isinstance(buffer, SequenceReplayBuffer) else None
        )

    def _sequence_sizes(self, agent: ReplayAgent) -> dict[str, int] | None:
        """Returns the sizes of sequences, or None without recurrence."""
        length, burn_in = self.sequence_length, self.burn_in
        if not agent.policy.initial_state(1):
            if length is not None or burn_in is not None:
                raise ValueError(
                    "Expected `sequence_length=None` and `burn_in=None` for an "
                    "agent that is not recurrent. Received: "
                    f"sequence_length={length}, burn_in={burn_in}"
                )
            return None
        if self.hindsight is not None:
            raise ValueError(
                "Expected `hindsight=None` for a recurrent agent, whose "
                "sequences may have several goals. Received: "
                f"hindsight={self.hindsight.get_config()}"
            )
        length = arguments.given_or(length, _LENGTH)
        return {
            "sequence_length": length,
            "burn_in": arguments.given_or(burn_in, _BURN_IN),
            # About two starts in the length of a sequence, as published.
            "stride": largest_divisor(self.horizon, length // 2),
        }

    def settle(self, algorithm: ReplayAgent) -> None:
        """Sets the arguments left open to the defaults of an agent's class."""
        if "batch_size" in self._open_settings:
            self.batch_size = min(algorithm.default_batch_size, self.capacity)
        if "updates_per_round" in self._open_settings:
            updates = round(algorithm.updates_per_step * self.steps_per_round)
            self.updates_per_round = max(updates, 1)

    def _make_buffer(
        self, agent: ReplayAgent, sizes: dict[str, int] | None
    ) -> ReplayBuffer:
        """Makes the buffer for an agent's transitions."""
        kind: type[ReplayBuffer] = ReplayBuffer
        settings: dict[str, Any] = {}
        if self.prioritized:
            kind = PrioritizedReplayBuffer
            settings = {"alpha": self.alpha, "beta": self.beta}
        if sizes is not None:
            kind = (
                PrioritizedSequenceReplayBuffer
                if self.prioritized
                else SequenceReplayBuffer
            )
            state = state_spec(agent.policy.collecting)
            settings |= {**sizes, "state": state}
        head = agent.policy.head
        return kind(
            self.capacity,
            self.env.num_envs,
            agent.policy.observation_spec,
            tuple(head.action_shape),
            head.action_dtype,
            n_step=self.n_step,
            gamma=agent.gamma,
            seed=int(self._sampling_seed.generate_state(1)[0]),
            **settings,
        )

    def collect(self) -> Trajectory:
        """Stores the steps of a round, after the warm-up; see the base."""
        buffer, _ = self.buffer, self._bound_agent()
        self._feed_back()
        self.fill(self.steps_before_first_round)
        trajectory = super().collect()
        buffer.extend(trajectory)
        self.source.rounds_given += 1
        while not len(buffer):
            # There are too few steps for a transition of several.
            self.fill(max(self.warm_up, self.steps_per_round))
        return trajectory

    def prepare(self, trajectory: Trajectory | None) -> Samples:
        """Draws the minibatches of a round from all that is stored."""
        del trajectory
        with self._section("preparing"):
            return self._in_parts(self._draw)

    def take_rounds(self, trajectory: Trajectory) -> None:
        """Stores the steps of rounds in the graph."""
        self._receive(trajectory)
        rounds = trajectory.reward.size // self.steps_per_round
        self.source.rounds_given += rounds
        self.buffer.extend(trajectory)

    def fill(self, steps: int) -> None:
        """Collects steps into the buffer without any updates.

        The steps are random. They are the policy's if the agent has been
        trained or is recurrent, since random steps have no recurrent state.

        Args:
            steps: int. Environment steps, rounded up to whole rounds.
        """
        agent, buffer = self._bound_agent(), self.buffer
        # Workers began these rollouts earlier; the buffer lacks them.
        under_way = self.source.rollouts_under_way()
        while steps > 0 and (trajectory := next(under_way, None)) is not None:
            self._receive(trajectory)
            buffer.extend(trajectory)
            steps -= self.steps_per_round
        # A variable on several devices cannot be read as one number.
        updates = int(np.asarray(agent.updates))
        trained = updates > 0 or agent.policy.initial_state(1)
        for _ in range(-(-steps // self.steps_per_round)):
            if trained:
                buffer.extend(super().collect())
            else:
                buffer.extend(self._collect_at_random())

    def _collect_at_random(self) -> Trajectory:
        """Collects the steps of a round with uniformly random actions."""
        agent = self._bound_agent()
        agent.begin_round()
        head, generator = agent.policy.head, self.source.noise
        shape = (self.horizon, self.env.num_envs)
        actor: Actor = random_actor
        noise: StepNoise
        if not is_masked(self.env.observation_space):
            noise = random_actions(head, generator, shape)
        elif isinstance(head, DiscreteHead):
            noise = generator.random((*shape, head.n))
            actor = functools.partial(allowed_choice_from, head.start)
        else:
            # The masks are only known step by step.
            noise, actor = np.zeros(shape), MaskedRandomActor(head, generator)
        with self._collecting():
            trajectory = self.source.collect_by(actor, noise, self.stopwatch)
            self._receive(trajectory)
        return trajectory

    def _cut(self, envs: np.ndarray) -> None:
        """Marks episodes that were interrupted before the next step."""
        if self.buffer is not None:
            self.buffer.cut(envs)

    def sample(self, batch_size: int) -> dict[str, Any]:
        """Draws one minibatch; see `ReplayBuffer.sample`.

        Args:
            batch_size: int. Transitions, M.

        Returns:
            dict with `weight` `[M]` float32 too.
        """
        self._bound_agent()
        batch: dict[str, Any] = self.buffer.sample(batch_size)
        batch.setdefault("weight", np.ones(batch_size, np.float32))
        return transformed(batch, self.transform, self.buffer)

    def update_priorities(
        self, index: npt.ArrayLike, td_error: npt.ArrayLike
    ) -> None:
        """Updates the priorities of transitions; `fit` calls it by itself.

        Args:
            index: `[M]` ints, of minibatches.
            td_error: `[M]` floats, of either sign.
        """
        self.buffer.update_priorities(index, td_error)

    def _draw(self) -> dict[str, Any]:
        """Draws the minibatches of a round."""
        updates, size = self.updates_per_call, self.batch_size
        self._feed_back()
        if self._td_errors is None:
            drawn = self.sample(updates * size)
            del drawn["index"]
            return into_minibatches(drawn, updates)
        # They are drawn one by one: the rows of a large one are ordered by age.
        parts = [self.sample(size) for _ in range(updates)]
        # [batch, ...] of each -> [updates, batch, ...]
        batches: dict[str, Any] = map_leaves(
            lambda *each: np.stack(each), *parts
        )
        batches["position"] = np.arange(updates, dtype=np.int32)
        self._awaited = batches["index"]
        self._td_errors.assign(tf.fill(self._td_errors.shape, np.nan))
        return batches

    def _feed_back(self) -> None:
        """Updates the priorities from the TD errors of the last round."""
        if self._td_errors is None or self._awaited is None:
            return
        td_errors = self._td_errors.numpy()
        known = np.isfinite(td_errors)
        index, self._awaited = self._awaited[known], None
        self.update_priorities(index, td_errors[known])

    def largest_return(self) -> float:
        """Returns a bound of the discounted returns in the buffer.

        Transforms may change them: there is none with any.
        """
        if self.transform:
            return np.inf
        return float(self.buffer.largest_return())

    def get_state(self, log: SegmentLog | None = None) -> dict[str, Any]:
        """Returns the state of `CollectingDataset` and the stored steps."""
        self._feed_back()
        buffer = None if self.buffer is None else self.buffer.get_state(log)
        return {**super().get_state(), "buffer": buffer}

    def set_state(
        self, state: dict[str, Any], log: SegmentLog | None = None
    ) -> None:
        """Restores the state returned by `get_state`, after `bind`."""
        self._bound_agent()
        if state["buffer"] is not None:
            self.buffer.set_state(state["buffer"], log)
        super().set_state(state)
        self._awaited = None
        self.ready = None

    def _element_spec(self) -> dict[str, Any]:
        """Returns shapes and dtypes of the minibatches of a round."""
        leading = (self.updates_per_call, self.batch_size)
        batches: dict[str, Any] = tensor_specs(self.buffer.spec, *leading)
        if self.prioritized:
            batches["index"] = tf.TensorSpec(leading, "int64")
            batches["position"] = tf.TensorSpec(leading[:1], "int32")
        return batches


def _check_fits(buffer: ReplayBuffer, agent: ReplayAgent) -> None:
    """Raises unless an agent can learn from the stored transitions."""
    if buffer.gamma != agent.gamma:
        raise ValueError(
            "Expected an agent with the discount factor that stored "
            f"returns were summed with, gamma={buffer.gamma}. "
            f"Received: gamma={agent.gamma}"
        )
    spec = buffer.spec.get("state", ())
    received = state_spec(agent.policy.collecting)
    if spec != received:
        raise ValueError(
            f"Expected an agent with the stored recurrent state, {spec}. "
            f"Received: {received}"
        )
