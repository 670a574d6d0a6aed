"""Fixtures of tests of workers."""

import pytest

from support.watched_workers import made
from support.worker_processes import living


@pytest.fixture
def closing():
    """Makes them, and closes the data in the end."""
    opened = []

    def make(*args, **kwargs):
        agent, data = made(*args, **kwargs)
        opened.append(data)
        return agent, data

    yield make
    for data in opened:
        data.close()
        assert not living(data)
