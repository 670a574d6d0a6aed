"""A rollout in the graph: T steps of B environments by one loop."""

import abc
import math
import weakref
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.collecting.litert import for_environment
from keras_rl2.graph import noise
from keras_rl2.graph.graph_vector_env import Episodes
from keras_rl2.graph.graph_vector_env import GraphVectorEnv
from keras_rl2.policies.agent_protocols import ActingPolicy
from keras_rl2.policies.policy_function import actions
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.spaces.trees import with_leaves

# Episodes whose returns are kept, as many as the logs average.
WINDOW = 100


class Totals(NamedTuple):
    """Returns and lengths of the episodes in progress.

    Attributes:
        episode_return: `[B]` float32. Sum of rewards so far.
        episode_length: `[B]` float32. Steps so far.
    """

    episode_return: Tensor
    episode_length: Tensor


class GraphRollout(NamedTuple):
    """A rollout, as tensors.

    Attributes:
        observation: `[T, B, ...]`. Observations before each step.
        next_observation: `[T, B, ...]`. Observations after each step, before
            new episodes begin.
        action: `[T, B, ...]`. The policy's own actions.
        reward: `[T, B]` float32.
        terminated: `[T, B]` bool.
        truncated: `[T, B]` bool.
        episode_return: `[T, B]` float32. Sum of the rewards of the episode.
        episode_length: `[T, B]` float32. Its steps.
    """

    observation: Any
    next_observation: Any
    action: Tensor
    reward: Tensor
    terminated: Tensor
    truncated: Tensor
    episode_return: Tensor
    episode_length: Tensor

    @property
    def ended(self) -> Tensor:
        """Whether steps are the last of their episode, `[T, B]` bool."""
        return self.terminated | self.truncated


def roll_out(
    agent: ActingPolicy,
    env: GraphVectorEnv,
    episodes: Episodes,
    totals: Totals,
    noise: Tensor,
) -> tuple[Episodes, Totals, GraphRollout]:
    """Takes T steps in each environment, from its current state.

    Args:
        agent: `ActingPolicy`. Chooses the actions.
        env: `GraphVectorEnv`. B environments.
        episodes: `Episodes`. Where they are.
        totals: `Totals` of the episodes in progress.
        noise: `[T, B, n]` float32. Noise of the actions.
    """
    horizon = noise.shape[0]
    spec = action_spec(env.single_action_space)

    def step(
        t: Tensor, episodes: Episodes, totals: Totals, arrays: Any
    ) -> tuple[Any, ...]:
        outputs = actions(agent, episodes.observation, noise[t])
        action = for_environment(spec, outputs)
        after, transition = env.advance(episodes, action)
        totals = Totals(
            totals.episode_return + transition.reward,
            totals.episode_length + 1.0,
        )
        row = GraphRollout(
            episodes.observation,
            transition.observation,
            outputs[0],
            *transition[1:],
            *totals,
        )
        arrays = [
            array.write(t, each)
            for array, each in zip(arrays, leaves(tuple(row)), strict=True)
        ]
        goes_on = ops.cast(~row.ended, "float32")
        totals = Totals(*(each * goes_on for each in totals))
        return t + 1, after, totals, arrays

    row = _form_of_row(agent, episodes, totals, noise)
    arrays = [
        tf.TensorArray(each.dtype, horizon, element_shape=each.shape)
        for each in leaves(tuple(row))
    ]
    _, episodes, totals, arrays = tf.while_loop(
        lambda t, *_: t < horizon,
        step,
        (0, episodes, totals, arrays),
        maximum_iterations=horizon,
    )
    stacked = with_leaves(tuple(row), [array.stack() for array in arrays])
    return episodes, totals, GraphRollout(*stacked)


def _form_of_row(
    agent: ActingPolicy, episodes: Episodes, totals: Totals, noise: Tensor
) -> GraphRollout:
    """Returns shapes and dtypes of a row, without running anything."""
    observation = episodes.observation
    act = tf.function(
        lambda: actions(agent, observation, noise[0])[0], autograph=False
    )
    action = act.get_concrete_function().structured_outputs
    flag = tf.TensorSpec(totals.episode_return.shape, "bool")
    outcome = totals.episode_return, flag, flag
    return GraphRollout(observation, observation, action, *outcome, *totals)


def last_episodes(rollout: GraphRollout) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the last episodes that ended, in the order of their ends.

    Returns:
        Number of episodes that ended, a scalar int32; and the returns and
        lengths of the last 100, or of T * B if they are fewer, `[E]` float32
        each, at the end of the array.
    """
    ended = tf.cumsum(tf.reshape(tf.cast(rollout.ended, "int32"), (-1,)))
    count = ended[-1]
    # The n-th end is the first step by which n episodes have ended.
    window = min(WINDOW, ended.shape[0])
    number = count - tf.range(window - 1, -1, -1)
    steps = tf.searchsorted(ended, number)
    steps = tf.minimum(steps, tf.size(ended) - 1)
    return (
        count,
        tf.gather(tf.reshape(rollout.episode_return, (-1,)), steps),
        tf.gather(tf.reshape(rollout.episode_length, (-1,)), steps),
    )


def first_not_finite(rollout: GraphRollout) -> Tensor:
    """Returns where numbers of a rollout are not finite.

    Returns:
        `[L]` int32, for each array of floats among the rewards and the
        observations after the steps: the first such number, of the flattened
        array; -1 where there is none.
    """
    found = []
    for array in leaves((rollout.reward, rollout.next_observation)):
        if not array.dtype.is_floating:
            continue
        bad = tf.reshape(~tf.math.is_finite(array), (-1,))
        first = tf.argmax(bad, output_type="int32")
        found.append(tf.where(tf.reduce_any(bad), first, -1))
    return tf.stack(found)


class RoundsInGraph(abc.ABC):
    """Base of classes that make rounds within a train function.

    Args:
        agent: `keras_rl2.Agent`. Acts and learns.
        dataset: `RolloutDataset` or `ReplayDataset` over a `GraphVectorEnv`.
            It is not kept alive.
    """

    def __init__(self, agent: Any, dataset: Any) -> None:
        self._agent = agent
        self._env: GraphVectorEnv = dataset.env.env
        self._horizon: int = dataset.horizon
        self._reference = weakref.ref(dataset)

    @property
    def is_ready(self) -> bool:
        """Whether the next round can be made."""
        return True

    @staticmethod
    @abc.abstractmethod
    def can_make(agent: Any, dataset: Any) -> bool:
        """Returns whether rounds of an agent can be made in the graph."""

    @abc.abstractmethod
    def begin(self, rounds: int) -> dict[str, Any]:
        """Returns the arguments of a call that makes the next rounds.

        Args:
            rounds: int. Number of rounds, K.

        Returns:
            dict of `inputs`, arrays `[K, ...]` of the rounds; and of `carried`,
            arrays that they pass on to each other.
        """

    @abc.abstractmethod
    def receive(self, reports: dict[str, np.ndarray]) -> None:
        """Receives the results of rounds, once the graph has made them.

        Args:
            reports: dict of float64 arrays `[K, ...]` of K rounds, from a call
                of the graph.
        """

    @abc.abstractmethod
    def settings(self) -> tuple[Any, ...]:
        """Returns the numbers and functions that the graph is made of."""

    def _leave_environments(self) -> None:
        """Begins rounds in the graph, from where the environments are."""
        source = self._dataset.source
        self._agent.begin_round()
        source.reset_if_needed()
        source.collector.leave()

    def _take_back(self, ended: np.ndarray, totals: np.ndarray) -> None:
        """Hands episodes back to the collector; see `Collector.take_back`."""
        collector = self._dataset.source.collector
        collector.take_back(self._env.observations, ended, totals)

    def _noise_inputs(
        self, rounds: int, generator: np.random.Generator
    ) -> dict[str, np.ndarray]:
        """Returns the inputs of noise that is drawn in the graph.

        Returns:
            dict of `seed` `[K, 2]` uint32, and of `noise` `[K, P]` float32, see
            `noise.noise_inputs`.
        """
        numbers = self._of_each_round(
            rounds, lambda: noise.noise_inputs(self._agent.policy.noise.parts)
        )
        return {
            "seed": draw_seeds(generator, rounds),
            "noise": np.array(numbers),
        }

    def _of_each_round(self, rounds: int, draw: Callable[[], Any]) -> list[Any]:
        """Returns the draws of each round, with its own number of steps.

        The agent is as it is at the beginning of each round but for its
        weights: draws may depend on `env_steps`.
        """
        agent, before, drawn = self._agent, self._agent.env_steps, []
        try:
            for _ in range(rounds):
                drawn.append(draw())
                agent.env_steps += self._horizon * self._env.num_envs
        finally:
            agent.env_steps = before
        return drawn

    @property
    def _dataset(self) -> Any:
        """The dataset, which lives as long as a `fit` on it."""
        return self._reference()

    def variables(self) -> list[tf.Variable]:
        """Returns the variables of the environments, in a fixed order."""
        return self._env.variables

    def _roll_out(
        self, totals: Tensor, drawn: Tensor
    ) -> tuple[Episodes, GraphRollout, dict[str, Tensor]]:
        """Takes the steps of a round from where the environments are.

        Args:
            totals: `[2, B]` float64. Returns and lengths of the episodes in
                progress.
            drawn: `[T, B, ...]` float32. Noise of the actions.
        """
        episodes, after, rollout = roll_out(
            self._agent.policy,
            self._env,
            self._env.read(),
            Totals(*tf.unstack(tf.cast(totals, "float32"))),
            drawn,
        )
        self._env.write(episodes)
        count, returns, lengths = last_episodes(rollout)
        report = {
            "bad": first_not_finite(rollout),
            "count": count,
            "episodes": tf.stack([returns, lengths]),
            "totals": tf.cast(tf.stack(after), "float64"),
        }
        return episodes, rollout, report

    def _refuse_not_finite(self, bad: np.ndarray) -> None:
        """Raises for a number that is not finite; see `first_not_finite`."""
        if (bad < 0).all():
            return
        names, sizes = ["reward"], [1]
        for path, spec in named_leaves(self._agent.policy.observation_spec):
            if np.issubdtype(spec.dtype, np.floating):
                names.append(f"observation {path}" if path else "observation")
                sizes.append(math.prod(spec.shape))
        which = int(np.argmax(bad >= 0))
        place, number = divmod(int(bad[which]), sizes[which])
        step, index = divmod(place, self._env.num_envs)
        raise ValueError(
            f"Expected a finite {names[which]} from every environment. "
            f"Received: one that is not, number {number} from environment "
            f"{index} of {self._env.name} at step {step} of the rollout. No "
            "weight has been changed by it."
        )


def ended_episodes(report: Mapping[str, np.ndarray]) -> np.ndarray:
    """Returns returns and lengths of the episodes of a round, `[2, E]`."""
    returns = report["episodes"]
    return returns[:, max(returns.shape[1] - int(report["count"]), 0) :]


def draw_seeds(generator: np.random.Generator, rounds: int) -> np.ndarray:
    """Draws a seed of each round, `[K, 2]` uint32."""
    return generator.integers(2**32, size=(rounds, 2), dtype="uint32")


def overrides(agent: object, *names: str) -> bool:
    """Returns whether a user's subclass changes one of an agent's methods."""
    return not all(
        getattr(type(agent), name).__module__.startswith("keras_rl2.")
        for name in names
    )
