"""Makes the files of Stable-Baselines3 that tests read.

    python tests/migrate/make_sb3.py [FOLDER]

in an environment with stable-baselines3 and PyTorch, which the tests do not
need. `save` wrote `sb3/*.zip`, of policies with random weights;
`sb3/expected.npz` holds the outputs of those policies. The files here are of
Stable-Baselines3 2.9.2 and PyTorch 2.13.0.

The script compresses them, which Stable-Baselines3 does not do, and drops the
parts that are not read. The weights of convolutions have three values only,
often 0, and come in pairs, to compress well.
"""

import sys
import zipfile
from pathlib import Path

import numpy as np
import stable_baselines3 as sb3
import torch
from gymnasium import spaces

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))
from support.any_space_env import AnySpaceEnv  # noqa: E402
from support.sb3_parity import ARM  # noqa: E402
from support.sb3_parity import FOUR_NUMBERS  # noqa: E402
from support.sb3_parity import PICTURE  # noqa: E402
from support.sb3_parity import SPACES  # noqa: E402

HERE = TESTS / "migrate" / "sb3"
ROWS = 8
_LEFT_OUT = ("policy.optimizer.pth", "system_info.txt")
SMALL_CNN = {"features_extractor_kwargs": {"features_dim": 8}}
OFF_POLICY = {"buffer_size": 10}

# Name: algorithm, policy, observations, actions, net_arch and more.
CASES = {
    "ppo_discrete": (
        sb3.PPO,
        "MlpPolicy",
        *SPACES["ppo_discrete"],
        {"net_arch": {"pi": [8], "vf": [7, 6]}},
    ),
    "ppo_box_relu": (
        sb3.PPO,
        "MlpPolicy",
        *SPACES["ppo_box_relu"],
        {"net_arch": [8, 8], "activation_fn": torch.nn.ReLU},
    ),
    "ppo_cnn": (sb3.PPO, "CnnPolicy", *SPACES["ppo_cnn"], SMALL_CNN),
    "a2c_multi_binary_leaky_relu": (
        sb3.A2C,
        "MlpPolicy",
        *SPACES["a2c_multi_binary_leaky_relu"],
        {"net_arch": [8], "activation_fn": torch.nn.LeakyReLU},
    ),
    "dqn": (sb3.DQN, "MlpPolicy", *SPACES["dqn"], {"net_arch": [8, 7]}),
    "sac_elu": (
        sb3.SAC,
        "MlpPolicy",
        *SPACES["sac_elu"],
        {"net_arch": {"pi": [8], "qf": [7]}, "activation_fn": torch.nn.ELU},
    ),
    "td3": (sb3.TD3, "MlpPolicy", *SPACES["td3"], {"net_arch": [8, 7]}),
}
# Large: made where a test needs them, not kept.
MORE_CASES = {
    "ppo_two_cnns": (
        sb3.PPO,
        "CnnPolicy",
        PICTURE,
        ARM,
        {**SMALL_CNN, "share_features_extractor": False, "net_arch": [6]},
    ),
    "a2c_cnn": (
        sb3.A2C,
        "CnnPolicy",
        PICTURE,
        spaces.Discrete(3),
        {**SMALL_CNN, "normalize_images": False},
    ),
    "ppo_pixels_by_mlp": (
        sb3.PPO,
        "MlpPolicy",
        PICTURE,
        spaces.Discrete(3),
        {"net_arch": [6]},
    ),
    "dqn_cnn": (
        sb3.DQN,
        "CnnPolicy",
        PICTURE,
        spaces.Discrete(4),
        {**SMALL_CNN, "net_arch": [6]},
    ),
    "sac_cnn": (
        sb3.SAC,
        "CnnPolicy",
        PICTURE,
        ARM,
        {**SMALL_CNN, "net_arch": [6]},
    ),
    "td3_cnn": (
        sb3.TD3,
        "CnnPolicy",
        PICTURE,
        ARM,
        {**SMALL_CNN, "net_arch": [6]},
    ),
    "ppo_multi_discrete": (
        sb3.PPO,
        "MlpPolicy",
        spaces.MultiBinary(4),
        spaces.MultiDiscrete([2, 3]),
        {"activation_fn": torch.nn.SiLU},
    ),
    "sac_gelu": (
        sb3.SAC,
        "MlpPolicy",
        FOUR_NUMBERS,
        ARM,
        {"net_arch": [6], "activation_fn": torch.nn.GELU},
    ),
    "ppo_default": (
        sb3.PPO,
        "MlpPolicy",
        FOUR_NUMBERS,
        spaces.Discrete(3),
        {},
    ),
}


def make(name, folder):
    """Saves a model of one case, and returns its outputs."""
    kind, policy, observed, acted, options = {**CASES, **MORE_CASES}[name]
    more = {} if kind in (sb3.PPO, sb3.A2C) else OFF_POLICY
    seed = sorted({**CASES, **MORE_CASES}).index(name)
    model = kind(
        policy,
        AnySpaceEnv(observed, acted),
        policy_kwargs=options,
        seed=seed,
        device="cpu",
        **more,
    )
    with torch.no_grad():
        for parameter in model.policy.parameters():
            if parameter.ndim == 4:
                scale = 2.0 / parameter[0].numel() ** 0.5
                half = (len(parameter) // 2, *parameter.shape[1:])
                codes = torch.randint(-1, 2, half).repeat_interleave(2, 0)
                kept = torch.rand(half).repeat_interleave(2, 0) < 0.13
                parameter.copy_(codes * kept * 3.0 * scale)
            else:
                parameter.normal_(0.0, 0.5)
        if kind is sb3.SAC:
            model.log_ent_coef.fill_(-1.25)
    path = Path(folder) / f"{name}.zip"
    model.num_timesteps = 1234
    model.save(path)
    _pack(path)
    observed.seed(seed)
    acted.seed(seed)
    observation = np.stack([observed.sample() for _ in range(ROWS)])
    if observed is PICTURE:
        # Of squares, 4 x 4, which pack too.
        observation = observation[:4, ::4, ::4].repeat(4, 1).repeat(4, 2)
    return answers(model, observation)


def _pack(path):
    """Packs the members of a zip file that are read."""
    with zipfile.ZipFile(path) as file:
        members = [
            (each, file.read(each))
            for each in file.namelist()
            if each not in _LEFT_OUT
        ]
    with zipfile.ZipFile(
        path, "w", zipfile.ZIP_DEFLATED, compresslevel=9
    ) as file:
        for name, content in members:
            file.writestr(name, content)


def answers(model, observation):
    """Returns the outputs of a model for observations, as arrays."""
    policy = model.policy
    policy.set_training_mode(False)
    found = {"observation": observation}
    found["greedy"], _ = model.predict(observation, deterministic=True)
    seen, _ = policy.obs_to_tensor(observation)
    rows = len(observation)
    with torch.no_grad():
        if isinstance(model, sb3.PPO | sb3.A2C):
            action, _ = model.predict(observation, deterministic=False)
            given = torch.as_tensor(action)
            value, log_prob, entropy = policy.evaluate_actions(seen, given)
            found["action"], found["value"] = action, value.numpy()[:, 0]
            found["log_prob"] = log_prob.numpy()
            found["entropy"] = entropy.numpy()
        elif isinstance(model, sb3.DQN):
            found["q_values"] = policy.q_net(seen).numpy()
            found["target_q_values"] = policy.q_net_target(seen).numpy()
        else:
            unit = np.random.default_rng(0).uniform(-0.9, 0.9, (rows, 2))
            unit = unit.astype("float32")
            found["unit_action"] = unit
            action = torch.as_tensor(unit)
            found["q_values"] = torch.cat(
                policy.critic(seen, action), 1
            ).numpy()
            found["target_q_values"] = torch.cat(
                policy.critic_target(seen, action), 1
            ).numpy()
        if isinstance(model, sb3.SAC):
            mean, log_std, _ = policy.actor.get_action_dist_params(seen)
            distribution = policy.actor.action_dist.proba_distribution(
                mean, log_std
            )
            found["log_prob"] = distribution.log_prob(action).numpy()
    return found


def main():
    """Makes all that is kept."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    folder.mkdir(exist_ok=True)
    expected = {}
    for name in CASES:
        for key, array in make(name, folder).items():
            expected[f"{name}/{key}"] = array
    np.savez_compressed(folder / "expected.npz", **expected)


if __name__ == "__main__":
    main()
