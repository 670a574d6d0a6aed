import numpy as np
import pytest

from keras_rl2.policies import actors as conversions
from support.export_cases import agent_of
from support.exported import export


@pytest.fixture(scope="session")
def agents():
    """Agents that are made once, and not to be changed."""
    made = {}

    def get(option, name):
        if (option, name) not in made:
            made[option, name] = agent_of(option, name)
        return made[option, name]

    return get


@pytest.fixture(scope="session")
def policies(tmp_path_factory):
    """Files of agents; of those whose policies are the same, of one.

    A file holds the graph of a policy and its weights, in which agents that
    learn otherwise do not differ: PPO and A2C, DQN and DiscreteCQL. What each
    is asked for is compared with the file all the same.
    """
    made = {}

    def get(agent, form, deterministic=True, quantize=None, **options):
        options |= {"deterministic": deterministic, "quantize": quantize}
        key = form, quantize, what_is_exported(agent, deterministic)
        if key not in made:
            folder = tmp_path_factory.mktemp("policies")
            made[key] = export(agent, folder, form, **options)
        return made[key]

    return get


def what_is_exported(agent, deterministic):
    """Returns all of an agent that goes into a file but its name."""
    weights = agent.acting_variables
    function = agent.policy_function(deterministic, variables=weights)
    graph = conversions.fingerprint(function)
    return (
        graph or id(agent),
        b"".join(np.asarray(weight).tobytes() for weight in weights),
        deterministic,
        repr(agent.observation_space),
        repr(agent.action_space),
        repr(agent.noise_parts),
    )
