"""What the adapters of Gymnasium's vector environments share."""

from typing import Any

from gymnasium.vector import VectorEnv

from keras_rl2 import spaces
from keras_rl2.envs.vector_env import VectorEnvAdapter


class GymnasiumVectorEnv(VectorEnvAdapter):
    """A `gymnasium.vector.VectorEnv` of any autoreset mode.

    The subclasses know the modes: `NextStepEnv`, `SameStepEnv` and
    `ManualResetEnv`.

    Args:
        env: `gymnasium.vector.VectorEnv`.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        # EnvPool's `observation_space` is the single one, so only these names
        # mean the same everywhere.
        super().__init__(
            env,
            env.num_envs,
            env.single_observation_space,
            env.single_action_space,
        )

    def _reset(self, seed: int | None) -> Any:
        """Resets all environments."""
        try:
            observation, _ = self.env.reset(seed=seed)
        except KeyError as error:
            raise ValueError(
                f"Expected observations of "
                f"{spaces.describe(self.observation_space)} from each "
                f"environment of {self.name}. Received: one without the key "
                f"{error}"
            ) from error
        except ValueError as error:
            # Gymnasium stacks the observations and does not name the culprit.
            error.add_note(
                f"{self.name} was being reset. Expected observations of "
                f"{spaces.describe(self.observation_space)} from each "
                "environment."
            )
            raise
        self._check_observation(observation, (self.num_envs,))
        return self._to_observation(observation)
