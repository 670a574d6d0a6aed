"""The reported norm is that of the gradient, whatever it is clipped to."""

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
    if not (two and (case.acts_by_values or case.clones))
]


def sgd():
    return keras.optimizers.SGD(1.0)


def moved_by(agent, batch):
    """Returns an update's logs, and how far each network has moved."""
    networks = {
        key: each if isinstance(each, list) else [each]
        for key, each in networks_of(agent).items()
    }

    def weights():
        return {
            key: np.concatenate(
                [np.ravel(w) for n in several for w in n.get_weights()]
            )
            for key, several in networks.items()
        }

    before, logs, after = weights(), update(agent, batch), weights()
    return logs, {
        key: float(np.linalg.norm(after[key] - before[key])) for key in after
    }


@pytest.mark.rotate(name=ANY)
@pytest.mark.parametrize(("name", "two_optimizers"), OPTIMIZERS)
def test_the_norm_is_that_before_clipping(name, two_optimizers):
    case, logs, moved = EVERY_AGENT[name], {}, {}
    for max_norm in (None, CLIPPED_TO):
        agent, batch = small_agent(
            case,
            max_gradient_norm=max_norm,
            compile_arguments={
                "optimizer": sgd(),
                "critic_optimizer": sgd() if two_optimizers else None,
            },
        )
        logs[max_norm], moved[max_norm] = moved_by(agent, batch)
    norm = logs[None]["gradient_norm"]
    assert norm > 10 * CLIPPED_TO
    assert logs[CLIPPED_TO]["gradient_norm"] == pytest.approx(norm, rel=1e-5)
    # The gradient that is applied is clipped, of all networks together or of
    # each for itself.
    for key, distance in moved[CLIPPED_TO].items():
        assert 0 < distance <= CLIPPED_TO * 1.0001, key
        assert distance < moved[None][key], key


@pytest.mark.rotate(name=ANY)
@pytest.mark.parametrize(("name", "two_optimizers"), OPTIMIZERS)
def test_the_norm_is_that_of_what_is_applied(name, two_optimizers):
    """Unclipped, by a rate of 1, weights move by the gradient itself."""
    agent, batch = small_agent(
        EVERY_AGENT[name],
        max_gradient_norm=None,
        compile_arguments={
            "optimizer": sgd(),
            "critic_optimizer": sgd() if two_optimizers else None,
        },
    )
    before = [v.numpy() for v in agent.trainable_variables]
    logs, moved = moved_by(agent, batch)
    after = [v.numpy() for v in agent.trainable_variables]
    everything = np.sqrt(
        sum(((a - b) ** 2).sum() for a, b in zip(after, before, strict=True))
    )
    # That of agents which clip each network for itself is the critics'.
    expected = [everything, *(moved[k] for k in ("critic",) if k in moved)]
    norm = logs["gradient_norm"]
    assert any(norm == pytest.approx(each, rel=1e-4) for each in expected)
