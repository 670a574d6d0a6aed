"""What is not finite is refused before it changes any weight."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv

from keras_rl2.envs import as_vector_env
from support.agents import EACH_KIND as AGENTS
from support.agents import EITHER_KIND
from support.agents import assert_equal_weights
from support.agents import make_eager_agent
from support.agents import weights_of
from support.errors import raises
from support.probe_envs import NonFiniteEnv

pytestmark = pytest.mark.parametrize("name", AGENTS)


class InfiniteEnd(NonFiniteEnv):
    """An observation that is the last of an episode is infinite."""

    def step(self, action):
        observation, reward, _, ended, info = super().step(action)
        if self._steps == 4:
            observation[0] = np.inf
        return observation, reward, ended, False, info


def second_of_three(case, make, mode=AutoresetMode.SAME_STEP, length=10):
    good = [lambda: NonFiniteEnv(at=-1, length=length)]
    makers = [for_actions(case, each) for each in (*good, make, *good)]
    return as_vector_env(SyncVectorEnv(makers, autoreset_mode=mode))


def for_actions(case, make):
    """Gives an environment, which ignores actions, those of an agent."""

    def made():
        env = make()
        env.action_space = case.action_space
        return env

    return made


def stored(dataset):
    """Returns what a replay buffer holds; nothing of rollouts."""
    buffer = getattr(dataset, "buffer", None)
    return {} if buffer is None else buffer.get_state()


@pytest.mark.rotate(name=EITHER_KIND, mode=[list(AutoresetMode)])
@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize(
    ("key", "value"), [("observation", np.nan), ("reward", -np.inf)]
)
def test_not_finite(name, key, value, mode):
    # Whole episodes go on until the horizon: each round is of 8 steps.
    case = AGENTS[name]
    whole = case.whole_episodes
    length = 100 if whole else 10
    env = second_of_three(
        case, lambda: NonFiniteEnv(13, key, value, length), mode, length
    )
    agent = make_eager_agent(case, env)
    dataset = case.make_dataset(env, **case.one_update)
    agent.fit(dataset, verbose=0)
    before, buffer = weights_of(agent), stored(dataset)
    # Step 13 is the fifth of the second rollout; what it returns is observed
    # in the sixth; under NEXT_STEP one step more has gone to a reset.
    a_reset = mode == AutoresetMode.NEXT_STEP and not whole
    step = 4 + (key == "observation") + a_reset
    where = f"{key}={value}.* from environment 1 at step {step} "
    with raises(f"a finite {key}", where):
        agent.fit(dataset, verbose=0)
    assert_equal_weights(agent, before)
    assert agent.env_steps == 24
    np.testing.assert_equal(stored(dataset), buffer)
    # The next rollout begins new episodes and is fine.
    agent.fit(dataset, verbose=0)


@pytest.mark.rotate(name=EITHER_KIND)
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_final_observation_that_is_not_finite(name, mode):
    # The first episode is the only one of a round of whole episodes.
    case = AGENTS[name]
    whole = case.whole_episodes
    length = 4 if whole else 2
    env = second_of_three(case, lambda: InfiniteEnd(at=-1, length=length), mode)
    agent = make_eager_agent(case, env)
    dataset = case.make_dataset(env)
    before = weights_of(agent)
    if whole:
        where = "observation=inf.* from environment 1 at step 4 "
    elif mode == AutoresetMode.NEXT_STEP:
        where = "observation=inf.* from environment 1 at step 5 "
    else:
        where = "final observation=inf.* from environment 1 at step 3 "
    with raises("a finite", where):
        agent.fit(dataset, verbose=0)
    assert_equal_weights(agent, before)


@pytest.mark.rotate(name=EITHER_KIND)
def test_a_first_observation_that_is_not_finite(name):
    class BadStart(NonFiniteEnv):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed)[0] * np.nan, {}

    case = AGENTS[name]
    env = as_vector_env(for_actions(case, lambda: BadStart(at=-1))())
    agent = make_eager_agent(case, env)
    with raises("a finite observation", "environment 0 at step 0"):
        agent.fit(case.make_dataset(env), verbose=0)


@pytest.mark.rotate(name=EITHER_KIND)
@pytest.mark.parametrize("key", ["observation", "reward"])
def test_evaluation_of_what_is_not_finite(name, key):
    case = AGENTS[name]
    env = as_vector_env(for_actions(case, lambda: NonFiniteEnv(3, key))())
    agent = make_eager_agent(case, env)
    with raises(f"a finite {key}", "nan.* from environment 0"):
        agent.evaluate(env, episodes=1)
