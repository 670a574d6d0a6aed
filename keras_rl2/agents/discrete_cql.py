"""Conservative Q-learning of Discrete actions."""

from typing import Any

import gymnasium
import keras

from keras_rl2 import losses
from keras_rl2.agents.cql import CQL
from keras_rl2.agents.dqn import DQN
from keras_rl2.agents.objective import Batch
from keras_rl2.agents.objective import Objective
from keras_rl2.agents.objective import Terms
from keras_rl2.shapes import Tensor


@keras.saving.register_keras_serializable(package="keras_rl2")
class DiscreteCQL(CQL, DQN):
    """Conservative Q-learning of Discrete actions: `DQN` with a penalty.

    What `CQL` makes for Discrete actions. Every flag of `DQN` can be set; where
    there is an action mask, the sum of the penalty is over what is allowed.

    Args:
        q_network: `keras.Model`, as of `DQN`.
        alpha: float. Weight of the penalty. Defaults to `1.0`.
        threshold: float or None. As of `CQL`. Defaults to `None`.
        **kwargs: Arguments of `DQN`: `double`, `dueling`, `distributional`,
            `atoms`, `support`, `loss`, `epsilon`, `epsilon_spread`, `gamma`,
            `max_gradient_norm`, `tau`, `target_every`, `observation_space`,
            `action_space`, `seed`, `name`, `dtype`.

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
        self, q_network: keras.Model, *, alpha: float = 1.0, **kwargs: Any
    ) -> None:
        super().__init__(q_network, alpha=alpha, **kwargs)

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
