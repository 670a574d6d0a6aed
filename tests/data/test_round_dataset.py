"""What keeps a dataset of rounds alive, and what does not."""

import gc
import weakref

import pytest

from support.agents import EVERY_AGENT
from support.agents import make_eager_agent
from support.agents import make_env


def made(name, keep):
    """Makes an agent and a dataset; returns what is kept of its minibatches.

    Returns:
        What `keep` made of the minibatches, and a reference to the dataset.
    """
    case, env = EVERY_AGENT[name], make_env(EVERY_AGENT[name].pair)
    dataset = case.make_dataset(env)
    batches = dataset.as_dataset(make_eager_agent(case, env))
    dataset.refresh()
    return keep(batches), weakref.ref(dataset)


def dataset(batches):
    return batches


def mapped(batches):
    return iter(batches.map(dataset).prefetch(1))


@pytest.mark.spread(keep=[dataset, mapped])
@pytest.mark.parametrize("keep", [iter, dataset, mapped])
@pytest.mark.parametrize("name", ["PPO", "DQN"])
def test_it_lives_as_long_as_what_was_made_of_it(name, keep):
    kept, source = made(name, keep)
    gc.collect()
    assert len(next(iter(kept))["observation"]) == source().batch_size
    del kept
    gc.collect()
    assert source() is None
