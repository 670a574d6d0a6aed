"""Off-policy agents with an actor and critics."""

from typing import Any

import gymnasium
import keras

from keras_rl2.agents.off_policy_agent import OffPolicyAgent
from keras_rl2.basics.shapes import Tensor
from keras_rl2.spaces.trees import Tree
from keras_rl2.updates import critics


class CriticAgent(OffPolicyAgent):
    """Base of agents with critics, each with a target network.

    A subclass makes the attributes `actor` and `critics`, and a second critic
    in `_check_and_build` where one was given.
    """

    actor: keras.Model
    critics: list[keras.Model]
    target_critics: list[keras.Model]
    #: Number of critics.
    number_of_critics = 2

    def given_networks(self) -> dict[str, Any]:
        """Returns the networks, keyed by constructor argument."""
        return {"actor": self.actor, "critic": self.critics}

    @property
    def is_discrete(self) -> bool:
        """Whether actions are Discrete, and critics value all of them."""
        return isinstance(self.action_space, gymnasium.spaces.Discrete)

    def make_targets(self) -> None:
        """Makes the target networks, copies of the critics."""
        self.target_critics = critics.targets_of(self.critics)

    @property
    def target_pairs(self) -> list[tuple[keras.Model, keras.Model]]:
        """Pairs of a target network and the network that it follows."""
        return list(zip(self.target_critics, self.critics, strict=True))

    def critic_variables(self) -> list[keras.Variable]:
        """Trainable variables that a `critic_optimizer` updates."""
        return [v for c in self.critics for v in c.trainable_variables]

    def values_of_taken(
        self, observation: Tree[Tensor], action: Tensor, training: bool = False
    ) -> list[Tensor]:
        """Returns each critic's Q-values of given actions, `[B]` float32."""
        return critics.values_of_taken(
            self.critics,
            self.task.encode(observation),
            action,
            self.is_discrete,
            training,
        )
