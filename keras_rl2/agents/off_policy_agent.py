"""Agents that learn from replay, and those of them with critics."""

import abc
from dataclasses import replace
from typing import Any
from typing import Unpack
from typing import cast

import gymnasium
import keras
import tensorflow as tf
from keras import ops

from keras_rl2.agents.agent import Agent
from keras_rl2.agents.agent import AgentArguments
from keras_rl2.basics import seeds
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.shapes import Tensor
from keras_rl2.exploration import ExplorationNoise
from keras_rl2.losses import statistics
from keras_rl2.losses.value import of_action
from keras_rl2.losses.value_distributions import ScalarValues
from keras_rl2.losses.value_distributions import ValueDistribution
from keras_rl2.losses.value_distributions import value_distribution
from keras_rl2.networks import checks as network_checks
from keras_rl2.networks.builder import NetworkBuilder
from keras_rl2.networks.inputs import has_memory
from keras_rl2.networks.inputs import inputs_for
from keras_rl2.networks.inputs import run_network
from keras_rl2.networks.network_copies import copy_of
from keras_rl2.networks.network_copies import sibling
from keras_rl2.networks.sequences import Sequences
from keras_rl2.networks.sequences import flat
from keras_rl2.networks.sequences import states_by_network
from keras_rl2.spaces.supported import ACTION
from keras_rl2.spaces.supported import check_critic_space
from keras_rl2.spaces.trees import Tree
from keras_rl2.updates import critics
from keras_rl2.updates.critics import GivenCritics
from keras_rl2.updates.target_networks import TargetUpdate
from keras_rl2.updates.target_networks import check_sync
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Objective
from keras_rl2.updates.updater import Terms

# Draws of one update that differ from each other.
_STREAMS = 8
_TRANSITION = ("action", "reward", "discount", "weight")


class LearningArguments(AgentArguments, total=False):
    """Arguments of `OffPolicyAgent` without target networks; see there."""

    max_gradient_norm: float | None


class OffPolicyArguments(LearningArguments, total=False):
    """Arguments of `OffPolicyAgent`; see there."""

    tau: float
    target_every: int


class CriticArguments(LearningArguments, total=False):
    """Arguments of `CriticAgent` without target networks; see there."""

    num_critics: int


class TargetCriticArguments(CriticArguments, OffPolicyArguments, total=False):
    """Arguments of `CriticAgent`; see there."""


class OffPolicyAgent(Agent):
    """Base of agents that learn from past transitions.

    A subclass defines its losses in `objectives`. The base provides tapes,
    loss scaling, gradient clipping, optimizers and logs, and moves the target
    networks, if the subclass makes any: see `target_pairs`. The constructor
    of a subclass without them takes neither `tau` nor `target_every`.

    Args:
        tau: float. Polyak coefficient, above 0 and at most 1: a target network
            moves by this fraction towards the network that it follows; 1
            copies it. Defaults to `0.005`.
        target_every: int. Number of updates per move of the target networks.
            Defaults to `1`.

    Example:

    >>> import keras_rl2 as rl
    >>> isinstance(rl.SAC.for_env("Pendulum-v1", hidden=(8,)), OffPolicyAgent)
    True
    >>> rl.DQN.for_env("CartPole-v1", hidden=(8,), tau=1.0, target_every=250)
    <DQN name=dqn..., built=True>
    """

    on_policy = False
    default_hidden = (256, 256)
    default_activation = "relu"
    default_initialization = "fan_in"
    #: Updates per environment step.
    updates_per_step = 1.0
    #: Minibatch size by default.
    default_batch_size = 256

    def __init__(
        self,
        *,
        tau: float = 0.005,
        target_every: int = 1,
        **kwargs: Unpack[LearningArguments],
    ) -> None:
        check_sync(tau, target_every, "target_every")
        super().__init__(**kwargs)  # type: ignore[misc]
        self.tau = tau
        self.target_every = target_every
        self.updates = self.add_weight(
            shape=(), dtype="int64", trainable=False, name="updates"
        )
        self.td_errors: tf.Variable | None = None
        # Random numbers of an update depend on the seed and its number only.
        # A variable, so that agents of any seed can share a graph. TensorFlow
        # keeps those of int32 off a GPU.
        drawn = seeds.sequence(self.seed).generate_state(_STREAMS) >> 1
        self._draw_seeds = tf.Variable(drawn.astype("int64"), trainable=False)

    def reset_targets(self) -> None:
        """Restores the agent's own updates of target networks.

        Before the first update, targets are copies of their networks, whose
        weights may have been set since.
        """
        super().reset_targets()
        check_sync(self.tau, self.target_every, "target_every")
        self.target_networks.follow(
            TargetUpdate(target, source.weights, self.tau, self.target_every)
            for target, source in self.target_pairs
        )
        self.target_networks.begin(self.updates)

    @property
    def updates_made(self) -> keras.Variable:
        """Number of updates, by any optimizer."""
        return self.updates

    def after_update(self, batch: Batch, terms: Terms) -> None:
        """Counts the update, and stores its TD errors if they are used."""
        has_errors = {"td_error", "position"} <= {*terms, *batch}
        if self.td_errors is not None and has_errors:
            td_error = terms["td_error"]
            if "begins" in batch:
                td_error = statistics.sequence_priority(
                    ops.reshape(td_error, batch["weight"].shape),
                    batch["weight"] > 0,
                )
            self.td_errors.scatter_nd_update(
                batch["position"][None, None], td_error[None]
            )
        self.updates.assign_add(1)

    def draw_normal(self, shape: tuple[int, ...], stream: int) -> Tensor:
        """Draws standard normal noise for an update, in the graph.

        It depends on the agent's seed and the number of updates only, so with
        a seed it is reproducible, also after saving and loading.

        Args:
            shape: tuple of int. Shape of the noise.
            stream: int, 0 to 7. Distinguishes several draws of one update.

        Returns:
            `shape` float32.
        """
        # XLA draws other numbers from the same seed.
        return tf.random.stateless_normal(
            shape, seed=self._seed_of_draw(stream), alg="philox"
        )

    def draw_uniform(self, shape: tuple[int, ...], stream: int) -> Tensor:
        """Draws uniform noise in -1 ... 1 for an update; see `draw_normal`."""
        seed = self._seed_of_draw(stream)
        drawn = tf.random.stateless_uniform(shape, seed=seed, alg="philox")
        return cast(Tensor, 2.0 * drawn - 1.0)

    def _seed_of_draw(self, stream: int) -> Tensor:
        """Returns the seed of a draw of the current update."""
        count = ops.cast(ops.convert_to_tensor(self.updates), "int32")
        return tf.stack([ops.cast(self._draw_seeds[stream], "int32"), count])

    def get_state(self) -> dict[str, Any]:
        """Returns the whole state; see `Agent.get_state`."""
        return {**super().get_state(), "draw_seeds": self._draw_seeds.numpy()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores a state of `get_state`."""
        super().set_state(state)
        self._draw_seeds.assign(state["draw_seeds"])

    @property
    def update_variables(self) -> list[tf.Variable]:
        """Further variables of an update; see `Agent.update_variables`."""
        found = [*super().update_variables, self._draw_seeds]
        return found if self.td_errors is None else [*found, self.td_errors]

    def keep_td_errors(self, td_errors: tf.Variable | None) -> None:
        """Sets the variable to which TD errors of minibatches are written.

        Args:
            td_errors: `tf.Variable` `[updates, batch]` or None. Its rows are
                selected by the `position` of a minibatch.
        """
        if self.td_errors is not td_errors:
            self.td_errors = td_errors
            # The traced one uses the previous variable, or none.
            self.train_function = None


class CriticAgent(OffPolicyAgent):
    """Base of agents with an actor and critics, by default with target critics.

    A subclass defines the policy, `next_value` of the critics' targets, and
    the loss of the policy, `actor_terms`.

    Args:
        actor: `keras.Model` from observations to the parameters of the policy.
        critic: `keras.Model` from a list of observations and actions (within
            -1 ... 1) to values `[B, 1]`; for Discrete actions, where they are
            supported, from observations to `[B, n]`. Or a list of
            `num_critics` such models; for a single one, the agent makes the
            others, of the same architecture, with their own weights. A single
            model may also return the outputs of all critics, side by side.
            Critics are recurrent if the actor is; see
            `keras_rl2.networks.MemoryNetwork`.
        value_network: `keras.Model` from observations to values `[B, 1]`, or
            None. Defaults to `None`.
        num_critics: int. Number of critics. Defaults to `2`.

    Example:

    >>> import keras_rl2 as rl
    >>> agent = rl.TD3.for_env("Pendulum-v1", hidden=(8,), seed=0)
    >>> isinstance(agent, rl.agents.CriticAgent)
    True
    """

    action_kinds: tuple[type[gymnasium.Space[Any]], ...] = (
        *(gymnasium.spaces.Box, gymnasium.spaces.Discrete),
    )
    squashes = True
    takes_critic_dropout = True
    takes_critic_sees = True
    actor: keras.Model
    critics: list[keras.Model]
    target_critics: list[keras.Model]
    value_network: keras.Model | None = None
    statistics_names: tuple[str, ...] = (
        *("loss", "actor_loss", "critic_loss", "q_value", "gradient_norm"),
    )
    #: Meaning of the critics' outputs.
    value_distribution: ValueDistribution = ScalarValues()
    #: Which width of the policy head the actor's output has: 0 for means, -1
    #: for means and log standard deviations.
    actor_width = 0
    #: Updates of the critics per update of the policy.
    policy_delay = 1
    #: Scalars of the logs that `actor_terms` returns, beside the loss.
    actor_statistics: tuple[str, ...] = ()
    #: Noise added to actions, or None.
    exploration: ExplorationNoise | None = None

    def __init__(
        self,
        actor: keras.Model,
        critic: GivenCritics,
        value_network: keras.Model | None = None,
        *,
        num_critics: int = 2,
        **kwargs: Unpack[OffPolicyArguments],
    ) -> None:
        check_positive(num_critics=num_critics)
        all_critics = (
            list(critic) if isinstance(critic, list | tuple) else [critic]
        )
        if len(all_critics) not in (1, num_critics):
            raise ValueError(
                f"Expected one `critic` or {num_critics} of them. "
                f"Received: {len(all_critics)}"
            )
        super().__init__(**kwargs)
        self.actor = actor
        if value_network is not None:
            # Before the critics, as the second one may be made later: variables
            # must have the same order as when both are given, as in loading.
            self.value_network = value_network
        self.num_critics = num_critics
        self.critics = all_critics
        self.target_critics = []
        self._last_actor_terms: dict[str, keras.Variable] = {}

    @classmethod
    def default_networks(
        cls,
        build: NetworkBuilder,
        *,
        num_critics: int = 2,
        distributional: str | None = None,
        atoms: int = 51,
        **settings: Any,
    ) -> tuple[Any, ...]:
        """Makes an actor and critics."""
        check_positive(num_critics=num_critics)
        each = value_distribution(distributional, atoms, (0, 1)).atoms
        head = build.head
        actor_seed, *seeds = build.seeds(1 + num_critics)
        actor = build.actor(head.parameter_sizes[cls.actor_width], actor_seed)
        new_critics = [
            build.critic_of_actions(f"critic_{index}", seed, each)
            if head.log_std_size
            else build.network(
                f"critic_{index}", head.parameter_sizes[0] * each, seed
            )
            for index, seed in enumerate(seeds)
        ]
        return actor, new_critics

    def given_networks(self) -> dict[str, Any]:
        """Returns the networks, keyed by constructor argument."""
        return {"actor": self.actor, "critic": self.critics}

    @property
    def has_critic_optimizer(self) -> bool:  # type: ignore[override]
        """Whether each optimizer counts its own updates: with a delay."""
        return self.policy_delay > 1

    @property
    def is_discrete(self) -> bool:
        """Whether actions are Discrete, and critics value all of them."""
        return isinstance(self.action_space, gymnasium.spaces.Discrete)

    @property
    def further_inputs(self) -> dict[str, keras.KerasTensor]:
        """Symbolic inputs of critics beside the observation, by name."""
        if self.is_discrete:
            return {}
        shape = (None, *self.policy.head.action_shape)
        return {ACTION: keras.KerasTensor(shape, "float32")}

    @abc.abstractmethod
    def build_actor(self, *sizes: int, squash: bool = False) -> None:
        """Checks the actor, whose output has one of the given widths."""

    def build_networks(self) -> None:
        """Checks the networks against the spaces and makes all variables."""
        head = self.policy.head
        if self.policy_delay > 1:
            self._last_actor_terms = {
                name: self.add_weight(
                    shape=(),
                    initializer="zeros",
                    dtype="float32",
                    trainable=False,
                    name=f"last_actor_{name}",
                )
                for name in ("loss", *self.actor_statistics)
            }
        self.build_actor(head.parameter_sizes[self.actor_width], squash=True)
        networks = [self.actor]
        if self.value_network is not None:
            self._check_values("value_network", self.value_network, 1)
            networks.append(self.value_network)
        further = self.further_inputs
        for name in further:
            check_critic_space(self.observation_space, name)
        units, number = self._outputs_of_a_critic, self.num_critics
        widths = {units, units * number if len(self.critics) == 1 else units}
        found = []
        for critic in self.critics:
            if has_memory(critic) != has_memory(self.actor):
                raise ValueError(
                    "Expected actor and critics that are all recurrent, or "
                    f"none. Received: {self.actor.name!r} and {critic.name!r}"
                )
            found.append(
                self._check_values("critic", critic, *sorted(widths), **further)
            )
        all_critics = list(self.critics)
        for index in range(sum(found) // units, number):
            all_critics.append(sibling(all_critics[0], index))
            network_checks.check_width(
                "critic", all_critics[-1], self.policy, units, **further
            )
        self.critics = all_critics
        critics.check_apart([*networks, *all_critics])
        self.make_targets()

    def _check_values(
        self,
        name: str,
        network: keras.Model,
        *units: int,
        **further: keras.KerasTensor,
    ) -> int:
        """Checks the inputs and outputs of a network; returns its width."""
        width = network_checks.check_width(
            name, network, self.policy, *units, **further
        )
        if not has_memory(network):
            seen = self.policy.encode.network_input
            inputs = inputs_for(network, seen, **further)
            network_checks.check_value_ending(network, inputs)
        return width

    @property
    def _outputs_of_a_critic(self) -> int:
        """Number of outputs of one critic."""
        rows = self.policy.head.parameter_sizes[0] if self.is_discrete else 1
        return rows * self.value_distribution.atoms

    def make_targets(self) -> None:
        """Makes the target networks, copies of the critics."""
        self.target_critics = [
            copy_of(critic, f"target_{critic.name}") for critic in self.critics
        ]

    @property
    def target_pairs(self) -> list[tuple[keras.Model, keras.Model]]:
        """Pairs of a target network and the network that it follows."""
        # There may be none.
        return list(zip(self.target_critics, self.critics, strict=False))

    def critic_variables(self) -> list[keras.Variable]:
        """Trainable variables that a `critic_optimizer` updates."""
        networks = [*self.critics]
        if self.value_network is not None:
            networks.append(self.value_network)
        return [v for each in networks for v in each.trainable_variables]

    def values_of_taken(
        self, observation: Tree[Tensor], action: Tensor, training: bool = False
    ) -> list[Tensor]:
        """Returns each critic's Q-values of given actions, `[B]` float32."""
        return self.values(self.critics, observation, action, training)

    def values(
        self,
        networks: list[keras.Model],
        observation: Tree[Tensor],
        action: Tensor | None,
        training: bool = False,
    ) -> list[Tensor]:
        """Returns the Q-values of given actions, the means of `outputs`.

        Args:
            networks: list of `keras.Model`, from `critics` or
                `target_critics`.
            observation: `[B, ...]`. Raw observations.
            action: `[B, A]`, in the unit box; or `[B]`, Discrete ones; or None
                for all Discrete actions.
            training: bool. Passed on to the networks. Defaults to `False`.

        Returns:
            list of `[B]` float32, one for each critic; of all Discrete actions
            `[B, n]`.
        """
        encoded = self.policy.encode(observation)
        outputs = self.critic_outputs(networks, encoded, action, training)
        return [*map(self.value_distribution.mean, outputs)]

    def critic_outputs(
        self,
        networks: list[keras.Model],
        encoded: Tree[Tensor],
        action: Tensor | None,
        training: bool = False,
    ) -> list[Tensor]:
        """Returns the outputs of each critic, as `values` returns their means.

        Args:
            networks: list of `keras.Model`. Each returns the outputs of one
                critic, or those of several side by side.
            encoded: tree of `[B, ...]`. Observations as inputs of networks.
            action: `[B, A]`, `[B]` or None; see `values`.
            training: bool. Passed on to the networks. Defaults to `False`.

        Returns:
            list of `[B, N]` float32; of all Discrete actions `[B, n, N]`.
        """
        units, atoms = self._outputs_of_a_critic, self.value_distribution.atoms
        further = {} if self.is_discrete else {ACTION: action}
        found: list[Tensor] = []
        for network in networks:
            outputs = run_network(network, encoded, training, **further)
            found += ops.split(outputs, outputs.shape[-1] // units, axis=-1)
        if not self.is_discrete:
            return found
        tables = [
            ops.reshape(each, (-1, units // atoms, atoms)) for each in found
        ]
        if action is None:
            return tables
        return [of_action(each, action) for each in tables]

    def exploration_logs(self) -> dict[str, float]:
        """Returns the scale of the exploration noise, where it changes."""
        scale = getattr(self.exploration, "scale", None)
        if not callable(scale):
            return {}
        value = float(ops.convert_to_numpy(scale(self.policy.noise_steps)))
        return {"exploration_scale": value}

    @property
    def actor_variables(self) -> list[keras.Variable]:
        """Variables of the policy's loss that are in no network."""
        return []

    def _steps_of_sequences(self, batch: Batch) -> Batch:
        """Turns M sequences of L transitions into M * L transitions.

        Targets begin with the state of the network that they follow, as in
        R2D2. Minibatches of transitions stay as they are.

        Args:
            batch: dict; see `keras_rl2.data.SequenceReplayBuffer.sample`.
        """
        if self.policy.memory is None:
            return batch
        given: dict[str, Any] = dict(batch)
        span, networks = given["span"], (self.actor, *self.critics)
        states = states_by_network(networks, given["state"])
        for target, source in self.target_pairs:
            states[target] = states[source]
        place = ops.arange(span.shape[1], dtype="int32") + 0 * span
        present = Sequences(
            *(given["observation"], given["begins"], states, given["burn_in"]),
            places=place,
        )
        return {
            **{key: flat(given[key]) for key in _TRANSITION},
            "observation": present,
            "next_observation": replace(present, places=place + span),
        }

    def objectives(self) -> dict[str, Objective]:
        """Returns the losses of the critics and, after the delay, of the actor.

        Where both always have an optimizer of their own, each is applied
        directly, as `MultiOptimizer.apply` takes all gradients at once. This
        bypasses Keras' loss scaling too: float16 networks learn from unscaled
        gradients.
        """
        optimizer = critic_optimizer = None
        if self.has_critic_optimizer:
            compile_arguments: Any = self.compile_arguments
            optimizer = compile_arguments.optimizer
            critic_optimizer = compile_arguments.critic_optimizer
        return {
            "critic": Objective(
                lambda each: self._critic_terms(self._steps_of_sequences(each)),
                self.critics,
                optimizer=critic_optimizer,
            ),
            "actor": Objective(
                lambda each: self.actor_terms(self._steps_of_sequences(each)),
                [self.actor],
                self.actor_variables,
                optimizer=optimizer,
                every=self.policy_delay,
                last=self._last_actor_terms,
            ),
        }

    def _critic_terms(self, batch: Batch) -> Terms:
        """Runs the critics once, and returns `critic_terms`."""
        outputs = self.critic_outputs(
            self.critics,
            self.policy.encode(batch["observation"]),
            batch["action"],
            training=True,
        )
        return self.critic_terms(outputs, batch)

    def critic_terms(self, outputs: list[Tensor], batch: Batch) -> Terms:
        """Computes the loss of the critics on a minibatch.

        Args:
            outputs: list of `[B, N]` float32. Each critic's outputs for the
                actions taken, from the forward pass; N is 1, unless
                `value_distribution` needs more.
            batch: dict of `[B, ...]`; see `train_step`.

        Returns:
            dict: `loss`, a scalar, which is minimised; `td_error` `[B]`; other
            scalars for the logs.
        """
        return critics.td_terms(
            self.value_distribution,
            outputs,
            self.targets(batch),
            batch["weight"],
        )

    def targets(self, batch: Batch) -> Tensor:
        """Returns the targets of the critics, by `next_value`.

        They are values `[B]`; of critics with several outputs, what
        `value_distribution.target` returns.
        """
        return self.value_distribution.target(
            batch["reward"], batch["discount"], self.next_value(batch)
        )

    @abc.abstractmethod
    def next_value(self, batch: Batch) -> Tensor:
        """Returns the values of the next states, `[B]` float32.

        For critics with several outputs, these are outputs or samples of the
        return, `[B, M]`.
        """

    @abc.abstractmethod
    def actor_terms(self, batch: Batch) -> Terms:
        """Computes the loss of the policy on a minibatch.

        Args:
            batch: dict of `[B, ...]`; see `train_step`.

        Returns:
            dict: `loss`, a scalar, which is minimised; other scalars for the
            logs.
        """
