"""Conservative Q-learning of Discrete actions."""

from collections.abc import Sequence
from typing import Literal
from typing import Self

import gymnasium
import keras

from keras_rl2 import losses
from keras_rl2.agents.agent import as_given
from keras_rl2.agents.cql import CQL
from keras_rl2.agents.cql import check_weight
from keras_rl2.agents.dqn import DQN
from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.spaces.space_configs import GivenSpace
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Objective
from keras_rl2.updates.updater import Terms


@keras.saving.register_keras_serializable(package="keras_rl2")
class DiscreteCQL(CQL, DQN):
    """Conservative Q-learning of Discrete actions: `DQN` with a penalty.

    `CQL` makes it for Discrete actions. All flags of `DQN` are supported; with
    an action mask, the sum of the penalty is over allowed actions.

    Args:
        q_network: `keras.Model` from observations to `[B, n]`, a value for
            each action; with `dueling` to `[B, 1 + n]`, V first; with
            `distributional` to `atoms` times as many numbers, those of V or of
            the first action first.
        alpha: float. Weight of the penalty. Defaults to `1.0`.
        threshold: float or None. Target of the penalty, where α is learned: α
            grows while the penalty is larger, and falls while it is smaller.
            None for a constant α. Defaults to `None`.
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
        max_gradient_norm: float or None. Global norm to which gradients are
            clipped; None for no clipping. Defaults to `10.0`.
        tau: float. Polyak coefficient, above 0 and at most 1: the target
            network moves by this fraction towards the network; 1 copies it.
            With 0.01 at each update, the target is about as old as a copy made
            every 100 updates. Copies every 10,000 updates, as for Atari, would
            be two or three in a task of 50,000 steps, while values grow by
            about a reward with each copy. Defaults to `0.01`.
        gamma: float. Discount factor. Defaults to `0.99`.
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
        ValueError: If an argument is out of range or the network does not
            fit.

    Example:

    >>> import keras_rl2 as rl
    >>> replay = rl.ReplayDataset("CartPole-v1", batch_size=32, warm_up=64,
    ...                           rounds_per_epoch=1, seed=0)
    >>> agent = rl.agents.DiscreteCQL.for_env("CartPole-v1", hidden=(32,),
    ...                                       double=True, seed=0)
    >>> history = agent.fit(replay, epochs=2, verbose=0)
    >>> sorted(history.history)[:3]
    ['alpha', 'cql_penalty', 'env_steps']

    Reference:
        - [Kumar et al., 2020](https://arxiv.org/abs/2006.04779), CQL(H).
    """

    statistics_names = (*DQN.statistics_names, "cql_penalty", "alpha")

    def __init__(
        self,
        q_network: keras.Model,
        *,
        alpha: float = 1.0,  # own words
        threshold: float | None = None,
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
        max_gradient_norm: float | None = 10.0,
        tau: float = 0.01,
        gamma: float = 0.99,
        target_every: int = 1,
        observation_space: GivenSpace | None = None,
        action_space: GivenSpace | None = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        check_weight(alpha, threshold)
        DQN.__init__(
            self,
            q_network,
            double=double,
            dueling=dueling,
            distributional=distributional,
            atoms=atoms,
            support=support,
            loss=loss,
            epsilon=epsilon,
            epsilon_spread=epsilon_spread,
            max_gradient_norm=max_gradient_norm,
            tau=tau,
            gamma=gamma,
            target_every=target_every,
            observation_space=observation_space,
            action_space=action_space,
            seed=seed,
            name=name,
            dtype=dtype,
        )
        self._weigh_penalty(alpha, threshold)

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
        alpha: float = 1.0,
        threshold: float | None = None,
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
        max_gradient_norm: float | None = 10.0,
        tau: float = 0.01,
        gamma: float = 0.99,
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
            alpha: float. Weight of the penalty. Defaults to `1.0`.
            threshold: float or None. Target of the penalty, where α is
                learned: α grows while the penalty is larger, and falls while
                it is smaller. None for a constant α. Defaults to `None`.
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
            max_gradient_norm: float or None. Global norm to which gradients
                are clipped; None for no clipping. Defaults to `10.0`.
            tau: float. Polyak coefficient, above 0 and at most 1: the target
                network moves by this fraction towards the network; 1 copies
                it. With 0.01 at each update, the target is about as old as a
                copy made every 100 updates. Copies every 10,000 updates, as
                for Atari, would be two or three in a task of 50,000 steps,
                while values grow by about a reward with each copy. Defaults to
                `0.01`.
            gamma: float. Discount factor. Defaults to `0.99`.
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

    def objectives(self) -> dict[str, Objective]:
        """Returns the only loss, that of the network."""
        own = self._own_variables
        return {"q": Objective(self._terms, [self.q_network], own)}

    def loss_terms(self, outputs: Tensor, batch: Batch) -> Terms:
        """Computes the loss of a minibatch: TD errors and the penalty.

        Args:
            outputs: `[B, n, N]` float32; see `DQN.loss_terms`.
            batch: dict of `[B, ...]`; see `DQN.loss_terms`.

        Returns:
            dict: `loss`, a scalar, which is minimised; `td_error` `[B]`; other
            scalars for the logs.
        """
        terms = super().loss_terms(outputs, batch)
        values = self.task.allowed(batch["observation"], self.q_values(outputs))
        penalty = losses.conservative_q(values, batch["action"])
        return self.conservative_terms(terms, [penalty], batch["weight"])


CQL.kinds[gymnasium.spaces.Discrete] = DiscreteCQL
