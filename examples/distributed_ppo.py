"""PPO with a slow simulator, in workers of Ray: expect 6 to 8 times the speed.

The simulator is CartPole that waits 5 ms in each step, as for an answer of
another program. Needs Ray (`pip install "keras-rl2-fit[ray]"`), and starts one
on this machine; on a cluster, give `RayWorkers` its `address`.
"""

import time
from pathlib import Path

import keras_rl2 as rl
import gymnasium
import keras

SEED = 0
RUN = Path("runs/distributed_ppo")


class SlowCartPole(gymnasium.Wrapper):
    """CartPole with steps of 5 ms."""

    def __init__(self):
        super().__init__(gymnasium.make("CartPole-v1"))

    def step(self, action):
        time.sleep(0.005)
        return self.env.step(action)


gymnasium.register("SlowCartPole-v0", entry_point=SlowCartPole)


def rollouts(workers):
    return rl.RolloutDataset(
        "SlowCartPole-v0", num_envs=16, horizon=64, workers=workers, seed=SEED
    )


def steps_per_second(agent, data, epochs):
    """Trains, and returns the speed without the first epoch's compiling."""
    agent.fit(data, epochs=1, verbose=0)
    before, began = agent.env_steps, time.perf_counter()
    agent.fit(data, epochs=epochs, verbose=0)
    return (agent.env_steps - before) / (time.perf_counter() - began)


alone, together = rollouts(None), rollouts(rl.RayWorkers(8))
agent = rl.PPO.for_env(alone.env, gamma=0.98, gae_lambda=0.8, seed=SEED)
agent.compile(keras.optimizers.Adam(1e-3))
one = steps_per_second(agent, alone, epochs=2)
many = steps_per_second(agent, together, epochs=24)
alone.close()
together.close()
print(f"steps/s: {one:.0f} in one process, {many:.0f} in eight workers")

RUN.mkdir(parents=True, exist_ok=True)
agent.save(RUN / "agent.keras")
scores = agent.evaluate("CartPole-v1", episodes=20, verbose=0)
print(f"greedy mean return over 20 episodes: {scores['episode_return']:.0f}")
