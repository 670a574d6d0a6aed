"""Conservative Q-learning."""

import math
from collections.abc import Collection
from collections.abc import Sequence
from typing import Any
from typing import ClassVar
from typing import Literal
from typing import Self
from typing import cast

import gymnasium
import keras
from keras import ops

from keras_rl2 import losses
from keras_rl2.agents.agent import as_given
from keras_rl2.agents.off_policy_agent import OffPolicyAgent
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.exploration.get import GivenNoise
from keras_rl2.networks import checks as network_checks
from keras_rl2.spaces.space_configs import GivenSpace
from keras_rl2.updates.critics import GivenCritics
from keras_rl2.updates.updater import Terms


def check_weight(alpha: float, threshold: float | None) -> None:
    """Checks the weight of a penalty.

    Args:
        alpha: float. See `CQL`.
        threshold: float or None. See `CQL`.

    Raises:
        ValueError: If a number is out of range.
    """
    lowest = 0.0 if threshold is None else 1e-12
    check_in_range(alpha=(alpha, lowest, 1e12))
    if threshold is not None:
        check_in_range(threshold=(threshold, -1e12, 1e12))


class CQL(OffPolicyAgent):
    """Conservative Q-learning, for Discrete and Box actions.

    Learns from a fixed dataset, which does not contain most actions. Where a
    critic overestimates one of these, it is never corrected, and the policy
    would choose just this action. Therefore the values of all actions are
    lowered, except those in the data. The loss of each critic has an
    additional term,

        α mean(log Σ_a exp Q(s, a) - Q(s, a_data))

    `CQL.for_env` makes a `keras_rl2.agents.DiscreteCQL`, based on `DQN`, or a
    `BoxCQL`, based on `SAC`; so does `CQL(q_network)` or `CQL(actor, critic)`.
    Both also take the arguments of their base, and can continue online from a
    `ReplayDataset`.

    Args:
        *networks: `keras.Model`. Networks of `DQN` or of `SAC`, in the order
            of their arguments.
        q_network: `keras.Model` or None. Network of `DQN`, as a keyword.
            Defaults to `None`.
        actor: `keras.Model` or None. Actor of `SAC`, as a keyword. Defaults to
            `None`.
        critic: `keras.Model`, a pair of them, or None. Critics of `SAC`, as a
            keyword. Defaults to `None`.
        alpha: float. α, weight of the penalty; with a `threshold` its initial
            value, above 0. The default for Box actions is 2.5. Defaults to
            `1.0`.
        threshold: float or None. Target of the penalty, where α is learned: α
            grows while the penalty is larger, and falls while it is smaller.
            None for a constant α. Defaults to `None`.
        num_samples: int. For Box actions, number of samples from each of the
            three distributions. Defaults to `10`.
        double: bool. Whether the online network, rather than its target,
            chooses the next action. Defaults to `True`.
        dueling: bool. Whether the network outputs V and advantages. Defaults
            to `False`.
        distributional: None, `"categorical"` or `"quantile"`. Defaults to
            `None`.
        atoms: int. Atoms or quantiles of each distribution. Defaults to `51`.
        support: Sequence of two floats. Smallest and largest return on the
            atoms of `"categorical"`. Defaults to `(-10.0, 10.0)`.
        loss: str. `"huber"` (with a threshold of 1) or `"mse"` (half the
            square) of the TD error; distributions have their own losses.
            Defaults to `"huber"`.
        epsilon: float or `keras.optimizers.schedules.LearningRateSchedule`
            over environment steps. Probability of a random action; it changes
            from round to round. None for a linear decay from 1 to 0.05 over
            10,000 steps. Defaults to `None`.
        epsilon_spread: float. α of Ape-X: environment i of B explores with
            ε^(1 + α i / (B - 1)), so that some of many environments hardly
            explore; 7 as published. Defaults to `0.0`: the same ε in all.
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
            clipped; None for no clipping. The default for Box actions is None.
            Defaults to `10.0`.
        tau: float. Polyak coefficient, above 0 and at most 1: a target network
            moves by this fraction towards the network that it follows; 1
            copies it. The default for Box actions is 0.005. Defaults to
            `0.01`.
        target_every: int. Number of updates per move of the target network;
            `tau=1.0, target_every=1000` copies it every 1000 updates. Defaults
            to `1`.
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
    >>> agent = rl.CQL.for_env("CartPole-v1", hidden=(32,), alpha=0.5, seed=0)
    >>> type(agent).__name__, isinstance(agent, rl.DQN)
    ('DiscreteCQL', True)
    >>> agent = rl.CQL.for_env("Pendulum-v1", hidden=(32,), seed=0)
    >>> type(agent).__name__, isinstance(agent, rl.CQL)
    ('BoxCQL', True)

    Reference:
        - [Kumar et al., 2020](https://arxiv.org/abs/2006.04779).
    """

    #: Subclasses by class of action space; each registers itself here.
    kinds: ClassVar[dict[type[gymnasium.Space[Any]], type["CQL"]]] = {}

    def __init__(
        self,
        *networks: GivenCritics,
        q_network: keras.Model | None = None,  # own words
        actor: keras.Model | None = None,  # own words
        critic: GivenCritics | None = None,  # own words
        alpha: float = 1.0,
        threshold: float | None = None,
        num_samples: int = 10,
        double: bool = True,
        dueling: bool = False,
        distributional: Literal["categorical", "quantile"] | None = None,
        atoms: int = 51,
        support: Sequence[float] = (-10.0, 10.0),
        loss: Literal["huber", "mse"] = "huber",
        epsilon: float
        | keras.optimizers.schedules.LearningRateSchedule
        | None = None,
        epsilon_spread: float = 0.0,
        temperature: float = 1.0,
        learn_temperature: bool = True,
        target_entropy: float | None = None,
        noise_color: Literal["pink", "white"] = "pink",
        exploration: GivenNoise | None = None,
        gamma: float = 0.99,
        max_gradient_norm: float | None = 10.0,  # own words
        tau: float = 0.01,  # own words
        target_every: int = 1,
        observation_space: GivenSpace | None = None,
        action_space: GivenSpace | None = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        # The signature for users: each of `kinds` has its own constructor.
        raise NotImplementedError

    @classmethod
    @as_given
    def for_env(
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
        alpha: float = 1.0,
        threshold: float | None = None,
        num_samples: int = 10,
        double: bool = True,
        dueling: bool = False,
        distributional: Literal["categorical", "quantile"] | None = None,
        atoms: int = 51,
        support: Sequence[float] = (-10.0, 10.0),
        loss: Literal["huber", "mse"] = "huber",
        epsilon: float
        | keras.optimizers.schedules.LearningRateSchedule
        | None = None,
        epsilon_spread: float = 0.0,
        temperature: float = 1.0,
        learn_temperature: bool = True,
        target_entropy: float | None = None,
        noise_color: Literal["pink", "white"] = "pink",
        exploration: GivenNoise | None = None,
        gamma: float = 0.99,
        max_gradient_norm: float | None = 10.0,
        tau: float = 0.01,
        target_every: int = 1,
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
            alpha: float. α, weight of the penalty; with a `threshold` its
                initial value, above 0. The default for Box actions is 2.5.
                Defaults to `1.0`.
            threshold: float or None. Target of the penalty, where α is
                learned: α grows while the penalty is larger, and falls while
                it is smaller. None for a constant α. Defaults to `None`.
            num_samples: int. For Box actions, number of samples from each of
                the three distributions. Defaults to `10`.
            double: bool. Whether the online network, rather than its target,
                chooses the next action. Defaults to `True`.
            dueling: bool. Whether the network outputs V and advantages.
                Defaults to `False`.
            distributional: None, `"categorical"` or `"quantile"`. Defaults to
                `None`.
            atoms: int. Atoms or quantiles of each distribution. Defaults to
                `51`.
            support: Sequence of two floats. Smallest and largest return on the
                atoms of `"categorical"`. Defaults to `(-10.0, 10.0)`.
            loss: str. `"huber"` (with a threshold of 1) or `"mse"` (half the
                square) of the TD error; distributions have their own losses.
                Defaults to `"huber"`.
            epsilon: float or `keras.optimizers.schedules.LearningRateSchedule`
                over environment steps. Probability of a random action; it
                changes from round to round. None for a linear decay from 1 to
                0.05 over 10,000 steps. Defaults to `None`.
            epsilon_spread: float. α of Ape-X: environment i of B explores with
                ε^(1 + α i / (B - 1)), so that some of many environments hardly
                explore; 7 as published. Defaults to `0.0`: the same ε in all.
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
                are clipped; None for no clipping. The default for Box actions
                is None. Defaults to `10.0`.
            tau: float. Polyak coefficient, above 0 and at most 1: a target
                network moves by this fraction towards the network that it
                follows; 1 copies it. The default for Box actions is 0.005.
                Defaults to `0.01`.
            target_every: int. Number of updates per move of the target
                network; `tau=1.0, target_every=1000` copies it every 1000
                updates. Defaults to `1`.
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

    @classmethod
    def _kind_for(
        cls, networks: Sequence[Any], given: Collection[str]
    ) -> "type[CQL]":
        """Returns the class that takes these networks."""
        if cls is not CQL:
            return cls
        pair = len(networks) > 1 or "actor" in given or "critic" in given
        spaces = gymnasium.spaces
        return cls.kinds[spaces.Box if pair else spaces.Discrete]

    def _weigh_penalty(self, alpha: float, threshold: float | None) -> None:
        """Sets the weight of the penalty, a variable with a threshold."""
        self.alpha = alpha
        self.threshold = threshold
        self.log_alpha: keras.Variable | None = None
        if threshold is not None:
            self.log_alpha = self.add_weight(
                shape=(),
                initializer=keras.initializers.Constant(math.log(alpha)),
                name="log_alpha",
            )

    @classmethod
    def for_action_space(
        cls, action_space: gymnasium.Space[Any]
    ) -> "type[CQL]":
        """Returns the class of agents for an action space."""
        if cls is not CQL:
            return cls
        network_checks.check_action_kind(cls, action_space, tuple(cls.kinds))
        [kind] = [
            kind
            for space, kind in cls.kinds.items()
            if isinstance(action_space, space)
        ]
        return kind

    def default_optimizer(self) -> keras.optimizers.Optimizer:
        """Returns the optimizer that `compile("auto")` uses."""
        return keras.optimizers.Adam(3e-4)

    @property
    def _own_variables(self) -> list[keras.Variable]:
        """Variables of the critics' loss that are in no network."""
        return [] if self.log_alpha is None else [self.log_alpha]

    def conservative_terms(
        self, terms: Terms, penalties: Sequence[Tensor], weight: Tensor
    ) -> Terms:
        """Adds penalties to the loss of critics.

        Args:
            terms: dict. Terms of the critics' TD errors.
            penalties: Sequence of `[B]`. Penalty of each critic.
            weight: `[B]`. Weight of each transition.

        Returns:
            dict: `loss`, a scalar, with α times the penalties and the loss of
            α itself; `cql_penalty`, their mean; `alpha`; and the other terms.
        """
        total = cast(Tensor, sum(penalties))
        mean = total / len(penalties)
        loss, alpha = terms["loss"], ops.convert_to_tensor(self.alpha)
        if self.log_alpha is not None:
            log_alpha = ops.convert_to_tensor(self.log_alpha)
            alpha = ops.stop_gradient(ops.exp(log_alpha))
            # Like a temperature, it grows while the penalty exceeds its target.
            loss += ops.mean(
                losses.temperature_loss(
                    log_alpha, -mean, -cast(float, self.threshold)
                )
            )
        return {
            **terms,
            "loss": loss + alpha * ops.mean(weight * total),
            "cql_penalty": ops.mean(mean),
            "alpha": alpha,
        }
