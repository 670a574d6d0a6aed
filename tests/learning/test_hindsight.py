"""Goals that random actions never reach: Andrychowicz et al., 2017, figure 1.

There, DQN without hindsight learns up to 13 bits, and with it up to 50.
"""

import functools

import numpy as np
import pytest

import keras_rl2 as rl
from support.goal_envs import BitFlipping

pytestmark = pytest.mark.learning

BITS = 15


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("hindsight", "lowest", "highest"),
    [(rl.Hindsight(), 0.95, 1.0), (None, 0.0, 0.05)],
)
def test_fifteen_bits_are_flipped_with_hindsight_only(
    hindsight, lowest, highest, seed
):
    make = functools.partial(BitFlipping, BITS)
    agent = rl.DQN.for_env(make, seed=seed)
    replay = rl.ReplayDataset(make, hindsight=hindsight, seed=seed)
    agent.fit(replay, total_steps=30_000, verbose=0)
    played = rl.record(agent, make, 3000, deterministic=True).recorded
    # The last episode is cut off.
    success = np.mean(played.terminated[played.last][:-1])
    assert lowest <= success <= highest
