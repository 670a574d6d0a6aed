"""Trainings made from presets: their parts, and their runs."""

import gymnasium
import keras
import numpy as np
import pytest
from keras.callbacks import LambdaCallback

import keras_rl2 as rl
from keras_rl2 import presets
from support.agents import EVERY_AGENT
from support.agents import assert_equal_weights
from support.agents import differ

SMALL = {"networks.hidden": [8]}
REPLAY = {
    **SMALL,
    "total_steps": 400,
    "dataset.warm_up": 64,
    "dataset.steps_per_round": 32,
    "dataset.updates_per_round": 4,
    "dataset.batch_size": 16,
    "dataset.capacity": 1000,
    "dataset.rounds_per_epoch": 2,
}


FALLING = {"schedule": "linear", "initial": 1e-3, "final": 0.0}


def preset_of(algorithm, environment, settings):
    return presets.find(algorithm, environment).with_settings(settings)


# Whole runs.


@pytest.mark.usefixtures("eagerly")
def test_an_on_policy_run_takes_its_schedules_to_the_end():
    settings = {**SMALL, "total_steps": 700, "dataset.passes": 2}
    preset = preset_of("PPO", "CartPole-v1", settings)
    training = rl.Training.from_preset(preset, seed=0)
    assert isinstance(training.agent, rl.PPO)
    history = training.run().history
    # Three rounds of 8 x 32 steps, an epoch, of two updates each.
    agent = training.agent
    assert int(agent.optimizer.iterations.numpy()) == 6
    assert float(agent.optimizer.learning_rate.numpy()) == 0.0
    assert float(agent.clip_ratio(agent.optimizer.iterations)) == 0.0
    assert float(agent.clip_ratio(3)) == pytest.approx(0.1)
    assert history["env_steps"] == [agent.env_steps]
    # Steps that only reset an environment are not transitions.
    assert 700 < agent.env_steps <= 768


def test_an_off_policy_run_takes_its_schedules_to_the_end():
    learning_rate = {"schedule": "linear", "initial": 1e-3, "final": 1e-4}
    settings = {
        **REPLAY,
        "optimizer.learning_rate": learning_rate,
        "agent.tau": 1.0,
        "agent.target_every": 4,
    }
    preset = preset_of("DQN", "CartPole-v1", settings)
    training = rl.Training.from_preset(preset, seed=0)
    agent = training.agent
    assert (agent.tau, agent.target_every) == (1.0, 4)
    # Of 400 steps: 16 % of them until epsilon is 0.04.
    assert agent.epsilon(0).numpy() == pytest.approx(1.0)
    assert agent.epsilon(32).numpy() == pytest.approx(0.52)
    assert agent.epsilon(64).numpy() == pytest.approx(0.04)
    training.run()
    # 336 steps after the warm-up are 11 rounds, 6 epochs with the last one.
    assert int(agent.updates.numpy()) == 12 * 4
    rate = agent.optimizer.learning_rate.numpy()
    assert float(rate) == pytest.approx(1e-4)
    decay = agent.optimizer.get_config()["learning_rate"]["config"]
    assert decay["decay_steps"] == 11 * 4
    # The last update was one of a copy.
    for target, source in agent.target_pairs:
        for one, other in zip(target.weights, source.weights, strict=True):
            np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.usefixtures("eagerly")
def test_seeds_repeat():
    settings = {**REPLAY, "total_steps": 128}
    preset = preset_of("DQN", "CartPole-v1", settings)
    trainings = [rl.Training.from_preset(preset, seed=s) for s in (3, 3, 4)]
    agents = [training.agent for training in trainings]
    assert differ(agents[0].get_weights(), agents[2].get_weights())
    for training in trainings[:2]:
        training.run()
    assert_equal_weights(agents[0], agents[1])


def test_another_seed_begins_other_episodes():
    preset = presets.find("PPO", "CartPole-v1").with_settings(SMALL)
    observations = []
    for seed in (3, 4):
        training = rl.Training.from_preset(preset, seed=seed)
        training.dataset.bind(training.agent)
        observations.append(training.dataset.collect().observation)
    assert (observations[0][0] != observations[1][0]).all()


def test_a_run_ends_at_the_requested_steps():
    preset = preset_of("DQN", "CartPole-v1", REPLAY)
    training = rl.Training.from_preset(preset, seed=0)
    training.run(total_steps=100)
    taken = training.agent.env_steps
    assert 64 < taken < 200
    seen = []
    training.run([LambdaCallback(on_epoch_end=lambda e, _: seen.append(e))])
    assert training.agent.env_steps > 350
    assert seen
    with pytest.raises(ValueError, match=r"total_steps=100$"):
        training.run(total_steps=100)


# What a training is made of.


def test_a_delayed_actor_counts_its_own_updates():
    settings = {**REPLAY, "optimizer.learning_rate": FALLING}
    preset = preset_of("TD3", "Pendulum-v1", settings)
    training = rl.Training.from_preset(preset, seed=0)
    training.run()
    arguments = training.agent.compile_arguments
    # 48 updates, of which 44 were planned: 22 of them of the actor too.
    assert arguments.optimizer.name == "actor"
    for optimizer in (arguments.optimizer, arguments.critic_optimizer):
        assert float(optimizer.learning_rate.numpy()) == 0.0
    config = arguments.optimizer.get_config()["learning_rate"]["config"]
    assert config["decay_steps"] == 22
    config = arguments.critic_optimizer.get_config()["learning_rate"]["config"]
    assert config["decay_steps"] == 44


def test_exploration_may_follow_a_schedule():
    schedule = {**FALLING, "initial": 0.5, "final": 0.1, "fraction": 0.5}
    settings = {**REPLAY, "agent.exploration": schedule}
    preset = preset_of("TD3", "Pendulum-v1", settings)
    noise = rl.Training.from_preset(preset).agent.exploration
    assert isinstance(noise, rl.exploration.GaussianNoise)
    assert float(noise.scale(100)) == pytest.approx(0.3)
    assert float(noise.scale(200)) == pytest.approx(0.1)


def test_updates_left_to_the_algorithm_are_counted_for_schedules():
    settings = {"optimizer.learning_rate": FALLING}
    preset = presets.default("DQN", "CartPole-v1").with_settings(
        {
            **settings,
            "total_steps": 1000 + 24 + 640,
            "dataset.capacity": 2000,
        }
    )
    agent = rl.Training.from_preset(preset).agent
    config = agent.optimizer.get_config()["learning_rate"]["config"]
    # 10 rounds of 64 steps after the warm-up, an update for each 2 of them.
    assert config["decay_steps"] == 320
    preset = presets.default("REINFORCE", "CartPole-v1").with_settings(settings)
    with pytest.raises(ValueError, match="whole episodes"):
        rl.Training.from_preset(preset)


def test_a_minibatch_is_at_most_the_rollout_of_fewer_environments():
    preset = presets.find("PPO", "CartPole-v1")
    training = rl.Training.from_preset(preset, num_envs=2)
    assert training.dataset.env.num_envs == 2
    assert training.dataset.batch_size == 64
    assert training.preset.num_envs == 2
    assert training.preset.dataset["batch_size"] == 64


def test_rounds_are_longer_until_all_environments_take_as_many_steps():
    preset = presets.find("SAC", "Pendulum-v1")
    training = rl.Training.from_preset(preset, num_envs=48)
    assert training.dataset.steps_per_round == 96
    assert training.dataset.updates_per_round == 96
    preset = presets.find("DQN", "CartPole-v1")
    training = rl.Training.from_preset(preset, num_envs=6)
    # 256 and 128 for one environment.
    assert training.dataset.steps_per_round == 258
    assert training.dataset.updates_per_round == 129


def test_the_environment_of_a_preset_can_be_replaced():
    preset = presets.find("PPO", "Pendulum-v1")
    env = gymnasium.make_vec(
        "Pendulum-v1", num_envs=3, vectorization_mode="sync"
    )
    training = rl.Training.from_preset(preset, env=env)
    assert training.dataset.env.env is env
    assert training.preset.num_envs == 3
    with pytest.raises(ValueError, match="`num_envs` to be an integer"):
        rl.Training.from_preset(preset, num_envs=0)
    training = rl.Training.from_preset(
        preset, env="MountainCarContinuous-v0", num_envs=2
    )
    assert training.preset.environment == "MountainCarContinuous-v0"


def test_arguments_of_the_environment_are_of_one_id_only():
    preset = preset_of("PPO", "Pendulum-v1", {**SMALL, "env_kwargs": {"g": 2}})
    training = rl.Training.from_preset(preset, num_envs=2)
    for each in training.dataset.env.env.envs:
        assert each.unwrapped.g == 2
    assert training.preset.env_kwargs == {"g": 2}
    training = rl.Training.from_preset(preset, env="MountainCarContinuous-v0")
    assert training.preset.env_kwargs == {}
    made = gymnasium.make("Pendulum-v1", g=3)
    assert rl.Training.from_preset(preset, env=made).preset.env_kwargs == {}


# Recorded data.


def recorded(tmp_path, env_id="CartPole-v1"):
    rl.record("random", env_id, 200, tmp_path / "data", seed=0)
    return tmp_path / "data"


def test_a_run_on_recorded_data_ends_at_its_updates(tmp_path):
    settings = {
        **SMALL,
        "updates": 40,
        "dataset.updates_per_epoch": 20,
        "dataset.batch_size": 8,
        "optimizer.learning_rate": FALLING,
    }
    preset = preset_of("CQL", "CartPole-v1", settings)
    data = recorded(tmp_path)
    training = rl.Training.from_preset(preset, seed=0, data=data)
    agent = training.agent
    assert training.preset == preset
    agent.fit(training.dataset, epochs=1, verbose=0)
    training.run()
    assert (int(agent.updates), agent.env_steps) == (40, 0)
    assert float(agent.optimizer.learning_rate.numpy()) == 0.0
    with pytest.raises(ValueError, match="more than the 40 made so far"):
        training.run()
    with pytest.raises(ValueError, match="no `total_steps` on recorded data"):
        training.run(total_steps=9)
    training.close()
    # An epoch is no longer than the run.
    preset = preset.with_settings({"updates": 7})
    training = rl.Training.from_preset(preset, seed=0, data=data)
    assert training.preset.dataset["updates_per_epoch"] == 7


def test_updates_want_data_and_steps_want_none(tmp_path):
    offline = presets.find("CQL", "CartPole-v1")
    online = presets.find("DQN", "CartPole-v1")
    for preset, data in ((offline, None), (online, "anywhere")):
        with pytest.raises(ValueError, match="Expected `data` with a preset"):
            rl.Training.from_preset(preset, data=data)
    data = recorded(tmp_path, "Acrobot-v1")
    with pytest.raises(ValueError, match="Expected data of CartPole-v1, whose"):
        rl.Training.from_preset(offline, data=data)
    # The agent alone wants none.
    assert rl.CQL.from_preset("CartPole-v1").alpha == 1.0


# Defaults.


@pytest.mark.slow
def test_every_algorithm_has_defaults_to_train_with():
    for algorithm in presets.ALGORITHMS:
        # What there is of several kinds takes Discrete actions too.
        case = EVERY_AGENT.get(algorithm)
        discrete = case is None or case.actions[0] == "discrete"
        env_id = "CartPole-v1" if discrete else "Pendulum-v1"
        preset = presets.default(algorithm.lower(), env_id)
        assert 100_000 in (preset.total_steps, preset.updates)
        training = rl.Training.from_preset(preset, seed=0)
        bare = getattr(rl, algorithm).for_env(env_id, seed=0)
        assert_equal_weights(training.agent, bare)
    with pytest.raises(ValueError, match="Discrete"):
        rl.Training.from_preset(presets.default("DQN", "Pendulum-v1"))


@pytest.mark.usefixtures("eagerly")
def test_a_run_with_defaults_and_no_optimizer_of_its_own():
    preset = presets.default("A2C", "CartPole-v1")
    training = rl.Training.from_preset(preset, num_envs=2, seed=0)
    assert training.dataset.horizon == 32
    assert training.dataset.updates_per_round == 1
    preset = training.preset.with_settings(
        {"optimizer": {}, "dataset.rounds_per_epoch": 10, "total_steps": 100}
    )
    training = rl.Training.from_preset(preset, seed=0)
    assert isinstance(training.agent.optimizer, keras.optimizers.Adam)
    history = training.run()
    assert len(history.history["loss"]) == 1
