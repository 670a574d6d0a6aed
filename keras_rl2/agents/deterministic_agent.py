"""Agents whose policy is a function, disturbed by noise to explore."""

import functools
from typing import Any

import gymnasium
import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_rl2.agents import network_checks
from keras_rl2.agents.action_noise import ActionNoise
from keras_rl2.agents.twin_critic_agent import TwinCriticAgent
from keras_rl2.agents.updating import apply_gradients
from keras_rl2.networks import copy_of
from keras_rl2.policy_heads import policy_head
from keras_rl2.shapes import Tensor


class DeterministicAgent(TwinCriticAgent):
    """Base of actor-critics with a deterministic policy for a Box.

    The policy's action is tanh of the actor's output, within the unit box of
    -1 ... 1 in each dimension. To explore, noise is added to it and the sum
    clipped to the unit box.

    Actor and critics have an optimizer each, since a delayed actor is updated
    less often than they are and Adam counts its updates. Unless `compile` is
    given two, that of the critics is made like that of the actor.

    Args:
        actor: `keras.Model` from observations to `[B, A]`, before tanh.
        critic: `keras.Model` from a list of observations and actions to
            values `[B, 1]`; or a sequence of such models, one for each critic
            that the algorithm has.
        exploration: float, str, dict, `ExplorationNoise` or None. Noise of
            actions in half their range; a number is the scale of
            `GaussianNoise`. Defaults to `0.1`.
        **kwargs: Arguments of `OffPolicyAgent`: `gamma`, `max_gradient_norm`
            (of the actor's and the critics' gradient, each for itself),
            `observation_space`, `action_space`, `seed`, `name`, `dtype`.
    """

    statistics_names = (
        "loss",
        "actor_loss",
        "critic_loss",
        "q_value",
        "gradient_norm",
    )

    def __init__(
        self,
        actor: keras.Model,
        critic: Any,
        *,
        exploration: Any = 0.1,
        **kwargs: Any,
    ) -> None:
        noise = ActionNoise(exploration)
        super().__init__(actor, critic, **kwargs)
        self._noise = noise
        self.target_actor: Any = None

    @classmethod
    def _head_for(cls, action_space: Any) -> Any:
        """Returns what stretches the unit box to the bounds of a Box."""
        network_checks.check_action_kind(
            cls, action_space, (gymnasium.spaces.Box,)
        )
        return policy_head(action_space, squash=True)

    @classmethod
    def _actor_size(cls, head: Any) -> int:
        """Returns the width of the actor's output."""
        return int(head.parameter_sizes[0])

    def _check_and_build(self) -> None:
        """Checks the networks against the spaces and makes all variables."""
        super()._check_and_build()
        self.target_actor = copy_of(self.actor, f"target_{self.actor.name}")

    @property
    def target_pairs(self) -> list[tuple[keras.Model, keras.Model]]:
        """Target networks, each with the network that it follows."""
        return [(self.target_actor, self.actor), *super().target_pairs]

    # Keras' own verbs.

    def compile(
        self,
        optimizer: Any = "auto",
        critic_optimizer: Any = "auto",
        **kwargs: Any,
    ) -> None:
        """Sets the optimizers; see `Agent.compile`.

        Args:
            optimizer: `keras.optimizers.Optimizer`, its name, or `"auto"` for
                the algorithm's own. The actor's. Defaults to `"auto"`.
            critic_optimizer: The critics'; `"auto"` or None for one that is
                made like the actor's. Defaults to `"auto"`.
            **kwargs: Arguments of `Agent.compile`.
        """
        super().compile(
            optimizer, critic_optimizer=critic_optimizer or "auto", **kwargs
        )

    def default_optimizer(self) -> keras.optimizers.Optimizer:
        """Returns the optimizer that `compile("auto")` uses."""
        return keras.optimizers.Adam(1e-3, name="actor")

    # Acting.

    @property
    def exploration(self) -> Any:
        """The `ExplorationNoise` of actions, or None."""
        return self._noise.exploration

    def sample_action(self, observation: Tensor, noise: Tensor) -> Tensor:
        """Disturbs the policy's actions by noise of `draw_noise`."""
        return ops.clip(self.greedy_action(observation) + noise, -1.0, 1.0)

    def greedy_action(self, observation: Tensor) -> Tensor:
        """Returns the policy's actions in the unit box `[B, A]`."""
        return _squashed(self(observation))

    def draw_noise(
        self, generator: np.random.Generator, shape: Any, state: Any = None
    ) -> tuple[np.ndarray, Any]:
        """Draws the noise that `sample_action` adds, of the present scale.

        Args:
            generator: NumPy generator.
            shape: Leading shape, `(T, B)` or `(B,)`.
            state: What the last call gave, for noise that goes on from there.
                Defaults to `None`.

        Returns:
            `[*shape, A]` float32 in half the range of an action, and the
            state.
        """
        [size] = self.policy_head.noise_shape
        return self._noise.draw(generator, shape, size, self.env_steps, state)

    def exploration_logs(self) -> dict[str, float]:
        """Returns the scale of the noise, where that changes."""
        return self._noise.logs(self.env_steps)

    # Learning.

    def target_action(self, encoded: Tensor) -> Tensor:
        """Returns the actions that targets are made with.

        Args:
            encoded: `[B, ...]`. Next observations as networks take them.

        Returns:
            `[B, A]` float32 in the unit box.
        """
        return _squashed(self.target_actor(encoded))

    def targets(self, batch: dict[str, Tensor]) -> Tensor:
        """Returns what the critics learn, by the smallest of their targets.

        Args:
            batch: dict, as in `update`.

        Returns:
            `[B]` float32.
        """
        following = self.encode(batch["next_observation"])
        values = self.action_values(
            self.target_critics, following, self.target_action(following)
        )
        smallest = functools.reduce(ops.minimum, values)
        return batch["reward"] + batch["discount"] * smallest

    def update(
        self, batch: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Makes one update of the critics, and of the actor if it is due."""
        if not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)
        encoded = self.encode(batch["observation"])
        target = self.targets(batch)
        variables = self.critic_variables()
        with tf.GradientTape() as tape:
            values = self.action_values(self.critics, encoded, batch["action"])
            critic_loss, td_error = self.critic_loss(
                values, target, batch["weight"]
            )
        gradients = self.gradients(critic_loss, tape, variables)
        # Before the critics move: its gradient is that of the same weights.
        actor_loss = self.improve_actor(encoded, batch["weight"])
        norm = self._apply(
            self.compile_arguments.critic_optimizer, gradients, variables
        )
        # Counts updates, which its parts do each for itself.
        self.optimizer.iterations.assign_add(1)
        return {
            "loss": critic_loss + actor_loss,
            "actor_loss": actor_loss,
            "critic_loss": critic_loss,
            "q_value": ops.mean(values[0]),
            "gradient_norm": norm,
        }, td_error

    def improve_actor(self, encoded: Tensor, weight: Tensor) -> Tensor:
        """Moves the actor to actions that the first critic values more.

        Args:
            encoded: `[B, ...]`. Observations as networks take them.
            weight: `[B]`. What each transition counts.

        Returns:
            scalar float32: the actor's loss, -mean(weight Q_1(s, π(s))).
        """
        variables = self.actor.trainable_variables
        with tf.GradientTape() as tape:
            action = _squashed(self.actor(encoded, training=True))
            [value] = self.action_values(self.critics[:1], encoded, action)
            loss = -ops.mean(weight * value)
        gradients = self.gradients(loss, tape, variables)
        self._apply(self.compile_arguments.optimizer, gradients, variables)
        return loss

    def _apply(
        self, optimizer: Any, gradients: list[Any], variables: list[Any]
    ) -> Tensor:
        """Applies gradients by one of the two optimizers.

        Directly, since `MultiOptimizer.apply` takes all gradients at once.
        That passes by Keras' loss scaling too: losses are not scaled, and
        float16 networks learn from gradients as they are.
        """
        return apply_gradients(
            optimizer, gradients, variables, self.max_gradient_norm
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor as plain data."""
        return {**super().get_config(), "exploration": self._noise.serialized()}


def _squashed(output: Tensor) -> Tensor:
    """Returns tanh of a network's output, float32."""
    return ops.tanh(ops.cast(output, "float32"))
