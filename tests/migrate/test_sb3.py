"""Agents from files of Stable-Baselines3, without it and PyTorch."""

import json
import zipfile

import gymnasium
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.layers import ObservationNormalization
from support import sb3_parity
from support.any_space_env import AnySpaceEnv
from support.torch_files import saved

KINDS = {"a2c": rl.A2C, "dqn": rl.DQN, "ppo": rl.PPO}
KINDS |= {"sac": rl.SAC, "td3": rl.TD3}


@pytest.mark.parametrize("name", sb3_parity.SPACES)
def test_a_migrated_agent_has_the_outputs_of_the_original(name):
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


def test_pictures_may_have_their_channels_first():
    path = sb3_parity.FOLDER / "ppo_cnn.zip"
    given = sb3_parity.expected("ppo_cnn")
    first = gymnasium.spaces.Box(0, 255, (3, 44, 52), "uint8")
    env = AnySpaceEnv(first, gymnasium.spaces.Discrete(3))
    agent = rl.migrate.from_sb3(path, env)
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


@pytest.mark.parametrize(
    ("envs", "updates", "every"), [(1, 1, 2500), (8, 1, 312), (8, -1, 10_000)]
)
def test_a_target_moves_as_often(tmp_path, envs, updates, every):
    change = settings(n_envs=envs, gradient_steps=updates)
    agent = sb3_parity.load("dqn", rewritten(tmp_path, "dqn", change))
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
    agent = sb3_parity.load("ppo_discrete", gamma=0.5, clip_ratio=0.1)
    assert (agent.gamma, agent.clip_ratio) == (0.5, 0.1)


def test_unknown_arguments_are_refused():
    with pytest.raises(TypeError, match="clip_range"):
        sb3_parity.load("ppo_discrete", clip_range=1)


def test_settings_in_a_pickle_are_named(tmp_path):
    function = {":type:": "<class 'function'>"}

    def change(data):
        data.update(learning_rate=function, clip_range=function)

    path = rewritten(tmp_path, "ppo_discrete", change)
    with pytest.warns(UserWarning, match="learning_rate, clip_range"):
        agent = sb3_parity.load("ppo_discrete", path)
    assert agent.clip_ratio == 0.2
    own = agent.default_adam["learning_rate"]
    assert float(agent.optimizer.learning_rate) == pytest.approx(own)


@pytest.mark.parametrize("fixed", [0.0, 0.2])
def test_a_temperature_that_is_not_learned_stays(tmp_path, fixed):
    path = rewritten(
        tmp_path,
        "sac_elu",
        settings(ent_coef=fixed),
        **{"pytorch_variables.pth": saved({})},
    )
    agent = sb3_parity.load("sac_elu", path)
    assert agent.temperature == pytest.approx(fixed, abs=1e-11)
    assert not agent.learn_temperature


def test_a_migrated_agent_trains_on_and_is_saved(tmp_path):
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
    mean = np.array([0.5, -1.0, 2.0, 0.0])
    variance = np.array([4.0, 0.25, 1.0, 9.0])
    agent = sb3_parity.load(
        "sac_elu",
        normalization={"mean": mean, "variance": variance, "count": 99},
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


@pytest.mark.parametrize(
    ("observations", "actions"),
    [
        (sb3_parity.FOUR_NUMBERS, gymnasium.spaces.Discrete(2)),
        (sb3_parity.FOUR_NUMBERS, sb3_parity.ARM),
        (sb3_parity.ARM, gymnasium.spaces.Discrete(3)),
    ],
)
def test_an_env_that_does_not_fit_is_refused(observations, actions):
    path = sb3_parity.FOLDER / "ppo_discrete.zip"
    with pytest.raises(ValueError, match="for the environment"):
        rl.migrate.from_sb3(path, AnySpaceEnv(observations, actions))


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
    """Returns a function that changes arguments of the policy."""

    def change(data):
        data["policy_kwargs"].update(changes)

    return change


def settings(**changes):
    """Returns a function that changes settings."""

    def change(data):
        for name, value in changes.items():
            if isinstance(value, dict) and name in data:
                data[name].update(value)
            else:
                data[name] = value

    return change


def assert_refused(path, reason):
    with pytest.raises(ValueError, match="Expected a model of Sta") as refused:
        sb3_parity.load(path.stem, path)
    message = str(refused.value)
    assert reason in message
    assert str(path) in message
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
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
        (settings(gamma=7.0), "Expected `gamma`"),
        (lambda data: data.clear(), "settings of no algorithm"),
    ],
)
def test_models_that_would_be_another_agent_are_refused(
    tmp_path, change, reason
):
    assert_refused(rewritten(tmp_path, "ppo_box_relu", change), reason)


def weights(**changes):
    """Returns the weights of a policy with some of them others."""
    from keras_rl2.migrate.sb3_file import SB3File

    arrays = SB3File(sb3_parity.FOLDER / "ppo_box_relu.zip").weights
    arrays = arrays | changes
    return saved({k: v for k, v in arrays.items() if v is not None})


def floats(*shape):
    return np.ones(shape, "float32")


def test_damaged_files_are_refused(tmp_path):
    of_another_shape = weights(**{"value_net.weight": floats(1, 3)})
    for members, reason in [
        ({"data": None}, "no item named 'data'"),
        ({"data": b"[]"}, "settings of no algorithm"),
        ({"policy.pth": b"x"}, "not a zip file"),
        ({"policy.pth": weights(more=floats(2))}, "unknown parts: more"),
        (
            {"policy.pth": weights(**{"value_net.bias": None})},
            "without value_net.bias",
        ),
        ({"policy.pth": of_another_shape}, "weight shape (3, 1)"),
        ({"policy.pth": weights(log_std=floats(2) * np.nan)}, "not finite"),
    ]:
        assert_refused(rewritten(tmp_path, "ppo_box_relu", **members), reason)


def test_files_of_no_model_are_refused(tmp_path):
    path = tmp_path / "dqn.zip"
    with pytest.raises(FileNotFoundError):
        sb3_parity.load("dqn", path)
    path.write_text("agent")
    assert_refused(path, "not a zip file")
