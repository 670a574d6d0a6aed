"""Migration from Stable-Baselines3: agents from its saved models.

    agent = keras_rl2.migrate.from_sb3("ppo_cartpole.zip", "CartPole-v1")

Neither Stable-Baselines3 nor PyTorch need be installed.
"""

from keras_rl2.migrate.sb3 import from_sb3

__all__ = ["from_sb3"]
