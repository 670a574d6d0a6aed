"""The games of MinAtar as environments of the library."""

import numpy as np
import pytest
from keras import ops

from keras_rl2.envs.graph.making import make_graph_env
from keras_rl2.graph.graph_env_checks import check_graph_env
from support.minatar_games import IDS

CHANNELS = {
    "asterix": 4,
    "breakout": 4,
    "freeway": 7,
    "seaquest": 10,
    "space_invaders": 6,
}


@pytest.mark.parametrize("name", IDS)
def test_keeps_the_promises_of_environments(name: str) -> None:
    env = make_graph_env(IDS[name])
    check_graph_env(env)
    _, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    assert observation.shape == (10, 10, CHANNELS[name])
    assert env.observation_space.contains(np.asarray(observation))
    assert env.max_episode_steps is None


def test_has_all_actions_where_they_are_asked_for() -> None:
    for name in IDS:
        env = make_graph_env(IDS[name], {"use_minimal_action_set": False})
        assert env.action_space.n == 6
