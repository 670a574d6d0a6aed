"""Creation of environments in another process."""

import dataclasses
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import cloudpickle
import gymnasium
from gymnasium.envs.registration import EnvSpec

from keras_rl2.envs.making import EnvWrapper
from keras_rl2.envs.making import find_spec
from keras_rl2.envs.making import make_vector_env
from keras_rl2.envs.making import refuse_arguments_of_function
from keras_rl2.envs.vector_env import GivenEnv


@dataclasses.dataclass(frozen=True)
class EnvMaker:
    """Makes environments wherever it is sent, by cloudpickle.

    Attributes:
        env: str, the id of a registered environment; or a function that makes
            a `gymnasium.Env`.
        env_kwargs: Mapping or None. Arguments of the environment, with an id
            only. Defaults to `None`.
        wrappers: Sequence of functions that each environment is wrapped in,
            with an id only. Defaults to `()`.
        spec: `EnvSpec` or None. Spec of the id, which is unknown in a process
            that has not run the user's script. Defaults to `None`.
    """

    env: str | Callable[[], gymnasium.Env[Any, Any]]
    env_kwargs: Mapping[str, Any] | None = None
    wrappers: Sequence[EnvWrapper] = ()
    spec: EnvSpec | None = None

    @classmethod
    def of(
        cls,
        env: GivenEnv,
        env_kwargs: Mapping[str, Any] | None,
        wrappers: Sequence[EnvWrapper],
    ) -> "EnvMaker":
        """Returns the maker of a dataset's environments.

        Raises:
            ValueError: If it is an environment that has been made, which
                cannot be sent to workers.
        """
        if isinstance(env, str):
            return cls(env, env_kwargs, wrappers, find_spec(env))
        if not callable(env) or isinstance(env, gymnasium.Env):
            raise ValueError(
                "Expected the id of a registered environment, or a function "
                "that makes one, with `workers`: they make their own. "
                f"Received: env={env!r}"
            )
        refuse_arguments_of_function(env_kwargs, wrappers)
        return cls(env)

    def check_can_be_sent(self) -> None:
        """Raises an error if it cannot be pickled."""
        try:
            cloudpickle.dumps(self)
        except Exception as error:
            raise ValueError(
                "Expected environments, with their arguments and wrappers, "
                "that can be sent to workers by cloudpickle: an object that "
                "cannot be is best made within the function that makes the "
                f"environment. Received: env={self.env!r} ({error!r})"
            ) from error

    def __call__(self, num_envs: int) -> Any:
        """Makes environments to be stepped together."""
        if self.spec is not None:
            gymnasium.registry.setdefault(self.spec.id, self.spec)
        return make_vector_env(
            self.env,
            num_envs,
            env_kwargs=self.env_kwargs,
            wrappers=self.wrappers,
        )
