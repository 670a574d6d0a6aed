"""Conservative Q-learning of Discrete actions."""

from typing import Unpack

import gymnasium
import keras

from keras_rl2 import losses
from keras_rl2.agents.cql import CQL
from keras_rl2.agents.cql import check_weight
from keras_rl2.agents.dqn import DQN
from keras_rl2.agents.dqn import DQNArguments
from keras_rl2.basics.shapes import Tensor
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Objective
from keras_rl2.updates.updater import Terms


@keras.saving.register_keras_serializable(package="keras_rl2")
class DiscreteCQL(CQL, DQN):
    """Conservative Q-learning of Discrete actions: `DQN` with a penalty.

    `CQL` makes it for Discrete actions. All flags of `DQN` are supported; with
    an action mask, the sum of the penalty is over allowed actions.

    Args:
        alpha: float. Weight of the penalty. Defaults to `1.0`.
        threshold: float or None. Target of the penalty, where α is learned: α
            grows while the penalty is larger, and falls while it is smaller.
            None for a constant α. Defaults to `None`.

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
        **kwargs: Unpack[DQNArguments],
    ) -> None:
        check_weight(alpha, threshold)
        DQN.__init__(self, q_network, **kwargs)
        self._weigh_penalty(alpha, threshold)

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
        values = self.allowed_values(batch["observation"], outputs)
        penalty = losses.conservative_q(values, batch["action"])
        return self.conservative_terms(terms, [penalty], batch["weight"])


CQL.kinds[gymnasium.spaces.Discrete] = DiscreteCQL
