"""The reported norm is that of the gradient, whatever it is clipped to."""

import functools

import keras
import numpy as np
import pytest

from support.agents import ANY
from support.agents import EVERY_AGENT
from support.agents import networks_of
from support.minibatches import small_agent
from support.minibatches import update

CLIPPED_TO = 1e-3

# Agents with but one network have no critic to be optimized.
OPTIMIZERS = [
    (name, two)
    for name, case in EVERY_AGENT.items()
    for two in (False, True)
    if not two or "critic" in case.networks
]


def sgd():
    return keras.optimizers.SGD(1.0)


@pytest.fixture(scope="module")
def one_update():
    """Makes an update by SGD of rate 1, each once; see `moved_by`."""

    @functools.cache
    def made(name, two_optimizers, max_norm):
        agent, batch = small_agent(
            EVERY_AGENT[name],
            max_gradient_norm=max_norm,
            compile_arguments={
                "optimizer": sgd(),
                "critic_optimizer": sgd() if two_optimizers else None,
            },
        )
        return moved_by(agent, batch)

    return made


def moved_by(agent, batch):
    """Returns an update's logs, and how far each network has moved.

    What all that is trained has moved, stands under `everything`.
    """
    networks = {
        key: each if isinstance(each, list) else [each]
        for key, each in networks_of(agent).items()
    }

    def weights():
        everything = [np.ravel(v.numpy()) for v in agent.trainable_variables]
        return {"everything": np.concatenate(everything)} | {
            key: np.concatenate(
                [
                    np.ravel(variable.numpy())
                    for network in several
                    for variable in network.trainable_variables
                ]
            )
            for key, several in networks.items()
        }

    before, logs, after = weights(), update(agent, batch), weights()
    return logs, {
        key: float(np.linalg.norm(after[key] - before[key])) for key in after
    }


@pytest.mark.rotate(name=ANY)
@pytest.mark.parametrize(("name", "two_optimizers"), OPTIMIZERS)
def test_the_norm_is_that_before_clipping(name, two_optimizers, one_update):
    free, moved_freely = one_update(name, two_optimizers, None)
    clipped, moved = one_update(name, two_optimizers, CLIPPED_TO)
    norm = free["gradient_norm"]
    assert norm > 10 * CLIPPED_TO
    assert clipped["gradient_norm"] == pytest.approx(norm, rel=1e-5)
    # The gradient that is applied is clipped, of all networks together or of
    # each for itself.
    for key in moved.keys() - {"everything"}:
        assert 0 < moved[key] <= CLIPPED_TO * 1.0001, key
        assert moved[key] < moved_freely[key], key


@pytest.mark.rotate(name=ANY)
@pytest.mark.parametrize(("name", "two_optimizers"), OPTIMIZERS)
def test_the_norm_is_that_of_what_is_applied(name, two_optimizers, one_update):
    """Unclipped, by a rate of 1, weights move by the gradient itself."""
    logs, moved = one_update(name, two_optimizers, None)
    # That of agents which clip each network for itself is the critics'.
    expected = [moved[k] for k in ("everything", "critic") if k in moved]
    norm = logs["gradient_norm"]
    assert any(norm == pytest.approx(each, rel=1e-4) for each in expected)
