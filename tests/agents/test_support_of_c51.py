"""Returns beyond the support of C51 count as its ends."""

import math

import numpy as np
import pytest

from support.linear_q import linear_agent
from support.linear_q import transitions
from support.minibatches import update


@pytest.mark.parametrize("following", [0.0, 0.5])
@pytest.mark.parametrize(
    ("reward", "atom"), [(100.0, 2), (2.5, 2), (-0.5, 0), (-1e6, 0)]
)
def test_a_target_beyond_the_support_is_the_last_atom(reward, atom, following):
    probabilities = np.array([0.125, 0.25, 0.625])
    agent = linear_agent(
        [[*np.log(probabilities), 0, 0, 0], [0] * 6],
        [[0] * 6, [99.0, 0, 0] * 2],
        distributional="categorical",
        atoms=3,
        support=(0, 2),
    )
    # Before the first one, targets are made equal to what they follow.
    agent.updates.assign(1)
    before = agent.q_network.get_weights()[0]
    logs = update(agent, transitions((0, reward, following)))
    assert logs["loss"] == pytest.approx(-math.log(probabilities[atom]))
    # All of the target's mass, 1, is on that atom: the gradient is p - 1 there.
    moved = agent.q_network.get_weights()[0] - before
    expected = -0.1 * (probabilities - (np.arange(3) == atom))
    np.testing.assert_allclose(moved[0, :3], expected, atol=1e-6)
