"""Experience replay for off-policy agents."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple
from typing import SupportsFloat
from typing import Unpack
from typing import cast

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from keras_rl2.basics.arguments import check_at_least
from keras_rl2.basics.arguments import check_flag
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.arguments import given_or
from keras_rl2.basics.arguments import present
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.collecting.collector import MOST_RESTARTS
from keras_rl2.collecting.collector import StepNoise
from keras_rl2.collecting.policy_actor import Actor
from keras_rl2.collecting.random_actor import AllowedChoice
from keras_rl2.collecting.random_actor import MaskedRandomActor
from keras_rl2.collecting.random_actor import random_actions
from keras_rl2.collecting.random_actor import random_actor
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.data.collecting_dataset import CollectingDataset
from keras_rl2.data.collecting_dataset import EnvironmentArguments
from keras_rl2.data.prioritized_replay_buffer import PrioritizedReplayBuffer
from keras_rl2.data.replay_buffer import ReplayBuffer
from keras_rl2.data.replay_buffer import into_minibatches
from keras_rl2.data.round_dataset import Round
from keras_rl2.data.round_dataset import tensor_specs
from keras_rl2.data.sequence_replay_buffer import SequenceReplayBuffer
from keras_rl2.distributions import DiscreteHead
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.policies.agent_protocols import CollectingAgent
from keras_rl2.policies.agent_protocols import ReplayAgent
from keras_rl2.policies.agent_protocols import refuse_on_policy
from keras_rl2.saving.checkpoint_folder import SegmentLog
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.supported import is_masked
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.workers.worker_collector import WorkerCollector
from keras_rl2.workers.workers import Workers

if TYPE_CHECKING:
    from keras_rl2.graph.replay_rounds import ReplayRounds

logger = logging.getLogger(__name__)

# Default environment steps of a round and of an epoch.
_STEPS_PER_ROUND = 64
_STEPS_PER_EPOCH = 1024
# Defaults of sequences.
_LENGTH = 32
_BURN_IN = 8


class ReplayDataset(CollectingDataset[ReplayAgent]):
    """Past transitions, drawn at random as minibatches for `fit`.

    Each round takes `steps_per_round` steps with the current policy, stores
    them in a replay buffer, and then draws `updates_per_round` minibatches from
    it. Before the first round, `warm_up` steps are taken at random (by the
    policy itself, if the agent has been trained before).

    `steps_per_round=1` alternates between one step and its updates, as in
    papers. Longer rounds do the same work in fewer calls; the default makes 64
    steps and their updates at once. The transitions drawn are then up to one
    round older, which is negligible for a buffer of thousands of transitions.

    Args:
        capacity: int. Transitions that are held, of all environments together.
            The available memory is checked first. Defaults to `1_000_000`.
        batch_size: int or `"auto"`. Transitions of one minibatch; `"auto"` for
            the published value of the algorithm. Defaults to `"auto"`.
        steps_per_round: int or None. Environment steps of a round, of all
            environments together, a multiple of their number; None for 64, or
            the next multiple. Defaults to `None`.
        updates_per_round: int or None. Updates of a round; None for the
            published value of the algorithm, e.g. one per step. Defaults to
            `None`.
        warm_up: int. Random steps before the first round, rounded up to whole
            rounds. Defaults to `1000`.
        n_step: int. Rewards that a transition adds up before it bootstraps.
            Defaults to `1`.
        prioritized: bool. Whether transitions are drawn in proportion to their
            last TD errors. The TD errors of a round are fed back after it.
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
            `batch_size` then counts sequences. None for 32. Defaults to
            `None`.
        burn_in: int or None. For a recurrent agent: steps before the sequence,
            which bring the recurrent state up to date with the current
            weights. None for 8. Defaults to `None`.

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
        "capacity",
        "batch_size",
        "steps_per_round",
        "updates_per_round",
        "warm_up",
        "n_step",
        "rounds_per_epoch",
    )

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
        **settings: Unpack[EnvironmentArguments],
    ) -> None:
        self.capacity, self.warm_up, self.n_step = capacity, warm_up, n_step
        self.prioritized, self.alpha, self.beta = prioritized, alpha, beta
        self.sequence_length, self.burn_in = sequence_length, burn_in
        self._asked = _Asked(
            batch_size,
            steps_per_round,
            updates_per_round,
            rounds_per_epoch,
            given_or(rounds_ahead, int(settings.get("workers") is not None)),
        )
        self._check_numbers(settings.get("workers"))
        super().__init__(env, **settings)
        with self._closing_if_refused():
            self._set_round()
        self.buffer: ReplayBuffer | None = None
        self._feedback: TDErrorFeedback | None = None
        self._graph_rounds: ReplayRounds | None = None

    def _check_numbers(self, workers: Workers | None) -> None:
        """Checks the numbers before an environment is made."""
        asked = self._asked
        check_positive(
            capacity=self.capacity,
            batch_size=1 if asked.batch_size == "auto" else asked.batch_size,
            n_step=self.n_step,
            **present(
                steps_per_round=asked.steps_per_round,
                updates_per_round=asked.updates_per_round,
                rounds_per_epoch=asked.rounds_per_epoch,
                sequence_length=self.sequence_length,
            ),
        )
        check_at_least(
            0,
            warm_up=self.warm_up,
            rounds_ahead=asked.rounds_ahead,
            **present(burn_in=self.burn_in),
        )
        check_flag(prioritized=self.prioritized)
        if asked.rounds_ahead and workers is None:
            raise ValueError(
                "Expected `rounds_ahead` to be at least 0, and more only with "
                f"`workers`. Received: rounds_ahead={asked.rounds_ahead}, "
                "workers=None"
            )

    def _set_round(self) -> None:
        """Sets the numbers of a round that are known."""
        asked, envs = self._asked, self.env.num_envs
        self.steps_per_round = given_or(
            asked.steps_per_round, -(-_STEPS_PER_ROUND // envs) * envs
        )
        self.horizon = self.steps_per_round // envs
        self.rounds_per_epoch = given_or(
            asked.rounds_per_epoch,
            max(_STEPS_PER_EPOCH // self.steps_per_round, 1),
        )
        self._rounds_ahead = asked.rounds_ahead
        auto = asked.batch_size == "auto"
        self.batch_size = 0 if auto else int(asked.batch_size)
        self.updates_per_round = given_or(asked.updates_per_round, 0)
        if self.steps_per_round % envs:
            raise ValueError(
                "Expected `steps_per_round` to be a multiple of the number of "
                f"environments, {envs}. "
                f"Received: steps_per_round={self.steps_per_round}"
            )

    def own_settings(self) -> dict[str, Any]:
        """Returns the settings that the algorithm chose."""
        if self.agent is None:
            return {}
        own: dict[str, Any] = {}
        if self._asked.batch_size == "auto":
            own["batch_size"] = self.batch_size
        if self._asked.updates_per_round is None:
            own["updates_per_round"] = self.updates_per_round
        return own

    @property
    def steps_before_first_round(self) -> int:
        """Remaining steps of the warm-up."""
        held = 0 if self.buffer is None else self.buffer.steps
        missing = max(self.warm_up - held, 0)
        return -(-missing // self.steps_per_round) * self.steps_per_round

    def _accept(self, agent: CollectingAgent) -> ReplayAgent:
        """Returns the agent, checking that it learns from replay."""
        if not agent.on_policy:
            return cast(ReplayAgent, agent)
        refuse_on_policy(agent, self)

    def bind(self, agent: CollectingAgent) -> None:
        """Binds the dataset to an agent and makes the buffer, once.

        Another agent may continue with the transitions of the first one, if its
        `gamma` is the same.

        Args:
            agent: `keras_rl2.Agent`. Acts and learns.

        Raises:
            ValueError: If the agent learns from fresh rollouts only, or its
                networks or spaces do not fit those of the environment.
            MemoryError: If the machine lacks the memory.
        """
        super().bind(agent)
        if self._feedback is not None:
            # Each time, since it may have learned from another dataset in
            # between.
            self._bound_agent().keep_td_errors(self._feedback.td_errors)

    def _fit_to(self, agent: ReplayAgent) -> int | None:
        """Sets everything that depends on a new agent."""
        sizes = self._sequence_sizes(agent)
        if self.buffer is not None:
            _check_fits(self.buffer, agent)
        # To the priorities of the previous agent.
        self._feed_back()
        self._graph_rounds = None
        self.settle(agent)
        if self._asked.batch_size == "auto" and sizes is not None:
            # Of sequences.
            self.batch_size = max(self.batch_size // 4, 1)
        if self.prioritized:
            self._feedback = TDErrorFeedback(
                self.updates_per_round, self.batch_size
            )
        if self.buffer is None:
            self.buffer = self._make_buffer(agent, sizes)
        buffer = self.buffer
        return (
            buffer.stride if isinstance(buffer, SequenceReplayBuffer) else None
        )

    def _sequence_sizes(self, agent: ReplayAgent) -> dict[str, int] | None:
        """Returns the sizes of sequences, or None without recurrence."""
        length, burn_in = self.sequence_length, self.burn_in
        if not agent.initial_state(1):
            if length is not None or burn_in is not None:
                raise ValueError(
                    "Expected `sequence_length=None` and `burn_in=None` for an "
                    "agent that is not recurrent. Received: "
                    f"sequence_length={length}, burn_in={burn_in}"
                )
            return None
        length = given_or(length, _LENGTH)
        # About two starts in the length of a sequence, as published.
        stride = max(
            each
            for each in range(1, max(length // 2, 1) + 1)
            if self.horizon % each == 0
        )
        return {
            "sequence_length": length,
            "burn_in": given_or(burn_in, _BURN_IN),
            "stride": stride,
        }

    def settle(self, algorithm: ReplayAgent) -> None:
        """Sets the arguments left open to an algorithm's defaults.

        Args:
            algorithm: `keras_rl2.Agent`, or a subclass.
        """
        if self._asked.batch_size == "auto":
            self.batch_size = min(algorithm.default_batch_size, self.capacity)
        if self._asked.updates_per_round is None:
            updates = round(algorithm.updates_per_step * self.steps_per_round)
            self.updates_per_round = max(updates, 1)

    def _make_buffer(
        self, agent: ReplayAgent, sizes: dict[str, int] | None
    ) -> ReplayBuffer:
        """Makes the buffer for an agent's transitions."""
        kind: type[ReplayBuffer] = ReplayBuffer
        settings: dict[str, Any] = {}
        if sizes is not None:
            kind = SequenceReplayBuffer
            settings = {**sizes, "state": _state_spec(agent)}
        if self.prioritized:
            if sizes is not None:
                raise ValueError(
                    "Expected `prioritized=False` for a recurrent agent: "
                    "sequences are drawn uniformly. Received: prioritized=True"
                )
            kind = PrioritizedReplayBuffer
            settings = {"alpha": self.alpha, "beta": self.beta}
        head = agent.policy_head
        buffer = kind(
            self.capacity,
            self.env.num_envs,
            agent.observation_spec,
            tuple(head.action_shape),
            head.action_dtype,
            n_step=self.n_step,
            gamma=agent.gamma,
            seed=int(self._own_seed.generate_state(1)[0]),
            **settings,
        )
        logger.info(
            "A replay buffer of %d transitions takes %.1f MiB when full.",
            buffer.capacity,
            buffer.nbytes / 2**20,
        )
        return buffer

    def _bound_buffer(self) -> ReplayBuffer:
        """Returns the buffer, which exists once an agent is bound."""
        self._bound_agent()
        assert self.buffer is not None
        return self.buffer

    def collect(self) -> Trajectory | None:
        """Stores the steps of a round, after the warm-up.

        Returns:
            `Trajectory`; None where the train function takes the steps itself.

        Raises:
            ValueError: See `CollectingDataset.collect`.
        """
        buffer = self._bound_buffer()
        self._feed_back()
        self.fill(self.steps_before_first_round)
        trajectory = super().collect()
        if trajectory is None:
            return None
        buffer.extend(trajectory)
        self._rounds_given += 1
        for _ in range(MOST_RESTARTS):
            if len(buffer):
                break
            # A failure has discarded all steps of the warm-up.
            self.fill(max(self.warm_up, self.steps_per_round))
        return trajectory

    def prepare(self, trajectory: Trajectory | None) -> Round:
        """Draws the minibatches of a round from all that is stored.

        Args:
            trajectory: `Trajectory` or None, as returned by `collect`.

        Returns:
            dict; see `RoundDataset.prepare`.
        """
        with self._section("preparing"):
            if trajectory is None:
                return self._inputs_of_rounds()
            return {"batches": self._draw()}

    def graph_rounds(self) -> "ReplayRounds | None":
        """Returns the maker of rounds in the graph; see `RoundDataset`."""
        if not hasattr(self.env.env, "graph_env"):
            return None
        # Few trainings need it, and it is not small.
        from keras_rl2.graph.replay_rounds import ReplayRounds

        agent = self._bound_agent()
        buffer = self._bound_buffer()
        # Sequences, and draws by priorities, need Python.
        plain = type(buffer) is ReplayBuffer
        if (
            self._graph_rounds is None
            and plain
            and ReplayRounds.can_make(agent, buffer)
        ):
            self._graph_rounds = ReplayRounds(
                agent,
                self.env.env,
                self.horizon,
                self.updates_per_round,
                self.batch_size,
                self._receive_from_graph,
            )
        return self._graph_rounds

    def _inputs_of_rounds(self) -> dict[str, Any]:
        """Returns the inputs of the next rounds for the train function."""
        rounds = self.graph_rounds()
        assert rounds is not None
        self._present_actor().sync()
        noise, self._noise_state = rounds.noise(
            self._begin_in_graph(), self._noise, self._noise_state
        )
        in_progress = self._bound_collector().episodes.in_progress
        return {
            "inputs": rounds.inputs(noise, self._bound_buffer()),
            "carried": rounds.carried(in_progress, self._rounds_begun),
        }

    def _receive_from_graph(
        self,
        trajectory: Trajectory,
        ended: np.ndarray,
        in_progress: np.ndarray,
    ) -> None:
        """Stores the steps of rounds in the graph."""
        agent, collector = self._bound_agent(), self._bound_collector()
        collector.take_back(self.env.env.observations, ended, in_progress)
        agent.observe(trajectory)
        agent.env_steps += trajectory.reward.size
        self._rounds_given += trajectory.reward.size // self.steps_per_round
        self._look_for_ends(trajectory.reward.size)
        self._bound_buffer().extend(trajectory)

    def fill(self, steps: int) -> None:
        """Collects steps into the buffer without any updates.

        The steps are random. They are the policy's if the agent has been
        trained or is recurrent, since random steps have no recurrent state.

        Args:
            steps: int. Environment steps, rounded up to whole rounds.
        """
        agent, buffer = self._bound_agent(), self._bound_buffer()
        collector = self._bound_collector()
        while steps > 0 and self._begun_at:
            # Begun by workers earlier, and not yet in the buffer.
            trajectory = cast(WorkerCollector, collector).finish()
            self._receive(trajectory)
            buffer.extend(trajectory)
            steps -= self.steps_per_round
        # A variable on several devices cannot be read as one number.
        updates = int(np.asarray(agent.updates))
        trained = updates > 0 or agent.initial_state(1)
        for _ in range(-(-steps // self.steps_per_round)):
            if trained:
                buffer.extend(cast(Trajectory, super().collect()))
            else:
                buffer.extend(self._collect_at_random())

    def _collects_in_graph(self) -> bool:
        """Whether the train function takes the steps of the next round."""
        in_graph = super()._collects_in_graph()
        return in_graph and not self.steps_before_first_round

    def _collect_at_random(self) -> Trajectory:
        """Collects the steps of a round with uniformly random actions."""
        agent = self._bound_agent()
        agent.begin_round()
        head = agent.policy_head
        shape = (self.horizon, self.env.num_envs)
        actor: Actor = random_actor
        noise: StepNoise
        if not is_masked(self.env.observation_space):
            noise = random_actions(head, self._noise, shape)
        elif isinstance(head, DiscreteHead):
            noise = self._noise.random((*shape, head.n))
            actor = AllowedChoice(head.start)
        else:
            # The masks are only known step by step.
            noise, actor = np.zeros(shape), MaskedRandomActor(head, self._noise)
        self._begin()
        trajectory = self._bound_collector().collect(actor, noise)
        self._receive(trajectory)
        return trajectory

    def _cut(self, envs: np.ndarray, discarded: np.ndarray) -> None:
        """Marks episodes that were interrupted before the next step."""
        if self.buffer is not None:
            if discarded.any():
                self.buffer.discard_episodes(discarded)
            self.buffer.cut(envs)

    def sample(self, batch_size: int) -> dict[str, Any]:
        """Draws one minibatch; see `ReplayBuffer.sample`.

        Args:
            batch_size: int. Transitions, M.

        Returns:
            dict of `observation` `[M, ...]`, `action` `[M, ...]`, `reward`
            `[M]` float32, `discount` `[M]` float32, `next_observation`
            `[M, ...]`, `weight` `[M]` float32 and `index` `[M]` int64.

        Raises:
            ValueError: If nothing has been stored yet.
        """
        if self.buffer is None:
            raise ValueError(
                "Expected a ReplayDataset with stored transitions: call "
                "`bind(agent)` and `fill(steps)` first. Received: no buffer"
            )
        batch = self.buffer.sample(batch_size)
        batch.setdefault("weight", np.ones(batch_size, np.float32))
        return batch

    def update_priorities(
        self, index: npt.ArrayLike, td_error: npt.ArrayLike
    ) -> None:
        """Updates the priorities of transitions; `fit` calls it by itself.

        Args:
            index: `[M]` ints, of minibatches.
            td_error: `[M]` floats, of either sign.

        Raises:
            ValueError: If the dataset is not prioritized.
        """
        if not isinstance(self.buffer, PrioritizedReplayBuffer):
            raise ValueError(
                "Expected a ReplayDataset of `prioritized=True`, bound to an "
                f"agent. Received: prioritized={self.prioritized}"
            )
        self.buffer.update_priorities(index, td_error)

    def _draw(self) -> dict[str, Any]:
        """Draws the minibatches of a round."""
        updates, size = self.updates_per_round, self.batch_size
        if self._feedback is None:
            drawn = self.sample(updates * size)
            del drawn["index"]
            return into_minibatches(drawn, updates)
        # One by one, since rows of a large one would be ordered by age.
        parts = [self.sample(size) for _ in range(updates)]
        # [batch, ...] of each -> [updates, batch, ...]
        batches: dict[str, Any] = map_leaves(
            lambda *each: np.stack(each), *parts
        )
        batches["position"] = np.arange(updates, dtype=np.int32)
        self._feedback.expect(batches["index"])
        return batches

    def _feed_back(self) -> None:
        """Updates the priorities from the TD errors of the last round."""
        taken = self._feedback.take() if self._feedback else None
        if taken is not None:
            self.update_priorities(*taken)

    def logs(self) -> dict[str, float]:
        """Returns the mean of the last 100 episodes, and exploration rates."""
        return {**super().logs(), **self._bound_agent().exploration_logs()}

    def get_state(self, log: SegmentLog | None = None) -> dict[str, Any]:
        """Returns the state of `CollectingDataset` and the stored transitions.

        Args:
            log: `SegmentLog` or None. Receives the transitions stored since the
                last call, which are then not returned. Defaults to `None`.
        """
        self._feed_back()
        buffer = None if self.buffer is None else self.buffer.get_state(log)
        return {**super().get_state(), "buffer": buffer}

    def set_state(
        self, state: dict[str, Any], log: SegmentLog | None = None
    ) -> None:
        """Restores the state returned by `get_state`, after `bind`.

        Args:
            state: dict, as returned by `get_state`.
            log: `SegmentLog` or None. See `get_state`. Defaults to `None`.

        Raises:
            ValueError: If no agent is bound, or the state belongs to another
                buffer.
        """
        buffer = self._bound_buffer()
        if state["buffer"] is not None:
            buffer.set_state(state["buffer"], log)
        super().set_state(state)
        if self._feedback is not None:
            self._feedback.drop()
        self.ready = None

    def _element_spec(self) -> dict[str, Any]:
        """Returns shapes and dtypes of the minibatches of a round."""
        leading = (self.updates_per_round, self.batch_size)
        batches: dict[str, Any] = tensor_specs(
            self._bound_buffer().spec, *leading
        )
        if self.prioritized:
            batches["index"] = tf.TensorSpec(leading, "int64")
            batches["position"] = tf.TensorSpec(leading[:1], "int32")
        return batches


class _Asked(NamedTuple):
    """The arguments that have defaults of an algorithm or of the dataset."""

    batch_size: int | str
    steps_per_round: int | None
    updates_per_round: int | None
    rounds_per_epoch: int | None
    rounds_ahead: int


class TDErrorFeedback:
    """TD errors of the minibatches of one round.

    The compiled updates write them to a variable, the only way out of the graph
    in the middle of a round. They are read once, after the round.

    Args:
        updates: int. Minibatches of a round.
        batch_size: int. Transitions of each.

    Attributes:
        td_errors: `tf.Variable` `[updates, batch]` float32. The agent writes to
            it by the `position` of a minibatch.
        index: `[updates, batch]` int64. Numbers of the transitions of the next
            TD errors; None if no errors are expected.

    Example:

    >>> feedback = TDErrorFeedback(updates=2, batch_size=2)
    >>> feedback.expect(np.array([[7, 8], [9, 7]]))
    >>> row = feedback.td_errors[0].assign([0.5, -1.0])
    >>> index, td_error = feedback.take()
    >>> index.tolist(), td_error.tolist()
    ([7, 8], [0.5, -1.0])
    """

    def __init__(self, updates: int, batch_size: int) -> None:
        none = tf.fill((updates, batch_size), np.nan)
        self.td_errors: Any = tf.Variable(none, trainable=False)
        self.index: np.ndarray | None = None

    def expect(self, index: np.ndarray) -> None:
        """Sets the transitions that are trained on next.

        Args:
            index: `[updates, batch]` int64.
        """
        self.index = index
        self.td_errors.assign(tf.fill(self.td_errors.shape, np.nan))

    def take(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Returns the TD errors so far, and expects no more.

        Returns:
            Numbers of transitions `[M]` int64 and TD errors `[M]` float32,
            of the minibatches trained on; None if no errors were expected.
        """
        if self.index is None:
            return None
        td_errors = self.td_errors.numpy()
        # The others belong to minibatches that were not trained on.
        known = np.isfinite(td_errors)
        index, self.index = self.index[known], None
        return index, td_errors[known]

    def drop(self) -> None:
        """Expects no more errors."""
        self.index = None


def _state_spec(agent: ReplayAgent) -> tuple[ArraySpec, ...]:
    """Returns the specs of an agent's recurrent state of one environment."""
    return tuple(
        ArraySpec(each.shape[1:], each.dtype.name)
        for each in agent.initial_state(1)
    )


def _check_fits(buffer: ReplayBuffer, agent: ReplayAgent) -> None:
    """Checks that an agent can learn from the stored transitions.

    Args:
        buffer: `ReplayBuffer`. The buffer of another agent so far.
        agent: `ReplayAgent`, bound to its spaces.

    Raises:
        ValueError: If its `gamma` or its recurrent state differs.
    """
    if buffer.gamma != agent.gamma:
        raise ValueError(
            "Expected an agent with the discount factor that stored "
            f"returns were summed with, gamma={buffer.gamma}. "
            f"Received: gamma={agent.gamma}"
        )
    kept = buffer.spec.get("state", ())
    if kept != _state_spec(agent):
        raise ValueError(
            f"Expected an agent with the stored recurrent state, {kept}. "
            f"Received: {_state_spec(agent)}"
        )
