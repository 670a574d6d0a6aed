import gymnasium
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.callbacks import TensorBoard
from support.agents import OFF_POLICY
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_replay
from support.episodes import record
from support.events import read
from support.trainings import fit_plain_critic


def fit(agent, rollouts, log_dir, epochs=3, callback=None, **kwargs):
    callback = callback or TensorBoard(log_dir)
    history = agent.fit(
        rollouts, epochs=epochs, callbacks=[callback], verbose=0, **kwargs
    )
    return history.history


def steps(events, tag):
    return [event.step for event in events.Scalars(tag)]


def values(events, tag):
    return [event.value for event in events.Scalars(tag)]


def write(agent, log_dir, logs, **kwargs):
    callback = TensorBoard(log_dir, histogram_freq=0, **kwargs)
    callback.set_model(agent)
    callback.on_train_begin()
    callback.on_epoch_end(0, logs)
    return read(log_dir)


def test_curves_lie_over_environment_steps(agent, rollouts, tmp_path):
    history = fit(agent, rollouts, tmp_path)
    events = read(tmp_path)
    assert history["env_steps"] == [64, 128, 192]
    for tag, key in {
        "rollout/ep_rew_mean": "episode_return",
        "rollout/ep_len_mean": "episode_length",
        "time/fps": "steps_per_second",
        "time/total_timesteps": "env_steps",
        "train/policy_gradient_loss": "policy_loss",
        "train/value_loss": "value_loss",
        "train/loss": "loss",
        "train/approx_kl": "approx_kl",
        "train/clip_fraction": "clip_fraction",
        "train/explained_variance": "explained_variance",
        "train/learning_rate": "learning_rate",
    }.items():
        assert steps(events, tag) == [64, 128, 192], tag
        np.testing.assert_allclose(
            values(events, tag), history[key], rtol=1e-6, err_msg=tag
        )


def test_evaluations_and_other_keys_have_their_places(agent, tmp_path):
    logs = {
        "val_episode_return": 3.0,
        "val_episode_length": 4.0,
        "val_episode_return_std": 5.0,
        "entropy": 0.5,
        "mine": 6.0,
        "rollout/mine": 7.0,
        "a_vector": np.zeros(2),
        "nothing": None,
        "env_steps": 1,
    }
    events = write(
        agent,
        tmp_path,
        logs,
        write_hyper_parameters=False,
        write_graph=False,
    )
    assert not events.Tags()["tensors"]
    assert not events.Tags()["graph"]
    assert {tag: values(events, tag) for tag in events.Tags()["scalars"]} == {
        "eval/mean_reward": [3.0],
        "eval/mean_ep_length": [4.0],
        "eval/episode_return_std": [5.0],
        # That of Stable-Baselines3, which writes the term of its loss.
        "train/entropy_loss": [-0.5],
        "train/mine": [6.0],
        "rollout/mine": [7.0],
        "time/total_timesteps": [1.0],
        "train/clip_range": [pytest.approx(0.2)],
    }


def test_non_finite_values_are_left_out(agent, tmp_path):
    agent.env_steps = 1234
    for value in (np.nan, -np.inf):
        logs = {"episode_return": value, "loss": 1.0}
        events = write(agent, tmp_path / str(value), logs)
        assert "rollout/ep_rew_mean" not in events.Tags()["scalars"]
        assert values(events, "train/loss") == [1.0]
        # Without `env_steps` in the logs, by the agent's own count.
        assert steps(events, "train/loss") == [1234]
        assert not events.Tags()["histograms"]


def test_a_scheduled_clip_ratio_is_followed(rollouts, tmp_path):
    decay = keras.optimizers.schedules.PolynomialDecay(0.4, 8, 0.0)
    agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), clip_ratio=decay)
    agent.compile(run_eagerly=True)
    fit(agent, rollouts, tmp_path)
    # Two updates to a round, eight to the end.
    np.testing.assert_allclose(
        values(read(tmp_path), "train/clip_range"), [0.3, 0.2, 0.1], rtol=1e-6
    )


def test_deviation_of_a_gaussian_policy(tmp_path):
    rollouts = rl.RolloutDataset(
        "Pendulum-v1", horizon=32, passes=1, batch_size=32, seed=0
    )
    agent = rl.PPO.for_env("Pendulum-v1", hidden=(8,), initial_log_std=-1.0)
    agent.compile(run_eagerly=True)
    fit(agent, rollouts, tmp_path, epochs=1)
    events = read(tmp_path)
    deviation = float(np.exp(agent.log_std.numpy()).mean())
    assert abs(deviation - np.exp(-1.0)) < 0.01
    assert values(events, "train/std") == [pytest.approx(deviation)]
    (log_std,) = (t for t in events.Tags()["histograms"] if "log_std" in t)
    (histogram,) = events.Histograms(log_std)
    assert histogram.histogram_value.num == 1
    assert histogram.histogram_value.sum == pytest.approx(np.log(deviation))
    (action,) = events.Histograms("rollout/action")
    assert action.histogram_value.num == 32


def test_a_second_fit_continues_the_curves(agent, rollouts, tmp_path):
    callback = TensorBoard(logs := tmp_path / "logs")
    fit(agent, rollouts, logs, epochs=2, callback=callback)
    fit(agent, rollouts, logs, epochs=1, callback=callback)
    events = read(logs)
    assert len(list(logs.iterdir())) == 1
    assert steps(events, "train/loss") == [64, 128, 192]
    assert len(events.Tensors("hyper_parameters")) == 1
    (event,) = events.Tensors("model_summary")
    summary = event.tensor_proto.string_val[0].decode()
    assert "critic (Functional)" in summary
    assert "hidden_0" in summary
    assert "observation" in {node.name for node in events.Graph().node}
    # So does a loaded agent.
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    loaded.compile(run_eagerly=True)
    fit(loaded, rollouts, logs, epochs=1)
    assert steps(read(logs), "train/loss") == [64, 128, 192, 256]


def test_histograms_come_at_their_frequency(agent, rollouts, tmp_path):
    callback = TensorBoard(tmp_path, histogram_freq=2)
    fit(agent, rollouts, tmp_path, callback=callback)
    events = read(tmp_path)
    for tag in ("rollout/advantage", "rollout/returns", "rollout/action"):
        histograms = events.Histograms(tag)
        assert [h.step for h in histograms] == [64, 192]
        assert [h.histogram_value.num for h in histograms] == [64, 64]
    kernel = agent.actor.layers[-1].kernel.numpy()
    last = events.Histograms("weights/actor/output/kernel")[-1]
    assert last.histogram_value.num == kernel.size
    assert last.histogram_value.min == pytest.approx(kernel.min())
    assert sum(last.histogram_value.bucket) == kernel.size
    weights = [t for t in events.Tags()["histograms"] if "weights/" in t]
    assert len(weights) == len(agent.weights)


def test_settings_are_a_table(two_optimizers, rollouts, tmp_path):
    fit(two_optimizers, rollouts, tmp_path, epochs=1)
    events = read(tmp_path)
    for name, rate in (("actor", 1e-3), ("critic", 2e-3)):
        tag = f"train/learning_rate_{name}"
        assert values(events, tag) == pytest.approx([rate])
    (event,) = events.Tensors("hyper_parameters")
    lines = event.tensor_proto.string_val[0].decode().splitlines()
    assert lines[:2] == ["| name | value |", "|-|-|"]
    for line in (
        "| algorithm | PPO |",
        "| agent.gamma | 0.99 |",
        "| agent.clip_ratio | 0.2 |",
        "| agent.normalize_advantages | true |",
        "| optimizer.name | actor |",
        "| optimizer.learning_rate | 0.001 |",
        "| optimizer_1.name | critic |",
        "| optimizer_1.learning_rate | 0.002 |",
        "| dataset.horizon | 64 |",
        "| dataset.passes | 1 |",
        "| dataset.num_envs | 1 |",
    ):
        assert line in lines
    assert not any(".actor |" in line for line in lines)


def test_without_steps_curves_lie_over_updates(tmp_path):
    offline = rl.OfflineDataset(record(), 8, updates_per_epoch=20)
    agent = rl.DQN(
        keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)]),
        observation_space=gymnasium.spaces.Box(-1e3, 1e3, (2,)),
        action_space=gymnasium.spaces.Discrete(2),
        seed=0,
    )
    fit(agent, offline, tmp_path, epochs=2)
    fit(agent, offline, tmp_path, epochs=1)
    events = read(tmp_path)
    # Files of the same second are read in the order of their names.
    assert sorted(steps(events, "train/loss")) == [20, 40, 60]
    assert sorted(steps(events, "time/updates_per_second")) == [20, 40, 60]


def test_a_plain_keras_model_is_written_too(agent, rollouts, tmp_path):
    fit_plain_critic(agent, rollouts, TensorBoard(tmp_path))
    assert steps(read(tmp_path), "train/loss") == [64, 128]
    with pytest.raises(ValueError, match="Received: histogram_freq=-1"):
        TensorBoard(tmp_path, histogram_freq=-1)


# Of what learns from replay.


def dqn():
    env = make_env()
    return make_eager_agent(OFF_POLICY["DQN"], env), make_replay(env)


def test_each_number_of_a_replay_has_its_curve(tmp_path):
    agent, replay = dqn()
    callback = TensorBoard(tmp_path)
    values = []
    for _ in range(2):
        history = agent.fit(
            replay, epochs=2, callbacks=[callback], verbose=0
        ).history
        values.append(history)
    events = read(tmp_path)
    for key in (*agent.statistics_names, *agent.exploration_logs()):
        # That of Stable-Baselines3.
        is_epsilon = key == "epsilon"
        tag = "rollout/exploration_rate" if is_epsilon else f"train/{key}"
        assert [e.step for e in events.Scalars(tag)] == [16, 32, 48, 64], tag
        expected = [value for history in values for value in history[key]]
        np.testing.assert_allclose(
            [e.value for e in events.Scalars(tag)], expected, rtol=1e-6
        )
    histograms = [t for t in events.Tags()["histograms"] if "weights/" in t]
    # But for those that count something.
    numbers = [w for w in agent.weights if "float" in w.dtype]
    assert len(histograms) == len(numbers)
    assert any("/target_" in tag for tag in histograms)
    assert events.Tags()["graph"]
