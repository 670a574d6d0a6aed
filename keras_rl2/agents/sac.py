"""Soft actor-critic."""

import math
from typing import Any
from typing import Literal
from typing import Unpack
from typing import cast

import keras
import numpy as np
from keras import ops

from keras_rl2 import losses
from keras_rl2.agents.off_policy_agent import CriticAgent
from keras_rl2.agents.off_policy_agent import CriticArguments
from keras_rl2.agents.off_policy_agent import OffPolicyArguments
from keras_rl2.agents.off_policy_agent import TargetCriticArguments
from keras_rl2.agents.stochastic_policy import StochasticPolicy
from keras_rl2.basics import arguments
from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions import Categorical
from keras_rl2.exploration import AddedNoise
from keras_rl2.exploration import JoinedNoise
from keras_rl2.exploration import PolicyNoise
from keras_rl2.exploration import noises
from keras_rl2.spaces.supported import ACTION_MASK
from keras_rl2.updates.critics import GivenCritics
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Terms

_PINK = noises.PinkNoise(1.0)


class CrossQArguments(CriticArguments, total=False):
    """Arguments of `SAC` without target networks; see there."""

    temperature: float
    learn_temperature: bool
    target_entropy: float | None
    noise_color: Literal["pink", "white"]
    exploration: noises.GivenNoise | None


class SACArguments(CrossQArguments, OffPolicyArguments, total=False):
    """Arguments of `SAC` for subclasses; see there."""

    policy_delay: int


@keras.saving.register_keras_serializable(package="keras_rl2")
class SAC(StochasticPolicy, CriticAgent):
    """Soft actor-critic, for Box and Discrete actions.

    Maximises the return plus the policy's entropy times a temperature α, which
    is learned so that the entropy stays near a target. With the soft value of
    a state, from the smaller value of two critics,

        V(s) = E_a~π [min_i Q_i(s, a) - α log π(a|s)]

    the losses of critics, policy and temperature are

        L_Q = Σ_i ½ mean((r + discount V'(s') - Q_i(s, a))²)
        L_π = -mean(V(s)),   L_α = log α mean(H(π) - H_target)

    where V' uses the target critics. A squashed Gaussian is sampled once for E
    and its entropy; with Discrete actions both are exact sums. All three
    gradients are computed with the weights before the update.

    With recurrent networks it learns from sequences, as R2D2 does; see
    `sequence_length` and `burn_in` of the `ReplayDataset`.

    With `critics_in_target` it is randomized ensembled double Q-learning
    (REDQ): V' is the smallest value of so many target critics, drawn anew at
    each update, and L_π has the mean of all critics in place of the minimum.
    The published settings are `num_critics=10, critics_in_target=2,
    policy_delay=20` and 20 updates per environment step (`updates_per_round`
    of the `ReplayDataset`).

    Args:
        actor: `keras.Model` from observations to `[B, 2A]`, means and log
            standard deviations of a Box policy before tanh; or `[B, n]`
            logits.
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
        policy_delay: int. Number of updates of the critics per update of
            policy and temperature. The other updates report the last losses
            and statistics of the policy, initially 0. Above 1, actor and
            critics each have an optimizer, of which each counts its own
            updates. Defaults to `1`.
        critics_in_target: int or None. Number of target critics that are drawn
            at each update, of `num_critics`; None for all, and no mean in the
            policy's loss. Defaults to `None`.

    Example:

    >>> import keras_rl2 as rl
    >>> replay = rl.ReplayDataset("Pendulum-v1", batch_size=32, warm_up=64,
    ...                           updates_per_round=4, rounds_per_epoch=1,
    ...                           seed=0)
    >>> agent = rl.SAC.for_env("Pendulum-v1", hidden=(32,), seed=0)
    >>> history = agent.fit(replay, epochs=2, verbose=0)
    >>> sorted(history.history)[:4]
    ['actor_loss', 'critic_loss', 'entropy', 'env_steps']

    Reference:
        - [Haarnoja et al., 2018](https://arxiv.org/abs/1812.05905).
        - [Eberhard et al., 2023](https://openreview.net/forum?id=hQ9V5QN27eS),
          pink noise.
        - [Chen et al., 2021](https://arxiv.org/abs/2101.05982), REDQ.
        - [Christodoulou, 2019](https://arxiv.org/abs/1910.07207), Discrete.
        - [Ni et al., 2022](https://arxiv.org/abs/2110.05038), recurrent.
    """

    actor_width = -1
    takes_state_dependent_noise = True
    takes_memory = True
    statistics_names = (
        *CriticAgent.statistics_names,
        *("entropy", "temperature"),
    )
    actor_statistics: tuple[str, ...] = (
        *("actor_loss", "entropy", "temperature"),
    )

    def __init__(
        self,
        actor: keras.Model,
        critic: GivenCritics,
        *,
        temperature: float = 1.0,
        learn_temperature: bool = True,
        target_entropy: float | None = None,
        noise_color: Literal["pink", "white"] = "pink",
        exploration: noises.GivenNoise | None = None,
        policy_delay: int = 1,
        critics_in_target: int | None = None,
        **kwargs: Unpack[TargetCriticArguments],
    ) -> None:
        arguments.check_choice(noise_color=(noise_color, ("pink", "white")))
        arguments.check_in_range(temperature=(temperature, 1e-12, 1e12))
        arguments.check_flag(learn_temperature=learn_temperature)
        arguments.check_positive(policy_delay=policy_delay)
        if target_entropy is not None:
            arguments.check_in_range(
                target_entropy=(target_entropy, -1e12, 1e12)
            )
        super().__init__(actor, critic, **kwargs)
        if critics_in_target is not None:
            arguments.check_positive(critics_in_target=critics_in_target)
            if critics_in_target > self.num_critics:
                raise ValueError(
                    "Expected `critics_in_target` to be at most `num_critics`, "
                    f"{self.num_critics}. Received: {critics_in_target}"
                )
        self.policy_delay = policy_delay
        self.critics_in_target = critics_in_target
        self.exploration = noises.exploration_noise(exploration)
        self.noise_color = noise_color
        self.temperature = temperature
        self.learn_temperature = learn_temperature
        self.target_entropy = target_entropy
        self.log_temperature = self.add_weight(
            shape=(),
            initializer=keras.initializers.Constant(math.log(temperature)),
            trainable=learn_temperature,
            name="log_temperature",
        )

    def build_networks(self) -> None:
        """Checks networks and noise against the spaces; makes variables."""
        if self.exploration is not None and self.is_discrete:
            raise ValueError(
                "Expected `exploration=None` for Discrete actions, to which "
                f"no noise can be added. Received: {self.exploration!r}"
            )
        super().build_networks()

    @property
    def noise(self) -> PolicyNoise:
        """The policy's noise and the added noise, if any."""
        own, steps = super().noise, self.policy.noise_steps
        independent = not (self.is_discrete or self._noise_layers)
        if independent and self.noise_color == "pink":
            own = AddedNoise(_PINK, own.size, kind="normal")
        if self.exploration is None:
            return JoinedNoise([own])
        [size] = self.policy.head.action_shape
        return JoinedNoise([own, AddedNoise(self.exploration, size, steps)])

    def sample_action(self, observation: Any, noise: Tensor) -> Tensor:
        """Draws actions of the policy, and adds the added noise."""
        if self.exploration is None:
            return super().sample_action(observation, noise)
        [size] = self.policy.head.action_shape
        action = super().sample_action(observation, noise[:, :-size])
        return ops.clip(action + noise[:, -size:], -1.0, 1.0)

    @property
    def actor_variables(self) -> list[keras.Variable]:
        """Variables of the policy's loss that are in no network."""
        return [self.log_temperature] if self.learn_temperature else []

    def next_value(self, batch: Batch) -> Tensor:
        """Returns the soft values of the next states, `[B]` float32."""
        following = batch["next_observation"]
        return self.soft_value(self.target_critics, following, 0)[0]

    def actor_terms(self, batch: Batch) -> Terms:
        """Computes the losses of policy and temperature on a minibatch."""
        observation, weight = batch["observation"], batch["weight"]
        value, entropy = self.soft_value(
            self.critics, observation, 1, training=True
        )
        actor_loss = -ops.mean(weight * value)
        loss = actor_loss
        if self.learn_temperature:
            each = losses.temperature_loss(
                ops.convert_to_tensor(self.log_temperature),
                entropy,
                self._target_entropy(observation),
            )
            loss = loss + ops.mean(weight * each)
        return {
            "loss": loss,
            "actor_loss": actor_loss,
            "entropy": ops.mean(entropy),
            "temperature": self.current_temperature,
        }

    def soft_value(
        self,
        networks: list[keras.Model],
        observation: Any,
        stream: int,
        training: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Returns the soft value of states and the policy's entropy there.

        Args:
            networks: list of `keras.Model`. Critics, whose values count as
                `judged` says.
            observation: `[B, ...]`. Raw observations.
            stream: int. Index of the draw in this update.
            training: bool. Whether the policy is trained. Defaults to `False`.
        """
        if self.is_discrete:
            policy = self.distribution(observation, training)
            values = self.values(networks, observation, None)
            value = losses.expected_soft_value(
                cast(Categorical, policy).log_probs,
                self.judged(values, training),
                self.current_temperature,
            )
            return value, policy.entropy()
        action, log_prob = self.sample_with_log_prob(
            observation, stream, training
        )
        values = self.values(networks, observation, action)
        judged = self.judged(values, training)
        value = losses.soft_value(log_prob, judged, self.current_temperature)
        return value, -log_prob

    def judged(self, values: list[Tensor], training: bool) -> list[Tensor]:
        """Returns the Q-values of which the smallest counts.

        Args:
            values: list of `[B]` or `[B, n]`. Of each critic.
            training: bool. Whether the policy is trained; otherwise the values
                are those of a target.
        """
        if self.critics_in_target is None:
            return values
        if training:
            return [cast(Tensor, sum(values)) / len(values)]
        drawn = ops.argsort(self.draw_uniform((len(values),), 5))
        chosen = ops.take(ops.stack(values), drawn[: self.critics_in_target], 0)
        return list(ops.unstack(chosen, self.critics_in_target))

    def sample_with_log_prob(
        self, observation: Any, stream: int, training: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Draws actions `[B, A]` of a Box policy, in the unit box.

        `stream` distinguishes several draws of one update; see `draw_normal`.
        Gradients reach the policy through the actions and their
        log-probabilities `[B]`.
        """
        parameters = self.call(observation, training)
        # The last batch of a user's own dataset may be smaller.
        count = ops.shape(parameters)[:1]
        noise = self.draw_normal((*count, self.policy.head.noise.size), stream)
        policy = self.policy_of(parameters, observation)
        return policy.sample_and_log_prob(noise)

    @property
    def current_temperature(self) -> Tensor:
        """The temperature α, a float32 constant: it has a loss of its own."""
        log_temperature = ops.cast(self.log_temperature, "float32")
        return ops.stop_gradient(ops.exp(log_temperature))

    def _target_entropy(self, observation: Any) -> float | Tensor:
        """Returns the target entropy, `[B]` where actions are masked."""
        if self.target_entropy is not None:
            return self.target_entropy
        if not self.is_discrete:
            return -float(np.prod(self.policy.head.action_shape))
        if not self.policy.is_masked:
            return 0.89 * math.log(self.policy.head.parameter_sizes[0])
        mask = ops.cast(observation[ACTION_MASK], "float32")
        # The last observation of an episode may allow no action.
        return 0.89 * ops.log(ops.maximum(ops.sum(mask, axis=-1), 1.0))
