"""APPO with a slow simulator: expect a greedy return of 475 or more.

The simulator is CartPole that waits 5 ms in each step, as for an answer of
another program: 320 seconds for the 64 000 steps. Sixteen workers take them at
once, and go on while there are updates.
"""

import time
from pathlib import Path

import keras_rl2 as rl
import gymnasium
import keras

SEED = 0
STEPS = 64_000
RUN = Path("runs/appo_cartpole")


class SlowCartPole(gymnasium.Wrapper):
    """CartPole with steps of 5 ms."""

    def __init__(self):
        super().__init__(gymnasium.make("CartPole-v1"))

    def step(self, action):
        time.sleep(0.005)
        return self.env.step(action)


rollouts = rl.RolloutDataset(
    SlowCartPole,
    num_envs=16,
    horizon=8,
    passes=20,
    batch_size=64,
    rounds_per_epoch=50,
    workers=rl.LocalWorkers(16),
    seed=SEED,
)
agent = rl.APPO.for_env(
    rollouts.env, hidden=(256, 256), gamma=0.98, gae_lambda=0.8, seed=SEED
)
updates = STEPS // rollouts.steps_per_round * rollouts.updates_per_round
rate = keras.optimizers.schedules.PolynomialDecay(5e-4, updates, 2e-5)
agent.compile(keras.optimizers.Adam(rate, epsilon=1e-5))
began = time.perf_counter()
agent.fit(
    rollouts, total_steps=STEPS, callbacks=[rl.callbacks.TensorBoard(RUN)]
)
print(f"{STEPS / (time.perf_counter() - began):.0f} steps/s")
rollouts.close()
agent.save(RUN / "agent.keras")
scores = agent.evaluate("CartPole-v1", episodes=20, verbose=0)
print(f"greedy mean return over 20 episodes: {scores['episode_return']:.0f}")
