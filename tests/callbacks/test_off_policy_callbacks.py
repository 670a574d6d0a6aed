"""Callbacks on agents that learn from replay, and have target networks."""

import csv

import keras
import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import (
    EventAccumulator,
)

import keras_rl2 as rl
from support.agents import OFF_POLICY
from support.agents import assert_equal_weights
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_replay
from support.agents import weights_of

CALLBACKS = keras.callbacks


def _over(first, *others):
    """Runs over agents; all but the first one are slow."""
    slow = [pytest.param(name, marks=pytest.mark.slow) for name in others]
    return pytest.mark.parametrize("name", [first, *slow])


each_kind = _over("DQN", "SAC", "TD3")
one_of_each = _over("TD3", "DQN")


@pytest.fixture
def case(name):
    return OFF_POLICY[name]


@pytest.fixture
def replay(case):
    return make_replay(make_env(case.pair))


@pytest.fixture
def agent(case):
    return new_agent(case)


@pytest.fixture
def episodes(case):
    return rl.EvaluationDataset(make_env(case.pair), 2, seed=0)


def new_agent(case, seed=0):
    adam = keras.optimizers.Adam(1e-2)
    arguments = {"optimizer": adam}
    env = make_env(case.pair)
    return make_eager_agent(case, env, seed=seed, compile_arguments=arguments)


def rates(agent):
    arguments = agent.compile_arguments
    parts = [arguments.optimizer, arguments.critic_optimizer]
    return [float(part.learning_rate.numpy()) for part in parts if part]


# Keras' own.


@each_kind
def test_checkpoint_keeps_the_best_agent(
    case, agent, replay, episodes, tmp_path
):
    best = CALLBACKS.ModelCheckpoint(
        tmp_path / "best.keras",
        monitor="val_episode_return",
        save_best_only=True,
    )
    history = agent.fit(
        replay,
        epochs=3,
        validation_data=episodes,
        callbacks=[best],
        verbose=0,
    ).history
    scores = history["val_episode_return"]
    loaded = keras.models.load_model(tmp_path / "best.keras")
    assert loaded.evaluate(episodes)["episode_return"] == max(scores)
    count = int(np.argmax(scores)) + 1
    assert loaded.env_steps == 16 * count
    assert loaded.updates.numpy() == 2 * count
    more = loaded.fit(replay, verbose=0).history
    assert more["env_steps"] == [16 * count + 16]


@one_of_each
def test_early_stopping_restores_targets_too(case, agent, replay):
    kept = []
    stopping = CALLBACKS.EarlyStopping(
        "episode_return",
        min_delta=1e9,
        patience=2,
        restore_best_weights=True,
    )
    keep = CALLBACKS.LambdaCallback(
        on_epoch_end=lambda epoch, logs: kept.append(weights_of(agent))
    )
    history = agent.fit(
        replay,
        epochs=9,
        callbacks=[keep, stopping],
        verbose=0,
    )
    assert history.epoch == [0, 1, 2]
    assert_equal_weights(agent, kept[0])
    assert agent.updates.numpy() == 2


class Failure(CALLBACKS.Callback):
    """Breaks off at the beginning of the third epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 2:
            raise RuntimeError("power failure")


@each_kind
def test_backup_and_restore(case, agent, replay, tmp_path):
    def backup():
        return CALLBACKS.BackupAndRestore(tmp_path / "backup")

    callbacks = [backup(), Failure()]
    with pytest.raises(RuntimeError, match="power failure"):
        agent.fit(replay, epochs=4, callbacks=callbacks, verbose=0)
    fresh = new_agent(case, seed=1)
    at_begin = []

    def compare(logs):
        # Before the first update, and after targets have been seen to.
        assert_equal_weights(fresh, agent)
        at_begin.append(fresh.env_steps)

    watch = CALLBACKS.LambdaCallback(on_train_begin=compare)
    history = fresh.fit(
        replay,
        epochs=4,
        callbacks=[backup(), watch],
        verbose=0,
    )
    assert at_begin == [32]
    assert history.epoch == [2, 3]
    assert history.history["env_steps"] == [48, 64]
    assert fresh.updates.numpy() == fresh.optimizer.iterations.numpy() == 8


@each_kind
def test_learning_rates_are_scheduled_and_logged(agent, replay):
    before = rates(agent)
    scheduler = CALLBACKS.LearningRateScheduler(
        lambda epoch, rate: rate * 0.5 if epoch else rate
    )
    history = agent.fit(
        replay, epochs=3, callbacks=[scheduler], verbose=0
    ).history
    assert rates(agent) == pytest.approx([0.25 * rate for rate in before])
    logged = [key for key in history if key.startswith("learning_rate")]
    assert len(logged) == len(before)
    for key in logged:
        first, second, third = history[key]
        assert (second, third) == pytest.approx((0.5 * first, 0.25 * first))


@each_kind
def test_a_rate_of_nought_moves_no_network(agent, replay):
    networks = [network for pair in agent.target_pairs for network in pair]
    before = [weights_of(network) for network in networks]
    nought = CALLBACKS.LearningRateScheduler(lambda epoch: 0.0)
    agent.fit(replay, epochs=2, callbacks=[nought], verbose=0)
    for network, weights in zip(networks, before, strict=True):
        assert_equal_weights(network, weights)


# In the default layer, `test_stock_callbacks.py` has the next two.


@pytest.mark.slow
@one_of_each
def test_csv_logger(agent, replay, episodes, tmp_path):
    history = agent.fit(
        replay,
        epochs=2,
        validation_data=episodes,
        callbacks=[CALLBACKS.CSVLogger(tmp_path / "log.csv")],
        verbose=0,
    ).history
    with open(tmp_path / "log.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert set(rows[0]) == {"epoch", *history}
    for key, expected in history.items():
        found = [float(row[key]) for row in rows]
        np.testing.assert_allclose(found, expected, err_msg=key)


@pytest.mark.slow
@one_of_each
def test_terminate_on_nan(agent, replay):
    # Of the network that values what follows, and does not act; from the
    # first update on it is not a copy any more.
    agent.updates.assign(1)
    network = agent.target_pairs[-1][0]
    network.layers[-1].bias.assign([np.nan] * network.output_shape[-1])
    stop = CALLBACKS.TerminateOnNaN()
    history = agent.fit(replay, epochs=5, callbacks=[stop], verbose=0)
    assert history.epoch == [0]


# The library's own.


# In the default layer, `test_rollout_refresh.py` has whole rounds.
@pytest.mark.spread(steps_per_execution=[1])
@pytest.mark.parametrize("name", ["DQN"])
@pytest.mark.parametrize("steps_per_execution", [1, "auto"])
def test_refreshes_come_once_per_round(case, steps_per_execution, monkeypatch):
    env = make_env(case.pair)
    replay = make_replay(env, updates_per_round=3, rounds_per_epoch=2)
    agent = case.make.for_env(env, hidden=(8,), seed=0)
    agent.compile(jit_compile=False, steps_per_execution=steps_per_execution)
    counts, refresh = [], replay.refresh
    monkeypatch.setattr(
        replay,
        "refresh",
        lambda: (counts.append(int(agent.updates.numpy())), refresh()),
    )
    history = agent.fit(replay, epochs=2, verbose=0).history
    assert counts == [0, 3, 6, 9]
    assert history["env_steps"] == [32, 64]
    assert agent.updates.numpy() == 12


# In the default layer, `test_evaluation.py` has it.
@pytest.mark.slow
@each_kind
def test_what_is_learned_is_the_same_with_evaluations(case, episodes):
    weights = []
    for validation_data in (None, episodes):
        agent, replay = new_agent(case), make_replay(make_env(case.pair))
        history = agent.fit(
            replay, epochs=2, validation_data=validation_data, verbose=0
        ).history
        assert ("val_episode_return" in history) == bool(validation_data)
        weights.append(agent.get_weights())
    assert_equal_weights(*weights)


# Those of Stable-Baselines3.
TAGS = {
    "entropy": "train/entropy_loss",
    "epsilon": "rollout/exploration_rate",
    "temperature": "train/ent_coef",
}


@each_kind
def test_tensorboard(name, agent, replay, tmp_path):
    callback = rl.callbacks.TensorBoard(tmp_path)
    values = []
    for _ in range(2):
        history = agent.fit(
            replay, epochs=2, callbacks=[callback], verbose=0
        ).history
        values.append(history)
    everything = {"scalars": 0, "histograms": 0, "tensors": 0}
    events = EventAccumulator(str(tmp_path), everything).Reload()
    for key in (*agent.statistics_names, *agent.exploration_logs()):
        tag = TAGS.get(key, f"train/{key}")
        assert [e.step for e in events.Scalars(tag)] == [16, 32, 48, 64], tag
        expected = [value for history in values for value in history[key]]
        # Stable-Baselines3 writes the term of its loss.
        expected = np.negative(expected) if key == "entropy" else expected
        np.testing.assert_allclose(
            [e.value for e in events.Scalars(tag)], expected, rtol=1e-6
        )
    histograms = [t for t in events.Tags()["histograms"] if "weights/" in t]
    # But for those that count something.
    numbers = [w for w in agent.weights if "float" in w.dtype]
    assert len(histograms) == len(numbers)
    assert any("/target_" in tag for tag in histograms)
    (event,) = events.Tensors("hyper_parameters")
    lines = event.tensor_proto.string_val[0].decode().splitlines()
    for line in (
        "| agent.gamma | 0.99 |",
        "| dataset.capacity | 256 |",
        "| dataset.steps_per_round | 16 |",
        "| dataset.updates_per_round | 2 |",
        "| dataset.prioritized | false |",
        "| dataset.num_envs | 2 |",
    ):
        assert line in lines
    assert events.Tags()["graph"]
