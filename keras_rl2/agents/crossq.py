"""CrossQ: soft actor-critic without target networks."""

from collections.abc import Sequence
from typing import Literal
from typing import Self
from typing import cast

import gymnasium
import keras
from keras import ops

from keras_rl2 import losses
from keras_rl2.agents.agent import as_given
from keras_rl2.agents.off_policy_agent import OffPolicyAgent
from keras_rl2.agents.sac import SAC
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.arguments import standing_for
from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.exploration.get import GivenNoise
from keras_rl2.spaces.space_configs import GivenSpace
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.training.compile_arguments import GivenOptimizer
from keras_rl2.updates import critics
from keras_rl2.updates.critics import GivenCritics
from keras_rl2.updates.skipped_updates import DEFAULT_LIMIT
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Objective
from keras_rl2.updates.updater import Terms


@keras.saving.register_keras_serializable(package="keras_rl2")
class CrossQ(SAC):
    """Soft actor-critic with batch normalization instead of targets, for Box.

    The critics value the next states themselves. What they are trained on and
    what they are asked for have different distributions; so both run through
    each critic as one batch, in training mode, and batch normalization makes
    both alike:

        [Q_i(s, a), Q_i(s', a')] = critic_i([s, s'], [a, a']),   a' ~ π(s')
        y = r + discount (min_i Q_i(s', a') - α log π(a'|s'))
        L_Q = Σ_i ½ mean((stop_gradient(y) - Q_i(s, a))²)

    The losses of policy and temperature are those of `SAC`, with critics in
    inference mode. Of n updates, floor(n / `policy_delay`) update policy and
    temperature too. `actor_loss` is the sum of both, the last one in updates
    between, initially 0; `entropy` is that at the next states.

    The networks of `for_env` have a `keras.layers.BatchNormalization` before
    each dense layer, and hidden layers of 256 units, so that they learn on a
    laptop. The published critics have 2048, which need a GPU: make them by
    `keras_rl2.networks.critic_for(..., normalization="batch")`. The published
    batch renormalization begins to differ from batch normalization after
    100,000 updates. Networks of your own should contain such layers, too:
    without them, critics that follow themselves may diverge.

    Actor and critics each have an optimizer, as an actor that is updated less
    often needs its own count of updates. The default is Adam with a learning
    rate of 0.001 and β_1 = 0.5, as published.

    Args:
        actor: `keras.Model` from observations to `[B, 2A]`, means and log
            standard deviations of a Box policy before tanh.
        critic: `keras.Model` from a list of observations and actions (within
            -1 ... 1) to values `[B, 1]`; or a pair of such models. For a
            single model, the agent makes a second one of the same
            architecture, with its own weights.
        policy_delay: int. Number of updates of the critics per update of
            policy and temperature. Defaults to `3`.
        temperature: float above 0. Initial α. Defaults to `1.0`.
        learn_temperature: bool. Whether α is learned from the target entropy;
            otherwise it is constant. Defaults to `True`.
        target_entropy: float or None. Target entropy in nats; None for -A, as
            published, or 0.89 log n for n allowed Discrete actions. Defaults
            to `None`.
        noise_color: str. Color of the noise with which Box actions are sampled
            while experience is collected. `"pink"` is correlated over time, so
            that it moves bodies with inertia; each single action still has the
            policy's distribution. See `keras_rl2.exploration.PinkNoise`.
            `"white"` is independent at each step, as published. Defaults to
            `"pink"`.
        exploration: float, str, dict, `ExplorationNoise` or None. Noise added
            to the actions of a Box policy, in units of half their range, where
            sampling from the policy does not explore enough; see `TD3`.
            Defaults to `None`.
        gamma: float. Discount factor. Defaults to `0.99`.
        max_gradient_norm: float or None. Global norm to which gradients are
            clipped; None for no clipping. Defaults to `None`.
        observation_space: `gymnasium.Space` or its config. Space of one
            environment's observations; None to take it from the first
            environment. Defaults to `None`.
        action_space: `gymnasium.Space` or its config. Space of one
            environment's actions; None to take it from the first environment.
            Defaults to `None`.
        seed: int or None. Seeds the sampling of `act`. Defaults to `None`.
        name: str or None. Name of the model. Defaults to `None`.
        dtype: str or None. Keras dtype policy; None for the global one.
            Defaults to `None`.

    Raises:
        ValueError: If a number is out of range or a network does not fit.

    Example:

    >>> import keras_rl2 as rl
    >>> replay = rl.ReplayDataset("Pendulum-v1", batch_size=32, warm_up=64,
    ...                           updates_per_round=4, rounds_per_epoch=1,
    ...                           seed=0)
    >>> agent = rl.CrossQ.for_env("Pendulum-v1", hidden=(32,), seed=0)
    >>> history = agent.fit(replay, epochs=2, verbose=0)
    >>> sorted(history.history)[:4]
    ['actor_loss', 'critic_loss', 'entropy', 'env_steps']
    >>> agent.target_pairs
    []

    Reference:
        - [Bhatt et al., 2024](https://openreview.net/forum?id=PczQtTsTIX).
    """

    action_kinds = (gymnasium.spaces.Box,)
    has_critic_optimizer = True
    default_normalization = "batch"

    def __init__(
        self,
        actor: keras.Model,  # own words
        critic: GivenCritics,  # own words
        *,
        policy_delay: int = 3,  # own words
        temperature: float = 1.0,
        learn_temperature: bool = True,
        target_entropy: float | None = None,
        noise_color: Literal["pink", "white"] = "pink",
        exploration: GivenNoise | None = None,
        gamma: float = 0.99,
        max_gradient_norm: float | None = None,
        observation_space: GivenSpace | None = None,
        action_space: GivenSpace | None = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        check_positive(policy_delay=policy_delay)
        super().__init__(
            actor,
            critic,
            temperature=temperature,
            learn_temperature=learn_temperature,
            target_entropy=target_entropy,
            noise_color=noise_color,
            exploration=exploration,
            gamma=gamma,
            max_gradient_norm=max_gradient_norm,
            observation_space=observation_space,
            action_space=action_space,
            seed=seed,
            name=name,
            dtype=dtype,
        )
        self.policy_delay = policy_delay
        self.last_actor_loss: keras.Variable | None = None
        if policy_delay > 1:
            self.last_actor_loss = self.add_weight(
                shape=(),
                initializer="zeros",
                dtype="float32",
                trainable=False,
                name="last_actor_loss",
            )

    @classmethod
    @as_given
    def for_env(  # type: ignore[override]
        cls,
        env: GivenEnv,
        *,
        hidden: Sequence[int] | None = None,
        activation: str | None = None,
        normalize_observations: bool = False,
        normalization: Literal["none", "layer", "batch", "spectral"]
        | None = None,
        initialization: Literal["orthogonal", "fan_in"] | None = None,
        memory: keras.layers.Layer | None = None,
        shared: bool | None = None,
        policy_delay: int = 3,
        temperature: float = 1.0,
        learn_temperature: bool = True,
        target_entropy: float | None = None,
        noise_color: Literal["pink", "white"] = "pink",
        exploration: GivenNoise | None = None,
        gamma: float = 0.99,
        max_gradient_norm: float | None = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> Self:
        """Makes a compiled agent with default networks for an environment.

        Args:
            env: An environment, vector environment, id string or function that
                makes an environment.
            hidden: Sequence of ints or None. Widths of the hidden layers,
                after the convolutions where observations are images; None for
                the algorithm's default, or that of the convolutional network.
                Defaults to `None`.
            activation: str or None. Activation of the hidden layers; None for
                the algorithm's default. Defaults to `None`.
            normalize_observations: bool. Whether the networks begin with an
                `ObservationNormalization` layer. Defaults to `False`.
            normalization: str or None. Normalization of the hidden layers:
                `"layer"`, `"batch"`, `"spectral"` or `"none"`, see
                `keras_rl2.networks.mlp`; None for the algorithm's default.
                Defaults to `None`.
            initialization: str or None. `"orthogonal"`, with small weights in
                the last layer of an actor; `"fan_in"`, the default of
                PyTorch's layers; None for the algorithm's default. Defaults to
                `None`.
            memory: RNN cell of Keras or None, e.g.
                `keras.layers.LSTMCell(128)`. Makes the network recurrent: all
                outputs share the cell, and each has its own hidden layers
                after it. See `keras_rl2.networks.MemoryNetwork`. Defaults to
                `None`.
            shared: bool or None. Whether policy and value share all layers but
                their outputs, as published for images; None where the
                observation contains an image. Defaults to `None`.
            policy_delay: int. Number of updates of the critics per update of
                policy and temperature. Defaults to `3`.
            temperature: float above 0. Initial α. Defaults to `1.0`.
            learn_temperature: bool. Whether α is learned from the target
                entropy; otherwise it is constant. Defaults to `True`.
            target_entropy: float or None. Target entropy in nats; None for -A,
                as published, or 0.89 log n for n allowed Discrete actions.
                Defaults to `None`.
            noise_color: str. Color of the noise with which Box actions are
                sampled while experience is collected. `"pink"` is correlated
                over time, so that it moves bodies with inertia; each single
                action still has the policy's distribution. See
                `keras_rl2.exploration.PinkNoise`. `"white"` is independent at
                each step, as published. Defaults to `"pink"`.
            exploration: float, str, dict, `ExplorationNoise` or None. Noise
                added to the actions of a Box policy, in units of half their
                range, where sampling from the policy does not explore enough;
                see `TD3`. Defaults to `None`.
            gamma: float. Discount factor. Defaults to `0.99`.
            max_gradient_norm: float or None. Global norm to which gradients
                are clipped; None for no clipping. Defaults to `None`.
            seed: int or None. Seeds weights, updates and `act`. Defaults to
                `None`.
            name: str or None. Name of the model. Defaults to `None`.
            dtype: str or None. Keras dtype policy of the agent and its
                networks, e.g. `"mixed_float16"`; None for the global one.
                Defaults to `None`.

        Returns:
            The agent. Images are processed by a convolutional network, other
            observations by an MLP.

        Raises:
            ValueError: If a space of the environment is not supported, or an
                argument is out of range.
            TypeError: If the algorithm does not take an argument.
        """
        raise NotImplementedError

    # Target networks.

    def make_targets(self) -> None:
        """Makes none: the critics value the next states themselves."""

    @property
    def target_pairs(self) -> list[tuple[keras.Model, keras.Model]]:
        """An empty list: there are no target networks."""
        return []

    # Methods of Keras.

    @standing_for(OffPolicyAgent._compile)
    def compile(
        self,
        optimizer: GivenOptimizer = "auto",
        critic_optimizer: GivenOptimizer | None = "auto",
        *,
        steps_per_execution: int | Literal["auto"] = "auto",
        jit_compile: bool | Literal["auto"] = "auto",
        max_skipped_updates: int | None = DEFAULT_LIMIT,
        run_eagerly: bool = False,
        auto_scale_loss: bool = True,
    ) -> None:
        """Sets the optimizers; see `Agent.compile`.

        Args:
            optimizer: Optimizer of the actor: `keras.optimizers.Optimizer`,
                its name, or `"auto"` for the algorithm's default. Defaults to
                `"auto"`.
            critic_optimizer: Optimizer of the critics; `"auto"` or None for
                one like that of the actor. Defaults to `"auto"`.
            steps_per_execution: int, or `"auto"` for the updates of a round.
                Updates per call of TensorFlow; with environments in the graph,
                also those of several rounds. Defaults to `"auto"`.
            jit_compile: bool, or `"auto"` to compile whole rounds of small
                networks by XLA. Defaults to `"auto"`.
            max_skipped_updates: int or None. Maximum number of consecutive
                updates that may be skipped because a gradient or a learning
                rate was not finite; None for any number. Defaults to `1000`.
            run_eagerly: bool. See `keras.Model.compile`. Defaults to `False`.
            auto_scale_loss: bool. See `keras.Model.compile`. Defaults to
                `True`.
        """
        raise NotImplementedError

    def default_optimizer(self) -> keras.optimizers.Optimizer:
        """Returns the optimizer that `compile("auto")` uses."""
        return keras.optimizers.Adam(1e-3, beta_1=0.5, name="actor")

    # Learning.

    def objectives(self) -> dict[str, Objective]:
        """Returns the losses of the critics and, after the delay, of the actor.

        Each is applied directly by its own optimizer; see `TD3.objectives`.
        """
        given = self.compile_arguments
        assert given is not None
        made = super().objectives()
        optimizer = cast(keras.optimizers.Optimizer, given.optimizer)
        critic_optimizer = cast(
            keras.optimizers.Optimizer, given.critic_optimizer
        )
        return {
            "critic": made["critic"]._replace(optimizer=critic_optimizer),
            "actor": made["actor"]._replace(
                optimizer=optimizer,
                every=self.policy_delay,
                last_loss=self.last_actor_loss,
            ),
        }

    def _critic_terms(self, batch: Batch) -> Terms:
        """Runs each critic once, on present and next states together."""
        following, alpha = batch["next_observation"], self._alpha
        next_action, log_prob = self.sample_with_log_prob(following, 0)
        encoded, action = map_leaves(
            lambda one, other: ops.concatenate([one, other], axis=0),
            (self.task.encode(batch["observation"]), batch["action"]),
            (self.task.encode(following), next_action),
        )
        # [2B] -> [B], [B]
        halves = [
            ops.split(values, 2)
            for values in critics.action_values(
                self.critics, encoded, action, training=True
            )
        ]
        next_value = losses.soft_value(
            log_prob, [later for _, later in halves], alpha
        )
        terms = self.critic_terms(
            [now for now, _ in halves], {**batch, "next_value": next_value}
        )
        return {**terms, "entropy": -ops.mean(log_prob), "temperature": alpha}

    def targets(self, batch: Batch) -> Tensor:
        """Returns the targets of the critics, from the next soft value.

        Args:
            batch: dict of `[B, ...]`; see `train_step`. With `next_value`
                `[B]`, the soft value of the next states by the critics' one
                forward pass.

        Returns:
            `[B]` float32.
        """
        return batch["reward"] + batch["discount"] * batch["next_value"]

    def actor_terms(self, batch: Batch) -> Terms:
        """Computes the losses of policy and temperature on a minibatch.

        Args:
            batch: dict of `[B, ...]`; see `train_step`.

        Returns:
            dict: `loss`, a scalar, which is minimised.
        """
        return {"loss": super().actor_terms(batch)["loss"]}
