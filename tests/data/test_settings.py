"""What datasets say that they were made with."""

import keras_rl2 as rl


def test_settings_of_rollouts():
    rollouts = rl.RolloutDataset(
        "CartPole-v1",
        horizon=64,
        passes=3,
        num_envs=2,
        batch_size=50,
        scale_rewards=False,
        seed=7,
    )
    expected = {
        "rounds_per_epoch": 1,
        "seed": 7,
        "horizon": 64,
        "passes": 3,
        "scale_rewards": False,
        "steps_per_round": 128,
        "batch_size": 50,
        "minibatches": 3,
        "updates_per_round": 9,
        "num_envs": 2,
        "on_env_error": "raise",
    }
    # Whether rewards are scaled is known when it is bound.
    assert rollouts.settings() == {
        k: v for k, v in expected.items() if k != "scale_rewards"
    }
    # What it is bound to and what it collects are none.
    rollouts.bind(rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0))
    rollouts.refresh()
    assert rollouts.settings() == expected


def test_settings_of_replay():
    replay = rl.ReplayDataset(
        "CartPole-v1", capacity=128, batch_size=8, updates_per_round=4, n_step=3
    )
    settings = replay.settings()
    expected = {
        "rounds_per_epoch": 16,
        "steps_per_round": 64,
        "updates_per_round": 4,
        "capacity": 128,
        "batch_size": 8,
        "n_step": 3,
        "warm_up": 1000,
        "prioritized": False,
        "alpha": 0.6,
        "num_envs": 1,
    }
    assert expected.items() <= settings.items()
    # Nor is what was left open.
    assert "seed" not in settings
