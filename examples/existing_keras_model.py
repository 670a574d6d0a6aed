"""Your own Keras model and callbacks: expect a best mean return above 400.

Nothing in the model knows of reinforcement learning: one trunk, two heads,
logits of the two actions of CartPole-v1 and the value. Takes 15 seconds.
"""

import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # hides TensorFlow's notes

import gymnasium as gym
import keras

import keras_rl2 as rl

run = pathlib.Path("runs", time.strftime("existing_model_%Y%m%d-%H%M%S"))
run.mkdir(parents=True)

observation = keras.Input((4,))
trunk = keras.layers.Dense(128, activation="relu")(observation)
trunk = keras.layers.LayerNormalization()(trunk)
logits = keras.layers.Dense(2)(trunk)
value = keras.layers.Dense(1)(trunk)
model = keras.Model(observation, [logits, value])


class Print(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if "val_episode_return" in logs:
            print(f"epoch {epoch + 1}: {logs['val_episode_return']:.1f}")


agent = rl.PPO(model, gamma=0.98, gae_lambda=0.8, entropy_coefficient=0.001)
agent.compile(keras.optimizers.AdamW(1e-3))
rollouts = rl.RolloutDataset(
    gym.make_vec("CartPole-v1", num_envs=8), horizon=128, passes=8, seed=0
)
watched = {"monitor": "val_episode_return", "mode": "max"}
agent.fit(
    rollouts,
    epochs=100,
    validation_data=rl.EvaluationDataset("CartPole-v1", 10, seed=0),
    validation_freq=5,
    callbacks=[
        keras.callbacks.ModelCheckpoint(
            run / "best.keras", save_best_only=True, **watched
        ),
        keras.callbacks.EarlyStopping(patience=30, baseline=0, **watched),
        keras.callbacks.CSVLogger(run / "log.csv"),
        Print(),
    ],
    verbose=0,
)
best = keras.models.load_model(run / "best.keras")
score = best.evaluate("CartPole-v1", episodes=20, num_envs=20, seed=1)
print(f"greedy mean return over 20 episodes: {score['episode_return']:.1f}")
