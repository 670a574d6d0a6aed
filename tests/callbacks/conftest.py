import functools
import signal

import gymnasium
import keras
import pytest

import keras_rl2 as rl
from keras_rl2.saving import plain_data


@pytest.fixture
def rollouts():
    # One environment, not vectorised: no rows are spent on resets.
    env = gymnasium.make("CartPole-v1")
    return rl.RolloutDataset(env, horizon=64, passes=1, batch_size=32, seed=0)


class Reused:
    """An agent that is traced once, and as it was made each time it is asked.

    Args:
        activation: str. Of its networks.
        **compile_arguments: Of `Agent.compile`.
    """

    def __init__(self, *, activation="tanh", **compile_arguments):
        self._agent = agent = rl.PPO.for_env(
            "CartPole-v1", hidden=(8,), activation=activation, seed=0
        )
        # For these few rounds XLA would take longer than it saves.
        agent.compile(jit_compile=False, **compile_arguments)
        agent.optimizer.build(agent.trainable_variables)
        self._state = agent.get_state()
        self._arguments = agent.compile_arguments

    def __call__(self):
        assert self._agent.compile_arguments is self._arguments, (
            "A test has compiled anew what others use too: it wants `new_agent`"
        )
        self._agent.set_state(plain_data.copied(self._state))
        self._agent.rollouts = None
        return self._agent


@pytest.fixture(scope="session")
def reused():
    return Reused(optimizer=keras.optimizers.Adam(1e-3))


@pytest.fixture
def agent(reused):
    """An agent with one optimizer; no test compiles it anew."""
    return reused()


@functools.cache
def reused_of_two():
    return Reused(
        optimizer=keras.optimizers.Adam(1e-3, name="actor"),
        critic_optimizer=keras.optimizers.Adam(2e-3, name="critic"),
    )


@pytest.fixture
def two_optimizers():
    """An agent with two optimizers; no test compiles it anew."""
    return reused_of_two()()


@pytest.fixture
def new_agent():
    """An agent of one's own, compiled but for XLA."""
    agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    agent.compile(jit_compile=False)
    return agent


@pytest.fixture
def episodes():
    return rl.EvaluationDataset("CartPole-v1", 3, seed=0)


@pytest.fixture
def in_the_foreground():
    """A shell that runs tests in the background has them ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
