"""Optuna tunes PPO on CartPole-v1: expect a greedy mean return of over 300.

Takes a minute on two cores: eight trials of 16384 steps each at most, of which
those that do worse than others did by then are given up.
Needs Optuna: pip install optuna
"""

import keras_rl2 as rl
import keras
import optuna

SEED = 0
STEPS = 16_384
TRIALS = 8

episodes = rl.EvaluationDataset("CartPole-v1", 10, num_envs=10, seed=SEED)


def objective(trial):
    settings = {
        "gamma": trial.suggest_float("gamma", 0.95, 0.999),
        "gae_lambda": trial.suggest_float("gae_lambda", 0.8, 0.98),
    }
    rate = trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True)
    horizon = trial.suggest_categorical("horizon", [32, 64, 128])
    passes = trial.suggest_int("passes", 2, 20)
    rollouts = rl.RolloutDataset(
        "CartPole-v1",
        horizon=horizon,
        num_envs=8,
        passes=passes,
        batch_size=256,
        rounds_per_epoch=STEPS // (8 * 8 * horizon),
        seed=SEED,
    )
    agent = rl.PPO.for_env(rollouts.env, seed=SEED, **settings)
    agent.compile(keras.optimizers.Adam(rate, epsilon=1e-5))
    # Reports eight evaluations on the way, and ends what is given up.
    history = agent.fit(
        rollouts,
        total_steps=STEPS,
        validation_data=episodes,
        callbacks=[rl.callbacks.OptunaPruning(trial)],
        verbose=0,
    )
    return history.history["val_episode_return"][-1]


study = optuna.create_study(
    direction="maximize",
    sampler=optuna.samplers.TPESampler(seed=SEED),
    # By environment steps: no trial is pruned before a quarter of them.
    pruner=optuna.pruners.MedianPruner(2, n_warmup_steps=STEPS // 4),
)
study.optimize(objective, n_trials=TRIALS)
print("best settings:", study.best_params)
print(f"greedy mean return over 10 episodes: {study.best_value:.1f}")
