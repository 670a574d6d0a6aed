import pytest

from support.export_cases import agent_of


@pytest.fixture(scope="session")
def agents():
    """Agents that are made once, and not to be changed."""
    made = {}

    def get(option, name):
        if (option, name) not in made:
            made[option, name] = agent_of(option, name)
        return made[option, name]

    return get
