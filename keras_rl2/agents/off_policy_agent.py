"""Agents that learn from replay."""

from typing import Unpack
from typing import cast

import keras
import tensorflow as tf
from keras import ops

from keras_rl2.agents.agent import Agent
from keras_rl2.agents.agent import AgentArguments
from keras_rl2.basics import seeds
from keras_rl2.basics.shapes import Tensor
from keras_rl2.updates.target_networks import TargetUpdate
from keras_rl2.updates.target_networks import check_sync
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Terms

# Draws of one update that differ from each other.
_STREAMS = 8


class LearningArguments(AgentArguments, total=False):
    """Arguments of `OffPolicyAgent` without target networks; see there."""

    max_gradient_norm: float | None


class OffPolicyArguments(LearningArguments, total=False):
    """Arguments of `OffPolicyAgent`; see there."""

    tau: float
    target_every: int


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
    #: Minibatch size of the publication.
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
        # A variable, so that agents of any seed can share a graph.
        drawn = seeds.sequence(self.seed).generate_state(_STREAMS) >> 1
        self._draw_seeds = tf.Variable(drawn.astype("int32"), trainable=False)

    # Target networks.

    def _build(self) -> None:
        """Makes all that depends on the spaces, and pairs the targets."""
        super()._build()
        self._follow()

    def _follow(self) -> None:
        """Sets how target networks follow, by the present `tau`."""
        check_sync(self.tau, self.target_every, "target_every")
        self.target_networks.follow(
            TargetUpdate(target, source.weights, self.tau, self.target_every)
            for target, source in self.target_pairs
        )

    def reset_targets(self) -> None:
        """Restores the agent's own updates of target networks.

        Before the first update, targets are copies of their networks, whose
        weights may have been set since.
        """
        super().reset_targets()
        self._follow()
        if int(self.updates.numpy()) == 0:
            self.target_networks.copy()

    # Learning.

    @property
    def _critic_variables(self) -> list[keras.Variable]:
        """Variables of the critics' loss that are in no network."""
        return []

    @property
    def updates_made(self) -> keras.Variable:
        """Number of updates, by any optimizer."""
        return self.updates

    def after_update(self, batch: Batch, terms: Terms) -> None:
        """Counts the update, and stores its TD errors if they are used."""
        kept = {"td_error", "position"} <= {*terms, *batch}
        if self.td_errors is not None and kept:
            self.td_errors.scatter_nd_update(
                batch["position"][None, None], terms["td_error"][None]
            )
        self.updates.assign_add(1)

    def draw_normal(self, shape: tuple[int, ...], stream: int) -> Tensor:
        """Draws standard normal noise for an update, in the graph.

        It depends on the agent's seed and the number of updates only, so it is
        reproducible, also after saving and loading.

        Args:
            shape: tuple of int. Shape of the noise.
            stream: int, 0 to 7. Distinguishes several draws of one update.

        Returns:
            `shape` float32.
        """
        # The default algorithm differs under XLA.
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
        return tf.stack([self._draw_seeds[stream], count])

    @property
    def update_variables(self) -> list[tf.Variable]:
        """Further variables of an update; see `Agent.update_variables`."""
        found = [*super().update_variables, self._draw_seeds]
        return found if self.td_errors is None else [*found, self.td_errors]

    # Priorities.

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

    def exploration_logs(self) -> dict[str, float]:
        """Returns the current parameters of exploration, for the logs."""
        return {}
