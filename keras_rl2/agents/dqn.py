"""Deep Q-networks."""

import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Literal
from typing import Unpack
from typing import cast

import keras
from keras import ops

from keras_rl2.agents.agent import AgentArguments
from keras_rl2.agents.off_policy_agent import OffPolicyAgent
from keras_rl2.agents.off_policy_agent import OffPolicyArguments
from keras_rl2.agents.value_policy import ValuePolicy
from keras_rl2.basics.arguments import check_flag
from keras_rl2.basics.shapes import Tensor
from keras_rl2.layers import NoisyDense
from keras_rl2.layers import noise_given
from keras_rl2.losses.value import of_action
from keras_rl2.losses.value_distributions import as_support
from keras_rl2.losses.value_distributions import value_distribution
from keras_rl2.networks.model_layers import layers_within
from keras_rl2.networks.network_copies import copy_of
from keras_rl2.networks.sequences import Sequences
from keras_rl2.networks.sequences import flat
from keras_rl2.networks.sequences import sequences_like
from keras_rl2.policies.epsilon_greedy import EpsilonGreedy
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Objective
from keras_rl2.updates.updater import Terms


class DQNArguments(OffPolicyArguments, total=False):
    """Arguments of `DQN` for subclasses; see there."""

    double: bool
    dueling: bool
    distributional: Literal["categorical", "quantile"] | None
    atoms: int
    support: Sequence[float]
    noisy: bool
    loss: Literal["huber", "mse"]
    epsilon: float | keras.optimizers.schedules.LearningRateSchedule | None


@keras.saving.register_keras_serializable(package="keras_rl2")
class DQN(ValuePolicy, OffPolicyAgent):
    """Deep Q-network, with the extensions of Rainbow as flags.

    Learns the value of each action from replayed transitions, with a target
    network Q' that follows Q:

        L = mean(½ w (r + γ max_a Q'(s', a) - Q(s, a))²)

    and takes the action of the largest value, or with probability ε a random
    action. Each flag is independent of the others, and of `n_step` and
    `prioritized` of the `ReplayDataset`:

    - `double`: Q chooses the next action, Q' evaluates it.
    - `dueling`: the network outputs V and advantages, Q = V + A - mean(A); with
      distributions, the logits or quantiles are combined in this way.
    - `distributional`: the network outputs the distribution of the return, by
      logits on fixed atoms (C51, trained by cross-entropy to the projected
      target) or by quantiles (QR-DQN, trained by the quantile Huber loss with
      a threshold of 1). Q is its mean.
    - `noisy`: the network has `keras_rl2.layers.NoisyDense` layers, whose noise
      explores. Each action has noise of its own, and so has each network in an
      update, the same for all rows of the minibatch. Greedy actions use the
      means of the weights.

    With a recurrent network it learns from sequences, as R2D2 does; see
    `sequence_length` and `burn_in` of the `ReplayDataset`.

    Args:
        q_network: `keras.Model` from observations to `[B, n]`, a value for
            each action; with `dueling` to `[B, 1 + n]`, V first; with
            `distributional` to `atoms` times as many numbers, those of V or of
            the first action first.
        double: bool. Whether the online network, rather than its target,
            chooses the next action. Defaults to `True`.
        dueling: bool. Whether the network outputs V and advantages. Defaults
            to `False`.
        distributional: None, `"categorical"` or `"quantile"`. Defaults to
            `None`.
        atoms: int. Atoms or quantiles of each distribution. Defaults to `51`.
        support: Sequence of two floats. Smallest and largest return on the
            atoms of `"categorical"`. Defaults to `(-10.0, 10.0)`.
        noisy: bool. Whether the network has `NoisyDense` layers. Defaults to
            `False`.
        loss: str. `"mse"` (half the square) or `"huber"` (with a threshold of
            1) of the TD error; distributions have their own losses. Where
            rewards are chance, the minimum of `"huber"` is near their median,
            not their mean. Defaults to `"mse"`.
        epsilon: float or `keras.optimizers.schedules.LearningRateSchedule`
            over environment steps. Probability of a random action; it changes
            from round to round. None for a linear decay from 1 to 0.05 over
            10,000 steps, or for 0 with `noisy`. Defaults to `None`.
        max_gradient_norm: float or None. Global norm to which gradients are
            clipped; None for no clipping. Defaults to `10.0`.
        tau: float. Polyak coefficient, above 0 and at most 1: the target
            network moves by this fraction towards the network; 1 copies it.
            With 0.01 at each update, the target is 100 updates old on average.
            Copies every 10,000 updates, as for Atari, would be two or three in
            a task of 50,000 steps, while values grow by about a reward with
            each copy. Defaults to `0.01`.
        target_every: int. Number of updates per move of the target network;
            `tau=1.0, target_every=1000` copies it every 1000 updates. Defaults
            to `1`.

    Example:

    >>> import keras_rl2 as rl
    >>> replay = rl.ReplayDataset("CartPole-v1", batch_size=32, warm_up=64,
    ...                           n_step=3, rounds_per_epoch=1, seed=0)
    >>> agent = rl.DQN.for_env("CartPole-v1", hidden=(32,), double=True,
    ...                        seed=0)
    >>> history = agent.fit(replay, epochs=2, verbose=0)
    >>> sorted(history.history)[:3]
    ['env_steps', 'episode_length', 'episode_return']

    Reference:
        - [Mnih et al., 2015](https://doi.org/10.1038/nature14236).
        - [van Hasselt et al., 2016](https://arxiv.org/abs/1509.06461), double.
        - [Wang et al., 2016](https://arxiv.org/abs/1511.06581), dueling.
        - [Bellemare et al., 2017](https://arxiv.org/abs/1707.06887), C51.
        - [Dabney et al., 2018](https://arxiv.org/abs/1710.10044), QR-DQN.
        - [Fortunato et al., 2018](https://arxiv.org/abs/1706.10295), noisy.
        - [Hessel et al., 2018](https://arxiv.org/abs/1710.02298), Rainbow.
        - [Kapturowski et al., 2019](https://openreview.net/forum?id=r1lyTjAqYX),
          R2D2.
    """

    target_network: keras.Model
    takes_memory = True
    # `loss` is an attribute of Keras.
    argument_attributes = {"loss": "loss_name"}
    # `fit` ends with averaged weights: single ones still follow chance.
    default_adam: Mapping[str, Any] = {
        "learning_rate": 2e-4,
        "use_ema": True,
        "ema_momentum": 0.999,
    }
    updates_per_step = 0.5
    default_batch_size = 64
    statistics_names: tuple[str, ...] = (
        *("loss", "q_value", "td_error", "gradient_norm"),
    )

    def __init__(
        self,
        q_network: keras.Model,
        *,
        double: bool = True,
        dueling: bool = False,
        distributional: Literal["categorical", "quantile"] | None = None,
        atoms: int = 51,
        support: Sequence[float] = (-10.0, 10.0),
        noisy: bool = False,
        loss: Literal["huber", "mse"] = "mse",
        epsilon: float
        | keras.optimizers.schedules.LearningRateSchedule
        | None = None,
        max_gradient_norm: float | None = 10.0,
        tau: float = 0.01,
        target_every: int = 1,
        **kwargs: Unpack[AgentArguments],
    ) -> None:
        check_flag(double=double, dueling=dueling, noisy=noisy)
        support = as_support(support)
        values = value_distribution(distributional, atoms, support, loss)
        epsilon = 0.0 if noisy and epsilon is None else epsilon
        exploring = EpsilonGreedy(epsilon)
        super().__init__(
            max_gradient_norm=max_gradient_norm,
            tau=tau,
            target_every=target_every,
            **kwargs,
        )
        self.q_network = q_network
        self.double = double
        self.dueling = dueling
        self.distributional = distributional
        self.atoms = atoms
        self.support = support
        self.noisy = noisy
        self.loss_name = loss
        self.epsilon = exploring.epsilon
        self.values = values
        self.exploring = exploring

    def build_networks(self) -> None:
        """Checks the network against the spaces and makes all variables."""
        super().build_networks()
        layers = layers_within(self.q_network)
        noisy = [each for each in layers if isinstance(each, NoisyDense)]
        memory = self.policy.memory
        if bool(noisy) != self.noisy or (noisy and memory is not None):
            raise ValueError(
                "Expected `NoisyDense` layers with `noisy=True` alone, and no "
                f"memory then. Received: {noisy} and memory={memory}"
            )
        self.noise_size = sum(each.noise_size for each in noisy)
        self.target_network = copy_of(
            self.q_network, f"target_{self.q_network.name}"
        )

    @property
    def target_pairs(self) -> list[tuple[keras.Model, keras.Model]]:
        """The pair of the target network and the network that it follows."""
        return [(self.target_network, self.q_network)]

    def objectives(self) -> dict[str, Objective]:
        """Returns the only loss, that of the network."""
        return {"q": Objective(self._terms, [self.q_network])}

    def _terms(self, batch: Batch) -> Terms:
        """Runs the network once, and returns `loss_terms`."""
        if self.policy.memory is not None:
            return self.loss_terms(*self._steps_of_sequences(batch))
        encoded = self.policy.encode(batch["observation"])
        # For the network, its target, and the network that chooses an action.
        shape = (1, 3 * self.noise_size)
        noise = self.draw_normal(shape, 0) if self.noisy else None
        with noise_given(noise):
            outputs = self.outputs_of(self.q_network, encoded, training=True)
            return self.loss_terms(outputs, batch)

    def _steps_of_sequences(self, batch: Batch) -> tuple[Tensor, Batch]:
        """Runs the networks on M sequences of L steps, as R2D2 does.

        Args:
            batch: dict; see `keras_rl2.data.SequenceReplayBuffer.sample`.

        Returns:
            Outputs of the network for M * L steps, and the steps, with
            `next_outputs` and `selector`; see `loss_terms`.
        """
        steps: dict[str, Any] = dict(batch)
        span, state = steps.pop("span"), steps.pop("state")
        networks = self.q_network, self.target_network
        every = Sequences(
            *(steps.pop("observation"), steps.pop("begins")),
            *(dict.fromkeys(networks, state), steps.pop("burn_in")),
        )
        seen: Any = self.policy.encode(every)
        outputs = self.outputs_of(self.q_network, seen, training=True)
        next_outputs = self.outputs_of(self.target_network, seen)
        choosing = ops.stop_gradient(outputs) if self.double else next_outputs
        selector = self.allowed_values(cast(Any, every), choosing)
        place = ops.arange(span.shape[1], dtype="int32") + 0 * span
        present = dataclasses.replace(every, places=place)
        # The steps from which each step bootstraps.
        following = dataclasses.replace(every, places=place + span)
        sequences = sequences_like(every.begins)
        return present.rows(sequences(outputs)), {
            **map_leaves(flat, steps),
            "observation": present,
            "next_outputs": following.rows(sequences(next_outputs)),
            "selector": following.rows(sequences(selector)),
        }

    def loss_terms(self, outputs: Tensor, batch: Batch) -> Terms:
        """Computes the loss of a minibatch: here, that of the TD errors.

        Args:
            outputs: `[B, n, N]` float32. Outputs of the forward pass: N
                numbers for each action, from which `q_values` computes
                Q-values.
            batch: dict of `[B, ...]`; see `train_step`. For sequences, B
                counts their steps, and `next_observation` is replaced by the
                target network's `next_outputs` `[B, n, N]` and by `selector`
                `[B, n]`, whose largest entry is that of the next action.

        Returns:
            dict: `loss`, a scalar, which is minimised; `td_error` `[B]`; other
            scalars for the logs.
        """
        if "next_outputs" not in batch:
            batch = batch | self._next_outputs(batch["next_observation"])
        # [B, n, N] -> [B, N]
        taken = of_action(outputs, batch["action"])
        following = of_action(
            batch["next_outputs"], ops.argmax(batch["selector"], axis=-1)
        )
        each, td_error = self.values.compare(
            taken,
            self.values.target(batch["reward"], batch["discount"], following),
        )
        return {
            "loss": ops.mean(batch["weight"] * each),
            "q_value": ops.mean(self.values.mean(taken)),
            "td_error": ops.abs(td_error),
        }

    def _next_outputs(self, observation: Tree[Tensor]) -> Batch:
        """Returns `next_outputs` and `selector`; see `loss_terms`."""
        encoded = self.policy.encode(observation)
        next_outputs = self.outputs_of(self.target_network, encoded)
        choosing = next_outputs
        if self.double:
            choosing = self.outputs_of(self.q_network, encoded)
        return {
            "next_outputs": next_outputs,
            "selector": self.allowed_values(observation, choosing),
        }
