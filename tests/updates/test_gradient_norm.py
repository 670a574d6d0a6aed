"""The reported norm is that of the gradient, whatever it is clipped to."""

import keras
import numpy as np
import pytest

from support.agents import KINDS
from support.agents import networks_of
from support.minibatches import small_agent
from support.minibatches import update

CLIPPED_TO = 1e-3


def sgd():
    return keras.optimizers.SGD(1.0)


def one_update(name, two_optimizers, max_norm):
    """Makes an update by SGD of rate 1.

    Returns:
        Its logs, and the distance that each network has moved. The distance
        of all trained networks is under `everything`.
    """
    agent, batch = small_agent(
        KINDS[name],
        max_gradient_norm=max_norm,
        compile_arguments={
            "optimizer": sgd(),
            "critic_optimizer": sgd() if two_optimizers else None,
        },
    )
    variables = {"everything": agent.trainable_variables}
    for key, found in networks_of(agent).items():
        networks = found if isinstance(found, list) else [found]
        variables[key] = [v for n in networks for v in n.trainable_variables]

    def weights():
        return {
            key: np.concatenate([np.ravel(each.numpy()) for each in several])
            for key, several in variables.items()
        }

    before, logs, after = weights(), update(agent, batch), weights()
    return logs, {
        key: float(np.linalg.norm(after[key] - before[key])) for key in after
    }


@pytest.mark.parametrize(
    ("name", "two_optimizers"),
    [("PPO", True), ("SAC", False)]
    + [pytest.param(x, False, marks=pytest.mark.slow) for x in ("PPO", "DQN")],
)
def test_the_norm_is_that_of_the_unclipped_gradient(name, two_optimizers):
    """Unclipped, by a rate of 1, weights move by the gradient itself."""
    logs, moved = one_update(name, two_optimizers, None)
    # That of agents which clip each network for itself is the critics'.
    expected = [moved[k] for k in ("everything", "critic") if k in moved]
    norm = logs["gradient_norm"]
    assert any(norm == pytest.approx(each, rel=1e-4) for each in expected)
    # Clipped, it is told as it was before.
    assert norm > 10 * CLIPPED_TO
    clipped, less = one_update(name, two_optimizers, CLIPPED_TO)
    assert clipped["gradient_norm"] == pytest.approx(norm, rel=1e-5)
    # What is applied is clipped, of all networks together or of each.
    for key in moved.keys() - {"everything"}:
        assert 0 < less[key] <= CLIPPED_TO * 1.0001, key
        assert less[key] < moved[key], key
