"""Your own environment, from class to file: expect a mean return of 9."""

import subprocess
import sys

import keras_rl2 as rl
import gymnasium as gym
import numpy as np

PUSH = 0.02 * np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]])
BOX = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)


class Drone(gym.Env):
    """Flies to five lights, one after the other."""

    render_mode = "rgb_array"
    observation_space = gym.spaces.Dict(place=BOX, speed=BOX, light=BOX)
    action_space = gym.spaces.Discrete(5)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.light = self.np_random.uniform(-1, 1, (2, 2))
        self.speed, self.time, self.found = np.zeros(2), 0, 0
        return self.observe(), {}

    def observe(self):
        return {n: np.float32(getattr(self, n)) for n in self.observation_space}

    def step(self, action):
        self.time += 1
        self.speed = np.clip(0.95 * self.speed + PUSH[action], -0.1, 0.1)
        self.place = np.clip(self.place + self.speed, -1, 1)
        if near := abs(self.place - self.light).max() < 0.15:
            self.light = self.np_random.uniform(-1, 1, 2)
        self.found += near
        reward = 2.0 * near - 0.01
        return self.observe(), reward, self.found == 5, self.time == 200, {}

    def render(self):
        picture = np.zeros((96, 96, 3), np.uint8)
        for where, colour in ((self.light, (255, 200, 0)), (self.place, 255)):
            x, y = np.int32(44 + 42 * where)
            picture[y : y + 8, x : x + 8] = colour
        return picture


rollouts = rl.RolloutDataset(Drone, num_envs=8, rounds_per_epoch=10, seed=0)
agent = rl.PPO.for_env(Drone, entropy_coefficient=0.01, seed=0)
board = rl.callbacks.TensorBoard("runs/drone")
video = rl.callbacks.RecordVideo(Drone, "runs/drone/videos")
agent.fit(rollouts, total_steps=150_000, callbacks=[board, video])
agent.save("runs/drone/agent.keras")
agent.export("runs/drone/policy.tflite", format="litert")
LOAD = "import keras_rl2; print(keras_rl2.load('runs/drone/agent.keras'))"
subprocess.run([sys.executable, "-c", LOAD], check=True)
score = agent.evaluate(Drone, episodes=20, seed=1)
print(f"greedy mean return over 20 episodes: {score['episode_return']:.1f}")
