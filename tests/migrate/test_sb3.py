"""Agents from files of Stable-Baselines3, without it but with PyTorch."""

import json
import sys
import zipfile

import gymnasium
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.layers import ObservationNormalization
from support import sb3_parity
from support.any_space_env import AnySpaceEnv
from support.torch_files import saved

pytest.importorskip("torch")
NAMES = sb3_parity.saved_names()
KINDS = {"a2c": rl.A2C, "ddpg": rl.DDPG, "dqn": rl.DQN, "ppo": rl.PPO}
KINDS |= {"sac": rl.SAC, "td3": rl.TD3}


@pytest.mark.parametrize("name", NAMES)
def test_it_answers_as_the_other_did(name):
    agent = sb3_parity.load(name)
    assert type(agent) is KINDS[name.split("_")[0]]
    given = sb3_parity.expected(name)
    apart = sb3_parity.differences(agent, given)
    assert apart.keys() == given.keys() - {
        "observation",
        "action",
        "unit_action",
    }
    assert max(apart.values()) < 1e-5, apart
    assert agent.env_steps == 1234


def test_stable_baselines3_is_not_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    sb3_parity.load("sac_elu")


def test_pictures_come_as_the_file_says_unless_env_differs():
    path = sb3_parity.FOLDER / "ppo_cnn.zip"
    given = sb3_parity.expected("ppo_cnn")
    agent = rl.migrate.from_sb3(path)
    assert agent.observation_space.shape == (3, 44, 52)
    turned = given["observation"].transpose(0, 3, 1, 2)
    np.testing.assert_allclose(agent.value(turned), given["value"], atol=1e-5)
    # One network for both, as there.
    assert agent.critic is None


def test_settings_are_taken_over():
    agent = sb3_parity.load("ppo_discrete")
    assert (agent.gamma, agent.gae_lambda, agent.clip_ratio) == (
        0.99,
        0.95,
        0.2,
    )
    assert agent.normalize_advantages
    assert float(agent.optimizer.learning_rate) == pytest.approx(3e-4)
    agent = sb3_parity.load("a2c_multi_binary_leaky_relu")
    assert not agent.normalize_advantages
    assert agent.gae_lambda == 1.0
    agent = sb3_parity.load("dqn")
    assert (agent.tau, agent.target_every, agent.epsilon) == (1.0, 2500, 0.05)
    assert not agent.double
    agent = sb3_parity.load("td3")
    assert (agent.policy_delay, agent.target_noise, agent.tau) == (2, 0.2, 5e-3)
    assert agent.exploration is None
    agent = sb3_parity.load("sac_elu")
    assert agent.noise_color == "white"
    assert agent.temperature == pytest.approx(np.exp(-1.25))
    assert (agent.learn_temperature, agent.target_entropy) == (True, -2.0)


def test_a_target_moves_as_often(tmp_path):
    for envs, updates, every in [(1, 1, 2500), (8, 1, 312), (8, -1, 10_000)]:
        change = settings(n_envs=envs, gradient_steps=updates)
        agent = rl.migrate.from_sb3(rewritten(tmp_path, "dqn", change))
        assert agent.target_every == every


def test_targets_of_the_file_are_not_made_equal_at_the_first_update():
    agent = sb3_parity.load("dqn")
    target = agent.target_network
    target.set_weights([each + 1.0 for each in target.get_weights()])
    before = target.get_weights()
    rows, size = 4, agent.observation_space.shape
    agent.train_on_batch(
        {
            "observation": np.zeros((rows, *size), np.float32),
            "action": np.zeros(rows, np.int32),
            "reward": np.zeros(rows, np.float32),
            "next_observation": np.zeros((rows, *size), np.float32),
            "discount": np.ones(rows, np.float32),
        }
    )
    np.testing.assert_equal(target.get_weights(), before)


def test_settings_given_go_first():
    path = sb3_parity.FOLDER / "ppo_discrete.zip"
    agent = rl.migrate.from_sb3(path, gamma=0.5, clip_ratio=0.1)
    assert (agent.gamma, agent.clip_ratio) == (0.5, 0.1)


def test_unknown_arguments_are_refused():
    for name, argument in [
        ("ppo_discrete", "clip_range"),
        ("ddpg", "policy_delay"),
    ]:
        path = sb3_parity.FOLDER / f"{name}.zip"
        with pytest.raises(TypeError, match=argument):
            rl.migrate.from_sb3(path, **{argument: 1})


def test_a_temperature_that_is_not_learned_stays(tmp_path):
    for fixed in (0.0, 0.2):
        path = rewritten(
            tmp_path,
            "sac_elu",
            settings(ent_coef=fixed),
            **{"pytorch_variables.pth": saved({})},
        )
        agent = rl.migrate.from_sb3(path)
        assert agent.temperature == pytest.approx(fixed, abs=1e-11)
        assert not agent.learn_temperature


def test_it_goes_on_training_and_is_saved(tmp_path):
    agent = sb3_parity.load("ppo_box_relu")
    given = sb3_parity.expected("ppo_box_relu")
    env = gymnasium.vector.SyncVectorEnv(
        [lambda: AnySpaceEnv(agent.observation_space, agent.action_space)]
    )
    data = rl.RolloutDataset(env, horizon=8, batch_size=8, seed=0)
    agent.fit(data, epochs=1, verbose=0)
    assert agent.env_steps > 1234
    trained = sb3_parity.answers(agent, given)
    assert not np.array_equal(trained["greedy"], given["greedy"])
    agent.save(tmp_path / "agent.keras")
    again = sb3_parity.answers(rl.load(tmp_path / "agent.keras"), given)
    for key, array in trained.items():
        np.testing.assert_array_equal(again[key], array)


def test_statistics_of_vec_normalize_come_first():
    path = sb3_parity.FOLDER / "sac_elu.zip"
    mean = np.array([0.5, -1.0, 2.0, 0.0])
    variance = np.array([4.0, 0.25, 1.0, 9.0])
    agent = rl.migrate.from_sb3(
        path, normalization={"mean": mean, "variance": variance, "count": 99}
    )
    given = sb3_parity.expected("sac_elu")
    # What SB3's network is shown is what `normalize_obs` makes of this.
    raw = given["observation"] * np.sqrt(variance + 1e-8) + mean
    given["observation"] = raw.astype("float32")
    assert max(sb3_parity.differences(agent, given).values()) < 2e-5
    layers = [
        layer
        for network in (agent.actor, *agent.critics, *agent.target_critics)
        for layer in network.layers
        if isinstance(layer, ObservationNormalization)
    ]
    assert [float(layer.count) for layer in layers] == [99.0] * 5


def test_an_env_that_does_not_fit_is_refused():
    path = sb3_parity.FOLDER / "ppo_discrete.zip"
    env = AnySpaceEnv(
        gymnasium.spaces.Box(-2.0, 2.0, (4,)), gymnasium.spaces.Discrete(2)
    )
    with pytest.raises(ValueError, match="for Discrete\\(3\\), not Discrete"):
        rl.migrate.from_sb3(path, env)
    with pytest.raises(ValueError, match="not for Box"):
        rl.migrate.from_sb3(path, "Pendulum-v1")


def rewritten(tmp_path, name, change=None, **members):
    """Returns a copy of a kept file, with other data or members."""
    path = tmp_path / f"{name}.zip"
    with zipfile.ZipFile(sb3_parity.FOLDER / f"{name}.zip") as file:
        contents = {each: file.read(each) for each in file.namelist()}
    if change is not None:
        data = json.loads(contents["data"])
        change(data)
        contents["data"] = json.dumps(data)
    contents |= members
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for each, content in contents.items():
            if content is not None:
                file.writestr(each, content)
    return path


def kwargs(**changes):
    """Returns what changes arguments of the policy."""

    def change(data):
        data["policy_kwargs"].update(changes)

    return change


def settings(**changes):
    """Returns what changes settings."""

    def change(data):
        for name, value in changes.items():
            if isinstance(value, dict) and name in data:
                data[name].update(value)
            else:
                data[name] = value

    return change


def assert_refused(path, reason):
    with pytest.raises(ValueError, match="Expected a model of Sta") as refused:
        rl.migrate.from_sb3(path)
    message = str(refused.value)
    assert reason in message
    assert str(path) in message
    assert len(message.splitlines()) == 1


def test_models_that_would_be_another_agent_are_refused(tmp_path):
    dict_ = {":type:": "<class 'gymnasium.spaces.dict.Dict'>"}
    for change, reason in [
        (
            kwargs(activation_fn="<class '__main__.ReLU'>"),
            "an activation <class '__main__.ReLU'>",
        ),
        (kwargs(lstm_hidden_size=8), "the argument 'lstm_hidden_size'"),
        (
            settings(policy_class={"__module__": "__main__"}),
            "a policy class of __main__",
        ),
        (kwargs(use_sde=True), "use_sde=True"),
        (settings(num_timesteps=float("nan")), "num_timesteps=nan"),
        (settings(observation_space=dict_), f"a space {dict_[':type:']}"),
        (
            settings(observation_space={"_shape": [10**6, 10**6]}),
            "at most 16777216 elements",
        ),
        (
            settings(observation_space={"low": "[__import__('os')]"}),
            "could not convert string",
        ),
        (settings(gamma=7.0), "Expected `gamma`"),
        (lambda data: data.clear(), "settings of none of"),
    ]:
        assert_refused(rewritten(tmp_path, "ppo_box_relu", change), reason)


def weights(**changes):
    """Returns the weights of a policy with some of them others."""
    from keras_rl2.migrate.sb3_file import SB3File

    arrays = SB3File(sb3_parity.FOLDER / "ppo_box_relu.zip").weights
    arrays = arrays | changes
    return saved({k: v for k, v in arrays.items() if v is not None})


def test_another_number_of_critics_is_refused(tmp_path):
    from keras_rl2.migrate.sb3_file import SB3File

    arrays = SB3File(sb3_parity.FOLDER / "sac_elu.zip").weights
    arrays = {k: v for k, v in arrays.items() if ".qf1." not in k}
    path = rewritten(tmp_path, "sac_elu", **{"policy.pth": saved(arrays)})
    with pytest.raises(ValueError, match="1 critics, where SAC has 2"):
        rl.migrate.from_sb3(path)


def floats(*shape):
    return np.ones(shape, "float32")


def test_damaged_files_are_refused(tmp_path):
    of_another_shape = weights(**{"value_net.weight": floats(1, 3)})
    for members, reason in [
        ({"data": None}, "none is 'data'"),
        ({"data": b"[]"}, "'data' that is no dict"),
        ({"data": b"{}" + b" " * 2**25}, "would be"),
        ({"policy.pth": b"x"}, "no file of PyTorch"),
        ({"policy.pth": weights(more=floats(2))}, "unknown parts: more"),
        (
            {"policy.pth": weights(**{"value_net.bias": None})},
            "without value_net.bias",
        ),
        ({"policy.pth": of_another_shape}, "of shape (1, 3), for 8 inputs"),
        ({"policy.pth": weights(log_std=floats(2) * np.nan)}, "not finite"),
    ]:
        assert_refused(rewritten(tmp_path, "ppo_box_relu", **members), reason)


def test_files_of_no_model_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        rl.migrate.from_sb3(tmp_path / "none.zip")
    (tmp_path / "agent.zip").write_text("agent")
    with pytest.raises(ValueError, match="no zip file"):
        rl.migrate.from_sb3(tmp_path / "agent.zip")


def test_actor_and_critic_may_share_layers(tmp_path):
    """Before version 1.8 they could: here in NumPy, as it was there."""
    generator = np.random.default_rng(0)

    def linear(name, units, inputs):
        weight = generator.normal(size=(units, inputs)).astype("float32")
        bias = generator.normal(size=units).astype("float32")
        return {f"{name}.weight": weight, f"{name}.bias": bias}

    arrays = {
        "log_std": np.zeros(2, "float32"),
        **linear("mlp_extractor.shared_net.0", 5, 6),
        **linear("mlp_extractor.policy_net.0", 4, 5),
        **linear("action_net", 2, 4),
        **linear("value_net", 1, 5),
    }
    path = rewritten(tmp_path, "ppo_box_relu", **{"policy.pth": saved(arrays)})
    agent = rl.migrate.from_sb3(path)
    assert agent.critic is None
    x = generator.normal(size=(3, 2, 3)).astype("float32")

    def applied(x, name):
        return x @ arrays[f"{name}.weight"].T + arrays[f"{name}.bias"]

    trunk = np.maximum(
        applied(x.reshape(3, 6), "mlp_extractor.shared_net.0"), 0.0
    )
    hidden = np.maximum(applied(trunk, "mlp_extractor.policy_net.0"), 0.0)
    np.testing.assert_allclose(
        agent(x), applied(hidden, "action_net"), atol=1e-5
    )
    np.testing.assert_allclose(
        agent.value(x), applied(trunk, "value_net")[:, 0], atol=1e-5
    )
