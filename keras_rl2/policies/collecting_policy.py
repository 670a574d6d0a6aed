"""The policy of a recurrent agent whose critics remember too."""

from typing import Any

import keras
import numpy as np

from keras_rl2.policies.agent_protocols import ActingPolicy
from keras_rl2.policies.agent_protocols import CollectingAgent


def collecting_policy(agent: CollectingAgent) -> ActingPolicy:
    """Returns the policy with which an agent collects.

    An agent with recurrent critics also has `remembering_critics`.
    """
    networks = getattr(agent, "remembering_critics", None)
    if not networks:
        return agent.policy
    found: Any = CollectingPolicy(agent.policy, networks)
    return found


class CollectingPolicy:
    """A policy that also steps the memories of critics, which replay stores.

    Their states begin as the policy's own do, where an episode begins, and are
    no part of the policy that is evaluated or exported.

    Args:
        policy: `ActingPolicy`. Its `policy_step` also takes the states of all
            networks, and then returns them all.
        networks: list of `keras.Model`. The critics.
    """

    def __init__(
        self, policy: ActingPolicy, networks: list[keras.Model]
    ) -> None:
        self._policy = policy
        self._networks = networks

    def __getattr__(self, name: str) -> Any:
        """Returns an attribute of the policy."""
        return getattr(self._policy, name)

    @property
    def acting_variables(self) -> list[keras.Variable]:
        """Keras variables that actions and states depend on."""
        further = [v for each in self._networks for v in each.variables]
        return [*self._policy.acting_variables, *further]

    def initial_state(self, batch_size: int) -> tuple[np.ndarray, ...]:
        """Returns all states at the start of B episodes."""
        states = [each.initial_state(batch_size) for each in self._networks]
        further = [np.asarray(each) for state in states for each in state]
        return (*self._policy.initial_state(batch_size), *further)
