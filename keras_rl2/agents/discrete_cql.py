"""Conservative Q-learning of Discrete actions."""

from collections.abc import Sequence
from typing import Any
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
from keras_rl2.spaces.space_configs import GivenSpace
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Objective
from keras_rl2.updates.updater import Terms


@keras.saving.register_keras_serializable(package="keras_rl2")
class DiscreteCQL(CQL, DQN):
    """Conservative Q-learning of Discrete actions: `DQN` with a penalty.

    What `CQL` makes for Discrete actions. Every flag of `DQN` can be set; where
    there is an action mask, the sum of the penalty is over what is allowed.

    Args:
        q_network: `keras.Model` from observations to `[B, n]`, a value for
            each action; with `dueling` to `[B, 1 + n]`, V first; with
            `distributional` to `atoms` times as many numbers, those of V or of
            the first action first.
        alpha: float. Weight of the penalty. Defaults to `1.0`.
        threshold: float or None. Where α is to be learned, the penalty that it
            aims at: α grows while the penalty is larger, and falls while it is
            smaller. None for a fixed α. Defaults to `None`.
        double: bool. Whether the network that learns chooses the next action.
            Defaults to `True`.
        dueling: bool. Whether the network gives V and advantages. Defaults to
            `False`.
        distributional: None, `"categorical"` or `"quantile"`. Defaults to
            `None`.
        atoms: int. Atoms or quantiles of each distribution. Defaults to `51`.
        support: Sequence of two floats. Smallest and largest return that
            `"categorical"` knows of. Defaults to `(-10.0, 10.0)`.
        loss: str. `"huber"` (with a threshold of 1) or `"mse"` (half the
            square) of the TD error; distributions have losses of their own.
            Defaults to `"huber"`.
        epsilon: float or `keras.optimizers.schedules.LearningRateSchedule`
            over environment steps. Probability of a random action; it changes
            from round to round. None for a linear fall from 1 to 0.05 within
            10 000 steps. Defaults to `None`.
        epsilon_spread: float. α of Ape-X: environment i of B explores with
            ε^(1 + α i / (B - 1)), so that some of many hardly do; 7 as
            published. Defaults to `0.0`: all alike.
        max_gradient_norm: float or None. Global norm that gradients are
            clipped to. Defaults to `10.0`.
        tau: float. Share of the network that its target takes over when it
            moves. By 0.01 at each update it is about as old as a copy each 100
            of them. The 10 000 updates of Atari would be two or three copies
            in all on a task of 50 000 steps, and values grow by about a reward
            with each copy. Defaults to `0.01`.
        gamma: float. Discount factor. Defaults to `0.99`.
        target_every: int. Updates from one move of the target to the next; a
            copy now and then is `tau=1.0, target_every=1000`. Defaults to `1`.
        observation_space: `gymnasium.Space` or its config. What is observed;
            None to learn it from the first environment. Defaults to `None`.
        action_space: `gymnasium.Space` or its config. What can be done; None
            to learn it from the first environment. Defaults to `None`.
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
        env: Any,
        *,
        hidden: Sequence[int] | None = None,
        activation: str | None = None,
        normalize_observations: bool = False,
        layer_normalization: bool | None = None,
        initialization: Literal["orthogonal", "fan_in"] | None = None,
        memory: keras.layers.Layer | None = None,
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
                the algorithm's own, or those of the convolutional network.
                Defaults to `None`.
            activation: str or None. Activation of the hidden layers; None for
                the algorithm's own. Defaults to `None`.
            normalize_observations: bool. Whether the networks begin with an
                `ObservationNormalization` layer. Defaults to `False`.
            layer_normalization: bool or None. Whether a
                `keras.layers.LayerNormalization` stands before the activation
                of each hidden layer; None for the algorithm's own. Defaults to
                `None`.
            initialization: str or None. `"orthogonal"`, with small weights in
                the last layer of an actor; `"fan_in"`, as layers of PyTorch
                start; None for the algorithm's own. Defaults to `None`.
            memory: RNN cell of Keras or None, `keras.layers.LSTMCell(128)`
                say. What the policy remembers with, of what is seen; the
                hidden layers come after it, for each output its own. See
                `keras_rl2.networks.MemoryNetwork`. Defaults to `None`.
            alpha: float. Weight of the penalty. Defaults to `1.0`.
            threshold: float or None. Where α is to be learned, the penalty
                that it aims at: α grows while the penalty is larger, and falls
                while it is smaller. None for a fixed α. Defaults to `None`.
            double: bool. Whether the network that learns chooses the next
                action. Defaults to `True`.
            dueling: bool. Whether the network gives V and advantages. Defaults
                to `False`.
            distributional: None, `"categorical"` or `"quantile"`. Defaults to
                `None`.
            atoms: int. Atoms or quantiles of each distribution. Defaults to
                `51`.
            support: Sequence of two floats. Smallest and largest return that
                `"categorical"` knows of. Defaults to `(-10.0, 10.0)`.
            loss: str. `"huber"` (with a threshold of 1) or `"mse"` (half the
                square) of the TD error; distributions have losses of their
                own. Defaults to `"huber"`.
            epsilon: float or `keras.optimizers.schedules.LearningRateSchedule`
                over environment steps. Probability of a random action; it
                changes from round to round. None for a linear fall from 1 to
                0.05 within 10 000 steps. Defaults to `None`.
            epsilon_spread: float. α of Ape-X: environment i of B explores with
                ε^(1 + α i / (B - 1)), so that some of many hardly do; 7 as
                published. Defaults to `0.0`: all alike.
            max_gradient_norm: float or None. Global norm that gradients are
                clipped to. Defaults to `10.0`.
            tau: float. Share of the network that its target takes over when it
                moves. By 0.01 at each update it is about as old as a copy each
                100 of them. The 10 000 updates of Atari would be two or three
                copies in all on a task of 50 000 steps, and values grow by
                about a reward with each copy. Defaults to `0.01`.
            gamma: float. Discount factor. Defaults to `0.99`.
            target_every: int. Updates from one move of the target to the next;
                a copy now and then is `tau=1.0, target_every=1000`. Defaults
                to `1`.
            seed: int or None. Seeds weights, updates and `act`. Defaults to
                `None`.
            name: str or None. Name of the model. Defaults to `None`.
            dtype: str or None. Keras dtype policy of the agent and its
                networks, `"mixed_float16"` say; None for the global one.
                Defaults to `None`.

        Returns:
            The agent. Images get a convolutional network, all else an MLP.

        Raises:
            ValueError: If a space of the environment is not supported, or an
                argument is out of range.
            TypeError: If the algorithm does not take an argument.
        """
        raise NotImplementedError

    def objectives(self) -> dict[str, Objective]:
        """Returns the one loss of the network."""
        own = self._own_variables
        return {"q": Objective(self._terms, [self.q_network], own)}

    def loss_terms(self, outputs: Tensor, batch: Batch) -> Terms:
        """Computes what a minibatch costs: TD errors, and the penalty.

        Args:
            outputs: `[B, n, N]` float32. As of `DQN.loss_terms`.
            batch: dict of `[B, ...]`; as there.

        Returns:
            dict: `loss`, a scalar, which is minimised; `td_error` `[B]`; other
            scalars for the logs.
        """
        terms = super().loss_terms(outputs, batch)
        values = self.allowed(batch["observation"], self.q_values(outputs))
        penalty = losses.conservative_q(values, batch["action"])
        return self.conservative_terms(terms, [penalty], batch["weight"])


CQL.kinds[gymnasium.spaces.Discrete] = DiscreteCQL
