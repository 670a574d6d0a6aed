"""Several rounds in one call of TensorFlow equal those of a call each."""

import signal
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.callbacks import Checkpoint

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
    "DQN": lambda: off_policy(rl.DQN, "CartPole-v1"),
    "SAC": lambda: off_policy(rl.SAC, "Pendulum-v1"),
    "TD3": lambda: off_policy(rl.TD3, "Pendulum-v1"),
}


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
    np.testing.assert_equal(one.get_weights(), other.get_weights())
    logs = one.history.history
    assert logs.keys() == other.history.history.keys()
    for key in logs.keys() - {"steps_per_second"}:
        np.testing.assert_array_equal(logs[key], other.history.history[key])


class Counting(keras.callbacks.Callback):
    """Counts its calls after updates."""

    def __init__(self) -> None:
        super().__init__()
        self.updates: list[int] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.updates.append(batch)


def test_rounds_of_an_epoch_are_one_call() -> None:
    agent, data = trained("DQN", None, epochs=1)
    assert agent.steps_per_execution == ROUNDS * data.updates_per_round
    assert agent.env_steps == 24 + ROUNDS * data.steps_per_round
    # The oldest were overwritten, and Python goes on where the graph was.
    assert len(data.buffer) <= 50 < data.buffer.steps == agent.env_steps
    expected = data.env.env.observations()
    np.testing.assert_array_equal(data.collect().observation[0], expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_several_rounds_of_a_call_equal_rounds_of_a_call_each(
    name: str,
) -> None:
    # It asks to be called after each round.
    counting = Counting()
    alone, its_data = trained(name, None, callbacks=[counting])
    together, data = trained(name, None)
    updates = data.updates_per_round
    assert counting.updates == 2 * [
        *range(updates - 1, ROUNDS * updates, updates)
    ]
    assert alone.steps_per_execution == data.updates_per_round
    assert together.steps_per_execution == ROUNDS * updates
    assert alone.env_steps == together.env_steps
    assert_equal(alone, together)
    # Python goes on with the same numbers.
    one, other = its_data.collect(), data.collect()
    np.testing.assert_array_equal(one.observation, other.observation)
    if name in ("PPO", "A2C"):
        assert float(together.normalizing.layers[0].count) == alone.env_steps
    else:
        np.testing.assert_array_equal(
            its_data.sample(9)["observation"], data.sample(9)["observation"]
        )


def test_a_frozen_normalization_is_traced_again() -> None:
    agent, data = on_policy(rl.A2C)
    agent.fit(data, epochs=1, verbose=0)
    layer = agent.normalizing.layers[0]
    before = np.array(layer.mean)
    layer.trainable = False
    agent.fit(data, epochs=1, verbose=0)
    np.testing.assert_array_equal(layer.mean, before)


def test_other_numbers_of_rounds_are_refused() -> None:
    for rounds in (4, 12):
        with pytest.raises(ValueError, match="divisor of the 6 of an epoch"):
            trained("DQN", rounds)
    # Other environments are stepped between calls.
    data = rl.ReplayDataset(
        "CartPole-v1", batch_size=8, steps_per_round=4, warm_up=8, seed=0
    )
    agent = rl.DQN.for_env(data.env, hidden=(8,), seed=0)
    agent.compile(steps_per_execution=8)
    with pytest.raises(ValueError, match="collected between two executions"):
        agent.fit(data, epochs=1, verbose=0)


@pytest.mark.slow
def test_a_callback_is_called_after_its_requested_number_of_updates() -> None:
    counting = Counting()
    trained("DQN", 3, epochs=1, callbacks=[counting])
    assert counting.updates == [5, 11]


@pytest.mark.slow
def test_callbacks_that_wait_for_the_end_of_an_epoch(tmp_path: Path) -> None:
    agent, data = MADE["DQN"]()
    stock, path = keras.callbacks, tmp_path / "a.keras"
    at_end, at_updates = (
        stock.LambdaCallback(**{name: lambda number, logs: None})
        for name in ("on_epoch_end", "on_train_batch_end")
    )
    for callback, at_once in (
        (stock.TerminateOnNaN(), True),
        (stock.TensorBoard(tmp_path), True),
        (stock.TensorBoard(tmp_path, update_freq=4), False),
        (stock.ModelCheckpoint(path), True),
        (stock.ModelCheckpoint(path, save_freq=4), False),
        (at_end, True),
        (at_updates, False),
        (Checkpoint(tmp_path / "run"), True),
        (rl.callbacks.TensorBoard(tmp_path), True),
        (rl.callbacks.Diagnostics(), False),
    ):
        agent.fit(data, epochs=1, verbose=0, callbacks=[callback])
        rounds = ROUNDS if at_once else 1
        expected = rounds * data.updates_per_round
        assert agent.steps_per_execution == expected, callback


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
    np.testing.assert_equal(whole.get_weights(), resumed.get_weights())
