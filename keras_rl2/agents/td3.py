"""Twin delayed deep deterministic policy gradient."""

import functools
from collections.abc import Sequence
from typing import Literal
from typing import Unpack

import gymnasium
import keras
from keras import ops

from keras_rl2.agents.off_policy_agent import CriticAgent
from keras_rl2.agents.off_policy_agent import CriticArguments
from keras_rl2.agents.off_policy_agent import LearningArguments
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.shapes import Tensor
from keras_rl2.exploration import AddedNoise
from keras_rl2.exploration import PolicyNoise
from keras_rl2.exploration import noises
from keras_rl2.losses.value import of_action
from keras_rl2.losses.value_distributions import as_support
from keras_rl2.losses.value_distributions import value_distribution
from keras_rl2.networks import checks as network_checks
from keras_rl2.networks import inputs
from keras_rl2.networks.network_copies import copy_of
from keras_rl2.spaces.trees import Tree
from keras_rl2.updates.critics import GivenCritics
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Terms


class DDPGArguments(LearningArguments, total=False):
    """Arguments of `TD3` that `DDPG` takes, too; see there."""

    exploration: noises.GivenNoise | None
    tau: float


class TD3Arguments(DDPGArguments, CriticArguments, total=False):
    """Arguments of `TD3` for subclasses; see there."""

    policy_delay: int
    target_noise: float
    target_noise_clip: float
    target_every: int | None
    distributional: Literal["categorical", "quantile"] | None
    atoms: int
    support: Sequence[float]


@keras.saving.register_keras_serializable(package="keras_rl2")
class TD3(CriticAgent):
    """Twin delayed deep deterministic policy gradient, for Box actions.

    DDPG with three remedies against overestimated values: targets use the
    smaller value of two target critics; noise is added to target actions, so
    that values are smooth; and the policy is updated less often than the
    critics. With π = tanh of the actor's output, and a prime for target
    networks,

        a' = clip(π'(s') + clip(σ N(0, 1), -c, c), -1, 1)
        L_Q = Σ_i ½ mean((r + discount min_i Q'_i(s', a') - Q_i(s, a))²)
        L_π = -mean(Q_1(s, π(s)))

    Of n updates, floor(n / `policy_delay`) update the actor too, and by default
    target networks move in the same ones. In these, both gradients are computed
    with the weights before the update, while Stable-Baselines3 updates the
    critics first. The default learning rate is 0.001. The other updates report
    the last loss of the actor, initially 0.

    For exploration, noise is added to the policy's action within the unit box
    of -1 ... 1 in each dimension, and the sum is clipped to it. Actor and
    critics each have an optimizer, as a delayed actor is updated less often
    and Adam counts its updates. Unless `compile` receives two optimizers, that
    of the critics is made like that of the actor.

    With recurrent networks it learns from sequences, as R2D2 does; see
    `sequence_length` and `burn_in` of the `ReplayDataset`.

    Args:
        actor: `keras.Model` from observations to `[B, A]`, before tanh; or
            after it, if the network itself ends in a tanh.
        policy_delay: int. Number of updates of the critics per update of the
            actor. Defaults to `2`.
        target_noise: float. σ, standard deviation of the noise added to target
            actions, in units of half an action's range. Defaults to `0.2`.
        target_noise_clip: float. c, bound to which the noise of target actions
            is clipped, in the same units. Defaults to `0.5`.
        exploration: float, str, dict, `ExplorationNoise` or None. Noise added
            to actions, in units of half their range; a number is the scale of
            `GaussianNoise`. Defaults to `0.1`.
        distributional: None, `"categorical"` or `"quantile"`. Distributions of
            the return that critics output, as of `DQN`: the target is that of
            the target critic with the smaller mean, and Q is the mean. FastTD3
            is `"categorical"` with 101 atoms, on many environments. Defaults
            to `None`.
        atoms: int. Atoms or quantiles of each distribution: the number of
            outputs of a critic. Defaults to `51`.
        support: Sequence of two floats. Smallest and largest return on the
            atoms of `"categorical"`. Defaults to `(-10.0, 10.0)`.
        target_every: int or None. Number of updates per move of the target
            networks; None for `policy_delay`. Defaults to `None`.
        max_gradient_norm: float or None. Global norm to which gradients are
            clipped, those of the actor and of the critics separately; None for
            no clipping. Defaults to `None`.

    Example:

    >>> import keras_rl2 as rl
    >>> replay = rl.ReplayDataset("Pendulum-v1", batch_size=32, warm_up=64,
    ...                           updates_per_round=4, rounds_per_epoch=1,
    ...                           seed=0)
    >>> agent = rl.TD3.for_env("Pendulum-v1", hidden=(32,), seed=0)
    >>> history = agent.fit(replay, epochs=2, verbose=0)
    >>> sorted(history.history)[:4]
    ['actor_loss', 'critic_loss', 'env_steps', 'episode_length']

    Reference:
        - [Fujimoto et al., 2018](https://arxiv.org/abs/1802.09477).
        - [Ni et al., 2022](https://arxiv.org/abs/2110.05038), recurrent.
        - [Seo et al., 2025](https://arxiv.org/abs/2505.22642), FastTD3.
    """

    action_kinds = (gymnasium.spaces.Box,)
    has_critic_optimizer = True
    takes_memory = True
    default_adam = {"learning_rate": 1e-3, "name": "actor"}
    target_actor: keras.Model
    _gives_actions = False

    def __init__(
        self,
        actor: keras.Model,
        critic: GivenCritics,
        *,
        policy_delay: int = 2,
        target_noise: float = 0.2,
        target_noise_clip: float = 0.5,
        exploration: noises.GivenNoise | None = 0.1,
        distributional: Literal["categorical", "quantile"] | None = None,
        atoms: int = 51,
        support: Sequence[float] = (-10.0, 10.0),
        target_every: int | None = None,
        tau: float = 0.005,
        **kwargs: Unpack[CriticArguments],
    ) -> None:
        check_positive(policy_delay=policy_delay)
        check_in_range(
            target_noise=(target_noise, 0.0, 1e12),
            target_noise_clip=(target_noise_clip, 0.0, 1e12),
        )
        support = as_support(support)
        values = value_distribution(distributional, atoms, support)
        super().__init__(
            actor,
            critic,
            target_every=policy_delay if target_every is None else target_every,
            tau=tau,
            **kwargs,
        )
        self.value_distribution = values
        self.distributional = distributional
        self.atoms = atoms
        self.support = support
        self.target_noise = target_noise
        self.target_noise_clip = target_noise_clip
        self.policy_delay = policy_delay
        self.exploration = noises.exploration_noise(exploration)

    def build_actor(self, *sizes: int, squash: bool = False) -> None:
        """Checks the actor, whose output has one of the given widths."""
        network_checks.check_width("actor", self.actor, self.policy, *sizes)
        if self.policy.memory is not None:
            return
        seen = self.policy.encode.network_input
        self._gives_actions = network_checks.check_action_ending(
            self.actor, inputs.inputs_for(self.actor, seen)
        )

    def make_targets(self) -> None:
        """Makes the target networks, copies of critics and actor."""
        super().make_targets()
        self.target_actor = copy_of(self.actor, f"target_{self.actor.name}")

    @property
    def target_pairs(self) -> list[tuple[keras.Model, keras.Model]]:
        """Pairs of a target network and the network that it follows."""
        return [(self.target_actor, self.actor), *super().target_pairs]

    def call(self, observation: Tree[Tensor], training: bool = False) -> Tensor:
        """Returns the output of the actor `[B, A]`."""
        encoded = self.policy.encode(observation)
        return inputs.run_network(self.actor, encoded, training)

    def sample_action(self, observation: Tree[Tensor], noise: Tensor) -> Tensor:
        """Adds noise to the policy's actions."""
        return ops.clip(self.greedy_action(observation) + noise, -1.0, 1.0)

    def greedy_action(self, observation: Tree[Tensor]) -> Tensor:
        """Returns the policy's actions in the unit box `[B, A]`."""
        return self._action(self.call(observation))

    def _action(self, output: Tensor) -> Tensor:
        """Returns the action in the unit box for an actor's output."""
        output = ops.cast(output, "float32")
        return output if self._gives_actions else ops.tanh(output)

    @property
    def noise(self) -> PolicyNoise:
        """The noise that `sample_action` adds, with its present scale."""
        [size] = self.policy.head.action_shape
        return AddedNoise(self.exploration, size, self.policy.noise_steps)

    def next_value(self, batch: Batch) -> Tensor:
        """Returns the smallest value of each next action, `[B]` float32.

        Of distributions, it returns the outputs `[B, N]` of the smallest mean.
        """
        following = self.policy.encode(batch["next_observation"])
        outputs = self.critic_outputs(
            self.target_critics, following, self.target_action(following)
        )
        means = [*map(self.value_distribution.mean, outputs)]
        if self.value_distribution.atoms == 1:
            return functools.reduce(ops.minimum, means)
        smallest = ops.argmin(ops.stack(means, axis=1), axis=1)
        return of_action(ops.stack(outputs, axis=1), smallest)

    def target_action(self, encoded: Tree[Tensor]) -> Tensor:
        """Returns the next actions of the targets.

        Args:
            encoded: `[B, ...]`. Next observations as inputs of networks.

        Returns:
            `[B, A]` float32 in the unit box, with noise if `target_noise` is
            not 0.
        """
        action = self._action(inputs.run_network(self.target_actor, encoded))
        if not self.target_noise:
            return action
        noise = self.target_noise * self.draw_normal(ops.shape(action), 0)
        noise = ops.clip(noise, -self.target_noise_clip, self.target_noise_clip)
        return ops.clip(action + noise, -1.0, 1.0)

    def actor_terms(self, batch: Batch) -> Terms:
        """Computes the loss of the actor on a minibatch."""
        observation = batch["observation"]
        encoded = self.policy.encode(observation)
        action = self._action(
            inputs.run_network(self.actor, encoded, training=True)
        )
        value = self.values(self.critics[:1], observation, action)[0]
        each = self.actor_losses(value, action, batch)
        return {"loss": ops.mean(batch["weight"] * each)}

    def actor_losses(
        self, value: Tensor, action: Tensor, batch: Batch
    ) -> Tensor:
        """Returns the loss of each action of the policy: here, -Q_1(s, π(s)).

        Args:
            value: `[B]` float32. Q-values of the first critic.
            action: `[B, A]` float32. The policy's, in the unit box.
            batch: dict of `[B, ...]`; see `train_step`.

        Returns:
            `[B]` float32, to minimise.
        """
        del action, batch
        return -value
