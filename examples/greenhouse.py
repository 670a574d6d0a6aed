"""A picture in, a number and a choice out: expect a mean return above 40."""

import keras_rl2 as rl
import gymnasium as gym
import numpy as np
from ai_edge_litert.interpreter import Interpreter


class Greenhouse(gym.Env):
    """Two days at 20 degrees, and four beds that dry out, seen by a camera."""

    observation_space = gym.spaces.Dict(
        beds=gym.spaces.Box(0, 255, (6, 6, 1), np.uint8),  # dry is bright
        degrees=gym.spaces.Box(-40.0, 60.0, (2,), np.float32),  # in, out
        sky=gym.spaces.Discrete(3),  # clear, cloudy, storm
    )
    action_space = gym.spaces.Dict(
        heating=gym.spaces.Box(0.0, 1.0, (1,), np.float32),
        tap=gym.spaces.Discrete(5),  # closed, or the bed to be watered
    )

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.degrees = self.np_random.uniform((5, -5), (30, 12))
        self.dry, self.hour = self.np_random.uniform(0, 1, 4), 0
        self.sky = np.int32(self.np_random.integers(3))
        return self.observe(), {}

    def observe(self):
        beds = np.kron(self.dry.reshape(2, 2, 1), np.full((3, 3, 1), 255))
        degrees = np.float32(self.degrees)
        return {"beds": np.uint8(beds), "degrees": degrees, "sky": self.sky}

    def step(self, action):
        (inside, outside), heating = self.degrees, float(action["heating"][0])
        leak, sun = ((0.15, 2.0), (0.15, 0.5), (0.3, 0.0))[self.sky]
        inside += leak * (outside - inside) + 8 * heating + sun
        dry = self.dry + 0.05 - 0.4 * (np.arange(1, 5) == action["tap"])
        reward = 1 - abs(inside / 10 - 2) - 2 * max(dry.max() - 0.5, -dry.min())
        self.degrees, self.dry = np.array([inside, outside]), dry.clip(0, 1)
        self.hour += 1
        return self.observe(), reward, False, self.hour == 48, {}


rollouts = rl.RolloutDataset(Greenhouse, num_envs=8, seed=0)
settings = {"normalize_observations": True, "entropy_coefficient": 0.01}
agent = rl.PPO.for_env(Greenhouse, seed=0, **settings)
agent.compile("adam")  # at 0.001; PPO's own rate is 0.0003
board = rl.callbacks.TensorBoard("runs/greenhouse")
agent.fit(rollouts, total_steps=50_000, callbacks=[board])
agent.save("runs/greenhouse/agent.keras")
agent.export("runs/greenhouse/policy.tflite", format="litert")
policy = Interpreter("runs/greenhouse/policy.tflite").get_signature_runner()
seen, _ = Greenhouse().reset(seed=2)
given = {f"observation_{key}": np.array([seen[key]]) for key in seen}
print(policy(**given), agent.act(seen, deterministic=True))  # the same
print(rl.record("random", Greenhouse, 960))  # a return of about -37
score = agent.evaluate(Greenhouse, episodes=20, seed=1)["episode_return"]
print(f"greedy mean return over 20 episodes: {score:.1f}")
