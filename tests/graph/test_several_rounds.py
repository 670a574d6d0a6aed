"""Several rounds in one call of TensorFlow equal those of a call each."""

import signal
from pathlib import Path
from typing import Any

import gymnasium
import keras
import numpy as np
import pytest
from keras import ops

import keras_rl2 as rl
from keras_rl2.basics.shapes import Tensor
from keras_rl2.callbacks import Checkpoint
from keras_rl2.envs.graph import random_numbers

ROUNDS = 6


def on_policy(kind: Any, passes: int = 1, **given: Any) -> tuple[Any, Any]:
    """Returns an on-policy agent, and its rollouts in the graph."""
    env = rl.envs.GraphVectorEnv("CartPole-v1", num_envs=4)
    data = rl.RolloutDataset(
        env,
        horizon=8,
        passes=passes,
        batch_size=16 if passes > 1 else None,
        rounds_per_epoch=ROUNDS,
        scale_rewards=True,
        seed=1,
    )
    agent = kind.for_env(
        env, hidden=(8,), seed=0, normalize_observations=True, **given
    )
    return agent, data


def off_policy(kind: Any, task: str, **given: Any) -> tuple[Any, Any]:
    """Returns an off-policy agent, and its replay over the graph."""
    env = rl.envs.GraphVectorEnv(task, num_envs=2)
    data = rl.ReplayDataset(
        env,
        # The ring is full, and overwritten, within the first epoch.
        capacity=50,
        batch_size=16,
        steps_per_round=6,
        updates_per_round=2,
        warm_up=24,
        rounds_per_epoch=ROUNDS,
        seed=1,
    )
    return kind.for_env(env, hidden=(8,), seed=0, **given), data


MADE = {
    # So low a limit stops each round before its end.
    "PPO": lambda: on_policy(rl.PPO, passes=2, target_kl=1e-5),
    "A2C": lambda: on_policy(rl.A2C),
    "PQN": lambda: on_policy(rl.PQN, passes=2),
    "DQN": lambda: off_policy(rl.DQN, "CartPole-v1"),
    "SAC": lambda: off_policy(rl.SAC, "Pendulum-v1"),
    "TD3": lambda: off_policy(rl.TD3, "Pendulum-v1"),
    "CrossQ": lambda: off_policy(rl.CrossQ, "Pendulum-v1"),
}
EACH = [
    pytest.param(
        name,
        marks=[] if name == "DQN" else [pytest.mark.slow],
    )
    for name in MADE
]


def trained(
    name: str, rounds: int | None, epochs: int = 2, **given: Any
) -> tuple[Any, Any]:
    """Returns an agent and its data, trained with rounds of a call."""
    agent, data = MADE[name]()
    data.bind(agent)
    steps = None if rounds is None else rounds * data.updates_per_round
    agent.compile(steps_per_execution=steps or "auto")
    agent.fit(data, epochs=epochs, verbose=0, **given)
    return agent, data


def assert_equal(one: Any, other: Any) -> None:
    """Compares weights and logs of two agents."""
    for mine, its in zip(one.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, its)
    logs = one.history.history
    assert logs.keys() == other.history.history.keys()
    for key in logs.keys() - {"steps_per_second"}:
        np.testing.assert_array_equal(logs[key], other.history.history[key])


@pytest.mark.parametrize("name", EACH)
def test_they_equal_rounds_of_a_call_each(name: str) -> None:
    alone, its_data = trained(name, 1)
    together, data = trained(name, None)
    assert alone.steps_per_execution == data.updates_per_round
    assert together.steps_per_execution == ROUNDS * data.updates_per_round
    assert alone.env_steps == together.env_steps
    assert_equal(alone, together)
    # Python goes on with the same numbers.
    one, other = its_data.collect(), data.collect()
    np.testing.assert_array_equal(one.observation, other.observation)
    if name not in ("PPO", "A2C", "PQN"):
        np.testing.assert_array_equal(
            its_data.sample(9)["observation"], data.sample(9)["observation"]
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["A2C", "DQN"])
def test_a_number_of_rounds_may_be_asked_for(name: str) -> None:
    alone, _ = trained(name, 1)
    together, data = trained(name, 3)
    assert together.steps_per_execution == 3 * data.updates_per_round
    assert_equal(alone, together)


@pytest.mark.parametrize("rounds", [4, 12])
def test_other_numbers_of_rounds_are_refused(rounds: int) -> None:
    with pytest.raises(ValueError, match="divisor of the 6 of an epoch"):
        trained("DQN", rounds)


def test_other_environments_are_stepped_between_calls() -> None:
    data = rl.ReplayDataset(
        "CartPole-v1", batch_size=8, steps_per_round=4, warm_up=8, seed=0
    )
    agent = rl.DQN.for_env(data.env, hidden=(8,), seed=0)
    agent.compile(steps_per_execution=8)
    with pytest.raises(ValueError, match="collected between two executions"):
        agent.fit(data, epochs=1, verbose=0)


class Counting(keras.callbacks.Callback):
    """Counts its calls after updates."""

    def __init__(self) -> None:
        super().__init__()
        self.updates: list[int] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Keeps the number of the last update."""
        self.updates.append(batch)


def test_a_callback_is_called_after_each_round_where_it_asks_to_be() -> None:
    counting = Counting()
    agent, _ = trained("DQN", None, epochs=1, callbacks=[counting])
    assert counting.updates == [1, 3, 5, 7, 9, 11]
    assert agent.steps_per_execution == 2


@pytest.mark.slow
def test_a_callback_is_called_after_the_updates_that_were_asked_for() -> None:
    counting = Counting()
    trained("DQN", 3, epochs=1, callbacks=[counting])
    assert counting.updates == [5, 11]


@pytest.fixture(scope="module")
def trained_again() -> tuple[Any, Any]:
    """An agent and its data, for one training after another."""
    return MADE["DQN"]()


@pytest.mark.parametrize(
    ("make", "at_once"),
    [
        (lambda folder: keras.callbacks.TerminateOnNaN(), True),
        (lambda folder: keras.callbacks.TensorBoard(folder), True),
        (lambda folder: keras.callbacks.ModelCheckpoint(folder / "a.keras"), 1),
        (lambda folder: Checkpoint(folder), True),
        (lambda folder: rl.callbacks.TensorBoard(folder), True),
        (lambda folder: rl.callbacks.Diagnostics(), False),
        (
            lambda folder: keras.callbacks.LambdaCallback(
                on_epoch_end=lambda epoch, logs: None
            ),
            True,
        ),
        (
            lambda folder: keras.callbacks.LambdaCallback(
                on_train_batch_end=lambda batch, logs: None
            ),
            False,
        ),
        (
            lambda folder: keras.callbacks.TensorBoard(folder, update_freq=4),
            False,
        ),
        (
            lambda folder: keras.callbacks.ModelCheckpoint(
                folder / "a.keras", save_freq=4
            ),
            False,
        ),
    ],
)
@pytest.mark.slow
def test_callbacks_that_wait_for_the_end_of_an_epoch(
    make: Any, at_once: bool, tmp_path: Path, trained_again: tuple[Any, Any]
) -> None:
    agent, data = trained_again
    agent.fit(data, epochs=1, verbose=0, callbacks=[make(tmp_path)])
    rounds = ROUNDS if at_once else 1
    assert agent.steps_per_execution == rounds * data.updates_per_round


class Watching(keras.callbacks.Callback):
    """Observes an agent from the beginning of its training."""

    def on_train_begin(self, logs: Any = None) -> None:
        """Adds an observer."""
        self.steps = 0
        self.model.observers.add(self._see)

    def _see(self, trajectory: Any) -> None:
        self.steps += trajectory.reward.size


@pytest.mark.slow
@pytest.mark.parametrize("name", ["PPO", "DQN"])
def test_an_observer_that_comes_late_sees_all_steps(name: str) -> None:
    watching = Watching()
    agent, data = trained(name, None, callbacks=[watching])
    of_rounds = 2 * ROUNDS * data.steps_per_round
    warm_up = agent.env_steps - of_rounds
    assert warm_up == (0 if name == "PPO" else 24)
    assert watching.steps == agent.env_steps


class Failing(rl.envs.GraphEnv):
    """Gives a reward that is not finite after some steps."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed: Tensor) -> tuple[Tensor, Tensor]:
        """Begins with a random number."""
        return ops.zeros((), "int32"), random_numbers.uniform(seed, (2,))

    def step(
        self, state: Tensor, action: Tensor, seed: Tensor
    ) -> tuple[Any, ...]:
        """Fails in the 30th step."""
        reward = ops.where(state == 29, float("nan"), 1.0)
        observation = random_numbers.uniform(seed, (2,))
        return state + 1, observation, reward, False, False


@pytest.mark.slow
@pytest.mark.parametrize("on_policy", [True, False])
def test_rounds_after_unusable_numbers_are_not_made(on_policy: bool) -> None:
    found = []
    for rounds in (1, 4):
        env = rl.envs.GraphVectorEnv(Failing, num_envs=2)
        if on_policy:
            data = rl.RolloutDataset(
                env, horizon=8, passes=1, rounds_per_epoch=8, seed=0
            )
            agent = rl.A2C.for_env(env, hidden=(8,), seed=0)
        else:
            data = rl.ReplayDataset(
                env,
                steps_per_round=16,
                rounds_per_epoch=8,
                warm_up=0,
                updates_per_round=1,
                batch_size=4,
                seed=0,
            )
            agent = rl.DQN.for_env(env, hidden=(8,), seed=0)
        data.bind(agent)
        agent.compile(steps_per_execution=rounds * data.updates_per_round)
        with pytest.raises(ValueError, match=r"finite reward.*at step 5 of"):
            agent.fit(data, verbose=0)
        assert agent.env_steps == 3 * 16
        found.append(agent.get_weights())
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["PPO", "DQN"])
def test_a_training_is_resumed_within_an_epoch(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopping(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch + 1 == 4 * self.params["steps"] // ROUNDS:
                signal.raise_signal(signal.SIGTERM)

    whole, _ = trained(name, None)
    with pytest.raises(SystemExit):
        trained(name, None, callbacks=[Checkpoint(tmp_path), Stopping()])
    resumed, data = trained(name, None, callbacks=[Checkpoint(tmp_path)])
    # Two of the six rounds remain.
    assert resumed.steps_per_execution == 2 * data.updates_per_round
    for one, other in zip(
        whole.get_weights(), resumed.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(one, other)
