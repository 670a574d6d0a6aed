"""Migration from other libraries: agents from their saved networks.

    agent = keras_rl2.migrate.from_sb3("ppo_cartpole.zip", "CartPole-v1")

Files may come from unknown sources: no code in them is run, and the other
library need not be installed.
"""

from keras_rl2.migrate.keras_rl import from_keras_rl
from keras_rl2.migrate.sb3 import from_sb3

__all__ = ["from_keras_rl", "from_sb3"]
