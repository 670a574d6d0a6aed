"""Files made by Stable-Baselines3 on the spot, where it is installed."""

import numpy as np
import pytest

import keras_rl2 as rl
from support import sb3_parity
from support.any_space_env import AnySpaceEnv

pytestmark = pytest.mark.slow
pytest.importorskip("stable_baselines3")


def test_all_networks_answer_as_the_others_did(tmp_path):
    from migrate import make_sb3

    cases = {**make_sb3.CASES, **make_sb3.MORE_CASES}
    for name, (_, _, observed, acted, _) in cases.items():
        given = make_sb3.make(name, tmp_path)
        given = {key: np.asarray(array) for key, array in given.items()}
        env = AnySpaceEnv(observed, acted)
        agent = rl.migrate.from_sb3(tmp_path / f"{name}.zip", env)
        apart = sb3_parity.differences(agent, given)
        assert max(apart.values()) < 1e-5, (name, apart)


def test_a_migrated_trained_model_acts_equally(tmp_path):
    import stable_baselines3 as sb3

    model = sb3.PPO("MlpPolicy", "CartPole-v1", n_steps=64, seed=0)
    model.learn(256)
    model.save(tmp_path / "ppo.zip")
    agent = rl.migrate.from_sb3(tmp_path / "ppo.zip", "CartPole-v1")
    generator = np.random.default_rng(0)
    observation = generator.normal(size=(256, 4)).astype("float32")
    expected, _ = model.predict(observation, deterministic=True)
    found = agent.act(observation, deterministic=True)
    np.testing.assert_array_equal(found, expected)
    assert agent.env_steps == 256
