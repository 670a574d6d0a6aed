"""Agents with a policy and a value."""

import operator
from collections.abc import Sequence
from typing import Any
from typing import cast

import keras
from keras import ops

from keras_rl2.agents.stochastic_policy import StochasticPolicy
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions import Distribution
from keras_rl2.networks import network_checks
from keras_rl2.networks.network_builder import NetworkBuilder
from keras_rl2.networks.network_inputs import Memory
from keras_rl2.networks.network_inputs import inputs_for
from keras_rl2.networks.network_outputs import check_value_ending
from keras_rl2.networks.network_outputs import one_value_each
from keras_rl2.networks.running import run_network
from keras_rl2.networks.sequences import of_one_step
from keras_rl2.networks.sequences import sequences_like
from keras_rl2.networks.unrolling import unroll
from keras_rl2.spaces.space_configs import GivenSpace
from keras_rl2.spaces.trees import map_leaves


class ActorCritic(StochasticPolicy):
    """Base of agents with a policy and the value of what it does.

    Either two networks, or one with two outputs (policy, value) on a shared
    trunk, which may remember. A network for a Box action space gives A means,
    and the agent keeps a log standard deviation that does not depend on the
    observation; or 2A numbers, means and log standard deviations.

    Args:
        actor: `keras.Model` from observations to the parameters of the policy;
            or to (parameters, value) where there is no critic.
        critic: `keras.Model` from observations to values `[B, 1]`, or None
            where `actor` has both outputs. Defaults to `None`.
        initial_log_std: float. Log standard deviation that a Box policy starts
            from. Defaults to `0.0`.
        observation_space: `gymnasium.Space` or its config. What is observed;
            None to learn it from the first environment. Defaults to `None`.
        action_space: `gymnasium.Space` or its config. What can be done; None
            to learn it from the first environment. Defaults to `None`.
        seed: int or None. Seeds the sampling of `act`. Defaults to `None`.
        name: str or None. Name of the model. Defaults to `None`.
        dtype: str or None. Keras dtype policy; None for the global one.
            Defaults to `None`.
    """

    takes_memory = True
    #: Whether a single network without a value output is refused.
    needs_value = True

    def __init__(
        self,
        actor: keras.Model,
        critic: keras.Model | None = None,
        *,
        initial_log_std: float = 0.0,
        observation_space: GivenSpace | None = None,
        action_space: GivenSpace | None = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        check_in_range(initial_log_std=(initial_log_std, -20.0, 20.0))
        super().__init__(
            observation_space=observation_space,
            action_space=action_space,
            seed=seed,
            name=name,
            dtype=dtype,
        )
        network_checks.check_is_network("actor", actor)
        if critic is not None:
            network_checks.check_is_network("critic", critic)
        self.actor = actor
        self.critic = critic
        self.initial_log_std = initial_log_std

    @classmethod
    def default_networks(
        cls, build: NetworkBuilder, **settings: Any
    ) -> tuple[keras.Model, ...]:
        """Makes a policy network and a value network, or one that remembers."""
        if build.memory is not None:
            units = (build.head.parameter_sizes[0], 1)
            return (build.remembering("actor_critic", units, build.seed),)
        actor_seed, critic_seed = build.seeds(2)
        return (
            build.actor(build.head.parameter_sizes[0], actor_seed),
            build.network("critic", 1, critic_seed),
        )

    def given_networks(self) -> dict[str, keras.Model | None]:
        """Returns the networks by the constructor's argument for them."""
        return {"actor": self.actor, "critic": self.critic}

    def _check_and_build(self) -> None:
        """Checks the networks against the spaces and makes all variables."""
        sizes = network_checks.output_sizes(self)
        network_checks.check_outputs(self, sizes)
        if self.memory is None:
            self._check_endings()
        self._add_log_std(sizes[0], self.initial_log_std)

    def _check_endings(self) -> None:
        """Looks at the activations that the networks end in."""
        self._check_actor_ending()
        seen = self.encode.network_input
        if self.critic is not None:
            check_value_ending(self.critic, inputs_for(self.critic, seen))
        elif self.needs_value:
            check_value_ending(
                self.actor, inputs_for(self.actor, seen), output=1
            )

    def critic_variables(self) -> list[keras.Variable]:
        """Trainable variables that a `critic_optimizer` owns.

        Raises:
            ValueError: If actor and critic share any of them.
        """
        if self.critic is None:
            raise ValueError(
                "Expected a separate critic for a `critic_optimizer`. "
                "Received: one network with a shared trunk, whose variables "
                "both optimizers would own"
            )
        owned = {id(v) for v in self.actor.trainable_variables}
        shared = [v for v in self.critic.trainable_variables if id(v) in owned]
        if shared:
            raise ValueError(
                "Expected actor and critic without common variables for two "
                "optimizers. Received: both own "
                f"{[v.path for v in shared]}"
            )
        return list(self.critic.trainable_variables)

    def call(self, observation: Any, training: bool = False) -> Tensor:
        """Returns the parameters of the policy `[B, P]`."""
        outputs = run_network(self.actor, self.encode(observation), training)
        return self._parts(outputs)[0]

    def policy_and_value(
        self, observation: Any, training: bool = False
    ) -> tuple[Distribution, Tensor]:
        """Runs the networks once.

        Args:
            observation: `[B, ...]`. Raw observations.
            training: bool. Passed on to the networks. Defaults to `False`.

        Returns:
            The policy, and values `[B]` float32.
        """
        return self.evaluate_rows(observation, None, training)

    def evaluate_rows(
        self, rows: Any, steps: int | None, training: bool
    ) -> tuple[Distribution, Tensor]:
        """Returns the policy of the first rows and the values of them all.

        Args:
            rows: `[M, ...]`. Raw observations.
            steps: int or None. Rows that the policy is asked for; None for
                all.
            training: bool. Passed on to the networks.

        Returns:
            The policy `[steps]`, and values `[M]` float32.
        """

        def acted_on(tree: Any) -> Any:
            return map_leaves(operator.itemgetter(slice(steps)), tree)

        encoded = self.encode(rows)
        if self.critic is None:
            outputs = run_network(self.actor, encoded, training)
            parameters, value = self._parts(outputs)
            parameters = acted_on(parameters)
        else:
            parameters = run_network(self.actor, acted_on(encoded), training)
            value = one_value_each(run_network(self.critic, encoded, training))
        return self.policy_of(parameters, acted_on(rows)), value

    def policy_step(
        self, observation: Any, begins: Tensor, state: Sequence[Tensor]
    ) -> tuple[Distribution, Sequence[Tensor]]:
        """Returns the policy of one step and the state after it."""
        parameters, _, after = self.run_sequences(
            map_leaves(of_one_step, observation), of_one_step(begins), state
        )
        return self.policy_of(parameters[:, 0], observation), after

    def run_sequences(
        self,
        observation: Any,
        begins: Tensor,
        state: Sequence[Tensor],
        training: bool = False,
    ) -> tuple[Tensor, Tensor, Sequence[Tensor]]:
        """Runs a network that remembers through sequences.

        Args:
            observation: tree of `[B, T, ...]`. Raw observations.
            begins: `[B, T]`. 1 where a step is the first of an episode.
            state: Sequence of `[B, ...]`. Before the first step.
            training: bool. Passed on to the network. Defaults to `False`.

        Returns:
            The parameters of the policy `[B, T, P]`, values `[B, T]`, and the
            state after the last step.
        """
        outputs, after = unroll(
            cast(Memory, self.actor),
            self.encode,
            observation,
            begins,
            state,
            training,
        )
        parameters, value = self._parts(outputs)
        sequences = sequences_like(begins)
        return sequences(parameters), sequences(value), after

    def value(self, observation: Any) -> Tensor:
        """Returns values `[B]` float32 of raw observations `[B, ...]`."""
        encoded = self.encode(observation)
        if self.critic is None:
            return self._parts(run_network(self.actor, encoded))[1]
        return one_value_each(run_network(self.critic, encoded))

    def _parts(self, outputs: Any) -> tuple[Tensor, Tensor]:
        """Parts what a policy network gave: parameters `[B, P]`, values `[B]`.

        Values are 0 where it gave none.
        """
        if isinstance(outputs, (list, tuple)):
            return outputs[0], one_value_each(outputs[1])
        return outputs, ops.zeros_like(outputs[:, 0], "float32")

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor as plain data."""
        return {
            **super().get_config(),
            "initial_log_std": self.initial_log_std,
        }
