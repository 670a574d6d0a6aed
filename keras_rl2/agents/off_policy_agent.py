"""What agents that learn from replay share."""

import abc
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_rl2.agents import network_checks
from keras_rl2.agents.agent import Agent
from keras_rl2.callbacks import TargetNetworkSync
from keras_rl2.shapes import Tensor


class OffPolicyAgent(Agent):
    """Base of agents that learn from past transitions, with target networks.

    Target networks are followed up by a `TargetNetworkSync` callback, which
    `fit` inserts with the algorithm's own numbers where there is none.

    Args:
        gamma: float. Discount factor. Defaults to `0.99`.
        max_gradient_norm: float or None. Global norm that gradients are
            clipped to. Defaults to `None`.
        **kwargs: `observation_space`, `action_space`, `seed`, `name`, `dtype`.
    """

    on_policy = False
    #: Updates that follow on each environment step.
    updates_per_step = 1.0
    #: Minibatch that the algorithm was published with.
    default_batch_size = 256

    def __init__(
        self,
        *,
        gamma: float = 0.99,
        max_gradient_norm: float | None = None,
        **kwargs: Any,
    ) -> None:
        network_checks.check_in_range(gamma=(gamma, 0.0, 1.0))
        if max_gradient_norm is not None:
            network_checks.check_in_range(
                max_gradient_norm=(max_gradient_norm, 1e-12, np.inf)
            )
        super().__init__(**kwargs)
        self.gamma = gamma
        self.max_gradient_norm = max_gradient_norm
        self.updates = self.add_weight(
            shape=(), dtype="int64", trainable=False, name="updates"
        )
        self.td_errors: Any = None
        # The draws of the updates are those of a seed and their number.
        self._draw_seed = np.random.SeedSequence(self.seed)

    # Target networks.

    @property
    @abc.abstractmethod
    def target_pairs(self) -> list[tuple[keras.Model, keras.Model]]:
        """Target networks, each with the network that it follows."""

    def default_sync(self) -> TargetNetworkSync:
        """Returns the callback that `fit` inserts where there is none."""
        return TargetNetworkSync(tau=0.005)

    def _learning_layers(self) -> list[keras.layers.Layer]:
        """Returns all layers but those of target networks, which follow."""
        targets = {
            id(layer)
            for target, _ in self.target_pairs
            for layer in network_checks.all_layers(target)
        }
        layers = super()._learning_layers()
        return [layer for layer in layers if id(layer) not in targets]

    # Learning.

    def train_step(self, data: Any) -> dict[str, Tensor]:
        """Makes one update from a minibatch of transitions."""
        batch, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        terms, td_error = self.update(batch)
        self.updates.assign_add(1)
        if self.td_errors is not None and "position" in batch:
            self.td_errors.scatter_nd_update(
                batch["position"][None, None], td_error[None]
            )
        self.statistics.update_state(terms)
        logs: dict[str, Tensor] = self.get_metrics_result()
        return logs

    @abc.abstractmethod
    def update(
        self, batch: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Makes one update of the networks.

        Args:
            batch: dict of `observation`, `action`, `reward` (of n steps),
                `discount` (0 after the end), `next_observation` and `weight`,
                all `[B, ...]`.

        Returns:
            Scalars for the logs, by the names in `statistics_names`, and the
            TD errors `[B]`.
        """

    def draw_normal(self, shape: tuple[int, ...], stream: int) -> Tensor:
        """Draws standard normal noise for an update, in the graph.

        A function of the agent's seed and the number of updates: it repeats,
        also after saving and loading in between.

        Args:
            shape: Of the noise.
            stream: int. Keeps several draws of one update apart.

        Returns:
            `shape` float32.
        """
        base = int(self._draw_seed.generate_state(stream + 1)[stream] >> 1)
        count = ops.cast(ops.convert_to_tensor(self.updates), "int32")
        return tf.random.stateless_normal(
            shape,
            seed=tf.stack([tf.constant(base, "int32"), count]),
            # The default is another one under XLA.
            alg="philox",
        )

    # Priorities.

    def keep_td_errors(self, td_errors: Any) -> None:
        """Says where the TD errors of minibatches are to be written.

        Args:
            td_errors: `tf.Variable` `[updates, batch]`, by the `position` of
                a minibatch.
        """
        if self.td_errors is not td_errors:
            self.td_errors = td_errors
            # Traced with another one, or with none.
            self.train_function = None

    def exploration_logs(self) -> dict[str, float]:
        """Returns how the agent explores at present, for the logs."""
        return {}

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor as plain data."""
        return {
            **super().get_config(),
            "gamma": self.gamma,
            "max_gradient_norm": self.max_gradient_norm,
        }
