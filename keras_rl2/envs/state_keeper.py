"""What a training that is resumed needs of its environments."""

import operator
from collections.abc import Sequence
from typing import Any

from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector import SyncVectorEnv

from keras_rl2.envs import env_processes
from keras_rl2.envs import env_state
from keras_rl2.envs import env_trial
from keras_rl2.envs.envpool_env import EnvPoolEnv
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.spaces.trees import map_leaves

# Names of attributes that a message has room for.
_MOST_NAMES = 5


class StateKeeper:
    """Reads and writes the state of environments, where they repeat with it.

    Whether they do is found out when the state is asked for the first time:
    with others that are made in the same way; or, where nobody knows how to
    make them, with those that are given the state, before they are used.

    Args:
        env: `VectorEnvAdapter`. The environments.

    Attributes:
        refusal: str. Why no state is kept; empty where one is.

    Example:

    >>> from keras_rl2.envs import as_vector_env
    >>> env, other = (as_vector_env("CartPole-v1") for _ in range(2))
    >>> observation = env.reset(seed=0)
    >>> state = StateKeeper(env).read()
    >>> StateKeeper(other).write(state, observation)
    True
    """

    def __init__(self, env: VectorEnvAdapter) -> None:
        self._env = env
        self._is_proven: bool | None = None
        self.refusal = ""

    def read(self) -> dict[str, Any] | None:
        """Returns the state of the environments, where one is kept.

        Returns:
            dict of plain data; None with a `refusal`.
        """
        if self.refusal:
            return None
        env = self._env
        try:
            state = env_state.read(env.env, env.made)
            if self._is_proven is None:
                self.refusal = self._reason()
        except Exception as error:
            # Of any type: it depends on what the environment is made of.
            self.refusal = self._named(repr(error))
        if self.refusal:
            return None
        return {"state": state, "proven": self._is_proven}

    def write(self, kept: dict[str, Any], observation: Any) -> bool:
        """Gives the environments, which nobody has used, their state.

        Args:
            kept: dict, as returned by `read`; or a state alone, of earlier
                releases.
            observation: `[B, ...]`. What they have shown last.

        Returns:
            bool. False where new episodes have to begin.

        Raises:
            ValueError: If it is that of another kind of environment.
        """
        env = self._env
        env.watch()
        state, own = kept.get("state", kept), env.get_state()
        goes_on = kept.get("proven", True) or env_trial.goes_on(
            env, state, observation
        )
        env.set_state(own)
        if not goes_on:
            return False
        env_state.write(env.env, state, env.made)
        inner = env.env.unwrapped
        if env_processes.can_be_asked(inner):
            rows = [
                map_leaves(operator.itemgetter(index), observation)
                for index in range(env.num_envs)
            ]
            env_processes.end_episodes(inner, env.pending_reset, rows)
        return True

    def _reason(self) -> str:
        """Finds out whether the environments repeat, or says why not."""
        env = self._env.env
        if isinstance(self._env, EnvPoolEnv):
            return self._named("EnvPool gives none")
        if env_state.writes_files(env):
            return self._named("another one would write to the same files")
        names = env_state.not_kept(env)
        repeats: bool | None = True
        if names or not env_state.has_own_methods(env):
            try:
                repeats = env_trial.repeats(self._env)
            except Exception as error:
                # Of any type: it depends on what the environment is made of.
                return self._named(
                    f"others do not go on with it: {error!r}", names
                )
        if repeats is False:
            return self._named(
                "others that are given it do not do the same", names
            )
        if repeats is None and names:
            return self._named("nobody knows how to make others", names)
        # Of several, those within were made, and not what is around them.
        several = isinstance(env.unwrapped, AsyncVectorEnv | SyncVectorEnv)
        whole = env is env.unwrapped or not several
        self._is_proven = repeats is True and whole
        return ""

    def _named(self, reason: str, names: Sequence[str] = ()) -> str:
        """Says why no state is kept, and of which attributes."""
        named = ", ".join(names[:_MOST_NAMES])
        more = len(names) - _MOST_NAMES
        if more > 0:
            named = f"{named} and {more} more"
        of = f" (what cannot be saved: {named})" if names else ""
        return f"the state of {self._env.name} is not saved: {reason}{of}"
