"""Optuna tunes PPO on CartPole-v1: expect a greedy mean return of over 400.

Takes about half a minute on two cores: eight trials of 8192 steps at most, of
which those that do worse than others did by then are given up.
Needs Optuna: pip install optuna
"""

import keras_rl2 as rl
import gymnasium as gym
import keras
import optuna

SEED = 0
STEPS = 8_192
TRIALS = 8

env = gym.make_vec("CartPole-v1", num_envs=8)
episodes = rl.EvaluationDataset("CartPole-v1", 10, num_envs=10, seed=SEED)


def objective(trial):
    rollouts = rl.RolloutDataset(
        env,
        horizon=trial.suggest_categorical("horizon", [32, 64, 128]),
        passes=trial.suggest_int("passes", 2, 20),
        batch_size=256,
        seed=SEED,
    )
    agent = rl.PPO.for_env(
        env,
        gamma=trial.suggest_float("gamma", 0.95, 0.999),
        gae_lambda=trial.suggest_float("gae_lambda", 0.8, 0.98),
        seed=SEED,
    )
    rate = trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True)
    agent.compile(keras.optimizers.Adam(rate, epsilon=1e-5))
    history = agent.fit(
        rollouts,
        total_steps=STEPS,
        validation_data=episodes,
        callbacks=[rl.callbacks.OptunaPruning(trial)],
        verbose=0,
    ).history
    return history["val_episode_return"][-1]


study = optuna.create_study(
    direction="maximize",
    sampler=optuna.samplers.TPESampler(seed=SEED),
    # By environment steps: nobody is judged before a quarter of them.
    pruner=optuna.pruners.MedianPruner(2, n_warmup_steps=STEPS // 4),
)
study.optimize(objective, n_trials=TRIALS)
print("best settings:", study.best_params)
print(f"greedy mean return over 10 episodes: {study.best_value:.1f}")
