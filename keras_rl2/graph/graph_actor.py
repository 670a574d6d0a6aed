"""An agent's policy for rollouts in the graph."""

from typing import Any
from typing import NoReturn

import numpy as np

from keras_rl2.policies.actors import weights_of
from keras_rl2.policies.policy import Policy


class GraphActor:
    """The policy itself, which a rollout in the graph contains.

    Unlike an `ActorSnapshot` it is neither copied nor converted: nothing
    changes the weights within a rollout.

    Args:
        agent: `Policy`. Bound to its spaces, and not recurrent.
        num_envs: int. Number of environments.

    Attributes:
        agent: `Policy`.

    Example:

    >>> import keras_rl2 as rl
    >>> agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    >>> GraphActor(agent, num_envs=2).sync()
    """

    def __init__(self, agent: Policy, num_envs: int) -> None:
        del num_envs
        self.agent = agent
        self._variables = list(agent.acting_variables)

    def sync(self) -> None:
        """Checks the agent's present weights.

        Raises:
            ValueError: If they are not finite.
        """
        weights_of(self._variables)

    def begin(self, envs: np.ndarray) -> None:
        """Has nothing to mark: the policy is not recurrent.

        Args:
            envs: `[B]` bool. Environments that begin new episodes.
        """

    def __call__(self, observation: Any, noise: Any) -> NoReturn:
        """Raises: it acts in a graph only.

        Raises:
            TypeError: Always.
        """
        raise TypeError(
            "Expected a rollout in the graph, by a `GraphCollector`. Received: "
            "a call with the observations of one step"
        )
