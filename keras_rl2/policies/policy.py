"""The policy of an agent: its task, its networks, and how it acts."""

import copy
import functools
import itertools
import operator
import types
import warnings
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Concatenate
from typing import ParamSpec
from typing import TypeVar

import gymnasium
import keras
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Dict
from keras import ops

from keras_rl2.basics import arguments
from keras_rl2.basics.direct_call import direct_call
from keras_rl2.basics.shapes import Tensor
from keras_rl2.collecting.checks import check_actions
from keras_rl2.collecting.checks import check_mask
from keras_rl2.collecting.litert import for_environment
from keras_rl2.distributions import PolicyHead
from keras_rl2.networks.inputs import has_memory
from keras_rl2.networks.inputs import run_memory
from keras_rl2.networks.sequences import Sequences
from keras_rl2.networks.sequences import of_one_step
from keras_rl2.networks.sequences import states_by_network
from keras_rl2.networks.task import Task
from keras_rl2.policies.actors import litert_policy
from keras_rl2.policies.policy_function import actions_and_log_prob
from keras_rl2.policies.policy_function import are_read
from keras_rl2.policies.policy_function import policy_function
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.batches import as_batch
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import is_leaf
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import with_leaves

Given = ParamSpec("Given")
Result = TypeVar("Result")

# Entry of a Dict that stands for the whole if it alone is read.
_OBSERVATION = "observation"
# Probabilities of the actions that are returned.
_CLIPPED = functools.partial(actions_and_log_prob, clipped=True)


def _of_agent(name: str) -> Any:
    """Returns a method of a policy that calls one of its agent."""

    def method(policy: Any, observation: Tree[Any], *rest: Any) -> Any:
        own = getattr(policy.agent, name)
        return own(policy.completed(observation), *rest)

    return method


class Policy(Task):
    """The policy of an agent, made when the agent is bound to its spaces.

    Whoever acts, records, evaluates or exports asks it. The agent's class
    defines how actions are chosen, and their noise.

    Attributes:
        agent: `keras_rl2.Agent`. `Task` describes the other attributes.

    Example:

    >>> import keras_rl2 as rl
    >>> agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    >>> agent.policy.observation_spec.shape, agent.policy.is_masked
    ((4,), False)
    """

    # Defined by the class of the agent.
    trainable_variables = property(
        operator.attrgetter("agent.trainable_variables")
    )
    sample_action = _of_agent("sample_action")
    greedy_action = _of_agent("greedy_action")
    distribution = _of_agent("distribution")
    noise = property(operator.attrgetter("agent.noise"))

    def __init__(
        self,
        agent: keras.Model,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
        head: PolicyHead,
        generator: np.random.Generator,
    ) -> None:
        super().__init__(observation_space, action_space, head)
        self.agent = agent
        self._generator = generator
        self._called: dict[tuple[bool, bool], Any] = {}
        self._told_of_state = False
        self._further: Sequence[keras.Model] = ()
        self._unread: Mapping[str, Tree[ArraySpec]] = {}

    @property
    def acting_variables(self) -> list[keras.Variable]:
        """Variables that acting depends on."""
        further = [v for each in self._further for v in each.variables]
        return [*self.agent.acting_variables, *further]

    @property
    def collecting(self) -> "Policy":
        """The policy that also steps the memories of recurrent critics.

        Replay stores their states, which are no part of the policy that is
        evaluated or exported.
        """
        found = copy.copy(self)
        critics = getattr(self.agent, "critics", ())
        found._further = [*filter(has_memory, critics)]
        return found

    @property
    def noise_steps(self) -> int:
        """Step of schedules of noise, which recorded data brings to an end."""
        return 2**40 if self.agent.offline_updates else self.agent.env_steps

    @property
    def memory(self) -> keras.Model | None:
        """The recurrent network of the policy, or None."""
        return next(filter(has_memory, self.agent.acting_networks), None)

    def initial_state(self, batch_size: int) -> tuple[np.ndarray, ...]:
        """Returns the recurrent state at the beginning of an episode.

        Args:
            batch_size: int. Episodes, B; 1 for a single observation.

        Returns:
            tuple of `[B, ...]`, for `act`; empty without recurrent networks.
        """
        memory = self.memory
        if memory is None:
            return ()
        states = [
            each.initial_state(batch_size) for each in (memory, *self._further)
        ]
        return tuple(map(np.asarray, itertools.chain(*states)))

    def policy_step(
        self, observation: Tree[Tensor], begins: Tensor, state: Sequence[Tensor]
    ) -> tuple[Any, Sequence[Tensor]]:
        """Returns the policy of one step and the state after it, in a graph."""
        agent, networks = self.agent, (self.memory, *self._further)
        states = states_by_network(networks, state)
        seen = map_leaves(of_one_step, self.completed(observation))
        step: Any = Sequences(seen, of_one_step(begins), states)
        encoded = agent.policy.encode(step).observation
        after: list[Tensor] = []
        for network, own in states.items():
            body = network.remember if network in self._further else network
            after += run_memory(body, encoded, step.begins, own)[1]
        policy = types.SimpleNamespace(
            mode=lambda: agent.greedy_action(step),
            sample=lambda noise: agent.sample_action(step, noise),
            log_prob=lambda action: agent.distribution(step).log_prob(action),
        )
        return policy, after

    @functools.cached_property
    def acting(self) -> "Policy":
        """The policy of those entries of a Dict observation that it reads.

        `act` and exported files need no others, which only a critic sees. Where
        `"observation"` alone is read, that is the observation.
        """
        space = self.observation_space
        specs: Any = self.observation_spec
        if not isinstance(space, Dict):
            return self
        flags = are_read(self.function(False), len(leaves(specs)))
        read = with_leaves(specs, flags)
        kept = {key: space[key] for key in space if any(leaves(read[key]))}
        if len(kept) in (0, len(space)):
            return self
        seen = kept[_OBSERVATION] if [*kept] == [_OBSERVATION] else Dict(kept)
        actions = self.action_space, self.head
        found = Policy(self.agent, seen, *actions, self._generator)
        found._unread = {key: specs[key] for key in space if key not in kept}
        return found

    def as_batch(self, observation: Tree[npt.ArrayLike]) -> tuple[Any, bool]:
        """Takes one observation, or a batch, as a batch of those it reads."""
        if self._unread and isinstance(observation, Mapping):
            keys = [key for key in observation if key not in self._unread]
            alone = is_leaf(self.observation_spec) and keys == [_OBSERVATION]
            read = {key: observation[key] for key in keys}
            observation = read[_OBSERVATION] if alone else read
        return as_batch(self.observation_spec, observation)

    def completed(self, observation: Tree[Any]) -> Tree[Any]:
        """Adds zeros for the entries of observations that it does not read."""
        if not self._unread:
            return observation
        rows = ops.shape(leaves(observation)[0])[0]

        def zeros(spec: ArraySpec) -> Any:
            return ops.zeros((rows, *spec.shape), spec.dtype)

        if not isinstance(observation, Mapping):
            observation = {_OBSERVATION: observation}
        return {**observation, **map_leaves(zeros, self._unread)}

    function = policy_function
    litert = litert_policy

    @arguments.refusing_unknown
    def act(
        self,
        observation: Tree[npt.ArrayLike],
        state: Sequence[Any] | None = None,
        deterministic: bool = False,
        *,
        return_log_prob: bool = False,
    ) -> Any:
        """Chooses an action, or a batch of actions.

        Args:
            observation: `[...]` or `[B, ...]`. One raw observation or a batch;
                for a Dict or Tuple space a dict or tuple of these. Entries
                of a Dict that the policy does not read can be left out; if it
                reads `"observation"` alone, that array is enough.
            state: tuple of `[B, ...]` or None. State of a recurrent policy: at
                first `initial_state(B)`, then the state returned by the last
                call. Defaults to `None`: the initial state.
            deterministic: bool. Whether to take the most probable action
                instead of a sample. Defaults to `False`.
            return_log_prob: bool. Whether to return the log-probability of
                the action too, after it was clipped to the bounds. Defaults to
                `False`.

        Returns:
            np.ndarray: the action in the environment's format, or `[B, ...]`;
            with `return_log_prob` a tuple of that and `[]` or `[B]` float32;
            with `state` a tuple of that and, last, the state after the step.

        Raises:
            ValueError: If the observation does not have the shape of the
                space, the policy has no probabilities to return, or an action
                would not be finite.
        """
        self.agent.check_loaded()
        if return_log_prob and not hasattr(self.agent, "distribution"):
            raise ValueError(
                "Expected `return_log_prob=False`: the actions of "
                f"{type(self.agent).__name__} have no log-probability. "
                "Received: return_log_prob=True"
            )
        batch, single = self.as_batch(observation)
        count = len(leaves(batch)[0])
        if self.is_masked:
            waiting = np.zeros(count, np.bool_)
            named = "the observation of `act`"
            check_mask(self.head.format, batch, waiting, named, 0)
        inputs = leaves(batch)
        if not deterministic:
            noise, _ = self.noise.draw(self._generator, (count,))
            inputs.append(noise)
        memory = self._memory_inputs(state, count)
        if memory and state is None:
            self._tell_of_state(count)
        with self.agent.devices.placement():
            outputs = self._outputs(
                (deterministic, return_log_prob), inputs + memory
            )
        check_actions(outputs[0].numpy(), batch)
        after = [outputs.pop() for _ in memory[1:]][::-1]
        log_prob = outputs.pop() if return_log_prob else None
        spec = action_spec(self.action_space)

        def as_action(one: ArraySpec, output: Any) -> npt.NDArray[Any]:
            array: npt.NDArray[Any]
            array = output.numpy().astype(one.dtype, copy=False)
            # [1, ...] -> [...] where one observation was given
            return array[0] if single else array

        results = [map_leaves(as_action, spec, for_environment(spec, outputs))]
        if log_prob is not None:
            results.append(log_prob.numpy()[0] if single else log_prob.numpy())
        if state is not None:
            results.append(tuple(each.numpy() for each in after))
        return tuple(results) if len(results) > 1 else results[0]

    def _outputs(self, key: tuple[bool, bool], inputs: list[Any]) -> list[Any]:
        """Runs the policy, traced when it is needed first."""
        if key not in self._called:
            deterministic, with_log_prob = key
            decide = _CLIPPED if with_log_prob else None
            function = self.function(deterministic, decide=decide)
            self._called[key] = direct_call(function.get_concrete_function())
        outputs: list[Any] = self._called[key](inputs)
        return outputs

    def get_state(self) -> dict[str, Any]:
        """Returns the state of the noise of later calls of `act`."""
        return {"noise": self._generator.bit_generator.state}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restores the state returned by `get_state`."""
        self._generator.bit_generator.state = state["noise"]

    def _memory_inputs(
        self, state: Sequence[Any] | None, count: int
    ) -> list[npt.NDArray[Any]]:
        """Returns the further inputs of a recurrent policy."""
        initial = self.initial_state(count)
        if state is None:
            state = initial
        # A bool, say, that was meant as another argument.
        state = state if isinstance(state, Sequence) else [state]
        shapes = [np.shape(each) for each in state]
        expected = [each.shape for each in initial]
        if shapes != expected:
            raise ValueError(
                f"Expected a state of arrays of shapes {expected}, see "
                f"`initial_state({count})`. Received: shapes {shapes}"
            )
        if not initial:
            return []
        arrays = [
            np.asarray(each, start.dtype)
            for each, start in zip(state, initial, strict=True)
        ]
        return [np.zeros(count, np.float32), *arrays]

    def _tell_of_state(self, count: int) -> None:
        """Warns once that no state is kept from call to call."""
        if self._told_of_state:
            return
        self._told_of_state = True
        warnings.warn(
            "`act` was called without a `state`, so that each call begins "
            "with the initial state. Expected, from the first step of an "
            f"episode on: `state = agent.initial_state({count})`, then "
            "`action, state = agent.act(observation, state)`. "
            "Received: state=None",
            stacklevel=5,
        )


def of_policy(
    function: Callable[Concatenate[Any, Given], Result],
) -> Callable[Concatenate[Any, Given], Result]:
    """Returns a method of an agent that calls a function of its policy."""

    @functools.wraps(function)
    def method(
        agent: Any, /, *args: Given.args, **kwargs: Given.kwargs
    ) -> Result:
        return function(agent.policy.acting, *args, **kwargs)

    return method
