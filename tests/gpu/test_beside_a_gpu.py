"""Agents beside a GPU, played by a CPU device; see `support.played_gpu`.

python -m pytest --played-gpu -m slow tests/gpu
"""

import pathlib
import runpy

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl
from keras_rl2.cli.main import main
from keras_rl2.training import rounds
from support.agents import EITHER_DATASET
from support.agents import KINDS
from support.agents import make_env

pytestmark = pytest.mark.slow

EXAMPLES = sorted(pathlib.Path(__file__).parents[2].glob("examples/*.py"))
GPU, CPU = "CPU:0", "CPU:1"  # that play them
PLACES = {
    "default": ({}, GPU),
    "cpu": ({"device": "cpu:0"}, CPU),
    "gpu": ({"device": "gpu:0"}, GPU),
    "wide": ({"hidden": (512, 512)}, GPU),
}
GRAPH_AGENTS = {
    "PPO": "CartPole-v1",
    "REINFORCE": "CartPole-v1",
    "DQN": "Catch-v0",
    "SAC": "Pendulum-v1",
}


@pytest.fixture(autouse=True)
def played_gpu(request, monkeypatch):
    if not request.config.option.played_gpu:
        pytest.skip("needs --played-gpu")
    # Short runs are compiled too.
    monkeypatch.setattr(rounds, "_PAYING_UPDATES", 0)


either_place = pytest.mark.parametrize(
    "place", [PLACES["default"], PLACES["cpu"]], ids=["default", "cpu"]
)


def fit(agent, dataset, epochs=1, **arguments):
    agent.fit(dataset, epochs=epochs, verbose=0, **arguments)


def devices_of(variables):
    values = [getattr(each, "value", each) for each in variables]
    return {
        (each() if callable(each) else each).device.rsplit("device:")[-1]
        for each in values
    }


def assert_lies_on(agent, device):
    assert devices_of([*agent.variables, *agent.optimizer.variables]) == {
        device
    }


def make(case, settings, **arguments):
    env = make_env(case.pair)
    agent = case.make.for_env(env, seed=0, **{"hidden": (8,), **settings})
    return agent, case.make_dataset(env, **arguments)


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("case", KINDS.values(), ids=KINDS)
def test_an_agent_trains_acts_and_is_saved(case, place, tmp_path):
    settings, device = place
    agent, dataset = make(case, settings)
    agent.compile(keras.optimizers.Adam(1e-3))
    fit(agent, dataset)
    fit(agent, dataset, validation_data=make_env(case.pair, 1))
    assert_lies_on(agent, device)
    assert agent.rounds.compiled
    observation = dataset.env.observation_space.sample()
    agent.act(observation, deterministic=True)
    agent.evaluate(dataset.env, episodes=1)
    agent.predict(observation[None], verbose=0)
    agent.predict_on_batch(observation[None])
    agent.save(tmp_path / "agent.keras")
    agent.export(tmp_path / "agent.tflite", format="litert")
    assert agent.check_export(
        tmp_path / "agent.tflite", make_env(case.pair, 1), episodes=1
    ).passed


@pytest.mark.parametrize("case", KINDS.values(), ids=KINDS)
def test_a_loaded_agent_trains_on_the_gpu(case, tmp_path):
    agent, dataset = make(case, {"device": "cpu:0"})
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    fit(loaded, dataset)
    assert_lies_on(loaded, GPU)


@either_place
@pytest.mark.parametrize("case", EITHER_DATASET.values(), ids=EITHER_DATASET)
def test_loops_of_a_user(case, place):
    settings, device = place
    agent, dataset = make(case, settings)
    minibatches = iter(dataset.as_dataset(agent))
    dataset.refresh()
    agent.train_on_batch(next(minibatches))
    update = tf.function(agent.train_step)
    update(next(minibatches))
    fit(
        agent,
        dataset.as_dataset(agent),
        steps_per_epoch=dataset.updates_per_round,
        callbacks=[rl.callbacks.RolloutRefresh(dataset)],
    )
    fit(agent, dataset)
    samples = dataset.prepare(dataset.collect())
    assert agent.train_function(iter([samples]))
    assert_lies_on(agent, device)


@pytest.mark.parametrize("case", EITHER_DATASET.values(), ids=EITHER_DATASET)
def test_an_agent_made_within_a_scope_stays_there(case):
    with tf.device("/CPU:0"):
        agent, dataset = make(case, {})
    fit(agent, dataset)
    with tf.device("/GPU:0"):
        fit(agent, dataset)
        agent.act(dataset.env.observation_space.sample())
    assert_lies_on(agent, CPU)


@either_place
@pytest.mark.parametrize("case", EITHER_DATASET.values(), ids=EITHER_DATASET)
def test_a_run_is_resumed(case, place, tmp_path):
    for epochs in (1, 2):
        agent, dataset = make(case, place[0])
        checkpoint = rl.callbacks.Checkpoint(tmp_path, every_steps=1)
        fit(agent, dataset, epochs, callbacks=[checkpoint])
    assert agent.env_steps == case.env_steps(2)
    assert_lies_on(agent, place[1])


def test_networks_of_another_device_train_without_xla():
    with keras.device("cpu:0"):
        actor, critic = [
            keras.Sequential([keras.Input((4,)), keras.layers.Dense(units)])
            for units in (2, 1)
        ]
    agent = rl.PPO(actor, critic, seed=0)
    fit(agent, rl.RolloutDataset("CartPole-v1", horizon=32, seed=0))
    assert not agent.rounds.compiled
    assert agent.act(np.zeros(4, np.float32)) in (0, 1)


@either_place
@pytest.mark.parametrize("name", GRAPH_AGENTS)
def test_environments_in_the_graph(name, place):
    env = rl.envs.GraphVectorEnv(GRAPH_AGENTS[name], num_envs=4)
    agent = getattr(rl, name).for_env(env, seed=0, **place[0])
    if agent.on_policy:
        dataset = rl.RolloutDataset(env, seed=0)
    else:
        dataset = rl.ReplayDataset(env, seed=0, warm_up=100, batch_size=8)
    fit(agent, dataset)
    assert devices_of(env.variables) == {place[1]}
    observation, *_ = env.step(env.action_space.sample())
    assert observation.dtype == env.observation_space.dtype
    assert agent.evaluate(env, episodes=4)["episode_length"] > 0


def test_environments_in_the_graph_follow_their_agent():
    env = rl.envs.GraphVectorEnv("CartPole-v1", num_envs=4)
    for settings, device in [PLACES["cpu"], PLACES["gpu"], PLACES["cpu"]]:
        agent = rl.A2C.for_env(env, seed=0, **settings)
        rollouts = rl.RolloutDataset(env, horizon=8, seed=0)
        fit(agent, rollouts)
        rollouts.collect()
        assert devices_of(env.variables) == {device}


@pytest.mark.parametrize("settings", [{}, {"device": "cpu:0"}], ids=str)
def test_many_seeds(settings):
    trained = rl.train_seeds(
        lambda seed: rl.PPO.for_env("CartPole-v1", seed=seed, **settings),
        lambda seed: rl.RolloutDataset(
            rl.envs.GraphVectorEnv("CartPole-v1", num_envs=4),
            horizon=32,
            seed=seed,
        ),
        range(3),
        epochs=1,
    )
    assert np.isfinite(trained.history["loss"]).all()


@either_place
@pytest.mark.parametrize("name", ["BehaviorCloning", "CQL", "IQL", "TD3BC"])
def test_recorded_data(name, place, tmp_path):
    path = tmp_path / "recorded.npz"
    rl.record(None, "Pendulum-v1", 256, path)
    data = rl.OfflineDataset(path, updates_per_epoch=4, seed=0)
    agent = getattr(rl, name).for_env("Pendulum-v1", seed=0, **place[0])
    fit(agent, data)
    assert_lies_on(agent, place[1])


@either_place
@pytest.mark.parametrize("name", ["PPO", "DQN"])
def test_memory(name, place):
    agent = getattr(rl, name).for_env(
        "CartPole-v1", memory=keras.layers.LSTMCell(8), seed=0, **place[0]
    )
    if agent.on_policy:
        dataset = rl.RolloutDataset("CartPole-v1", horizon=32, seed=0)
    else:
        dataset = rl.ReplayDataset("CartPole-v1", warm_up=300, seed=0)
    fit(agent, dataset)
    assert_lies_on(agent, place[1])


@pytest.mark.parametrize("name", ["PPO", "DQN"])
def test_pictures_are_compiled(name):
    env = make_env("observe_image")
    agent = getattr(rl, name).for_env(env, seed=0)
    dataset = KINDS[name].make_dataset(env)
    fit(agent, dataset)
    assert agent.rounds.compiled
    assert_lies_on(agent, GPU)


@pytest.mark.parametrize("name", ["PPO", "DQN"])
def test_pictures_on_the_cpu_are_not_compiled(name):
    env = make_env("observe_image")
    agent = getattr(rl, name).for_env(env, device="cpu:0", seed=0)
    fit(agent, KINDS[name].make_dataset(env))
    assert not agent.rounds.compiled


@either_place
def test_priorities_of_a_dataset_that_is_bound_first(place):
    agent, replay = make(KINDS["DQN"], place[0], prioritized=True)
    replay.bind(agent)
    fit(agent, replay)
    assert np.isfinite(agent.td_errors.numpy()).all()


@either_place
def test_workers(place):
    settings, device = place
    agent = rl.PPO.for_env("CartPole-v1", seed=0, **settings)
    workers = rl.LocalWorkers(1)
    rollouts = rl.RolloutDataset(
        "CartPole-v1", horizon=32, seed=0, workers=workers
    )
    fit(agent, rollouts)
    rollouts.close()
    assert_lies_on(agent, device)


@pytest.mark.parametrize(
    "command",
    ["ppo CartPole-v1", "dqn CartPole-v1", "sac Pendulum-v1"],
)
def test_the_command_trains_by_a_preset(command, tmp_path):
    words = ["train", *command.split(), "--steps", "1200"]
    assert main([*words, "--logdir", str(tmp_path)]) == 0


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path, tmp_path, monkeypatch):
    """Each training ends after an episode, since examples print returns."""

    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            found = getattr(self.model.rollouts, "logs", dict)()
            ended = np.isfinite(found.get("episode_return", 0.0))
            self.model.stop_training = bool(ended)

    fit = rl.Agent.fit

    def fit_a_round(agent, *data, callbacks=(), **arguments):
        return fit(agent, *data, callbacks=[*callbacks, Stop()], **arguments)

    monkeypatch.setattr(rl.Agent, "fit", fit_a_round)
    monkeypatch.chdir(tmp_path)
    try:
        runpy.run_path(str(path), run_name="__main__")
    except ImportError as error:
        pytest.skip(str(error))
