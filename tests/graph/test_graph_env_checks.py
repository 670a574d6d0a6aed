import gymnasium
import keras
import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.spaces import Discrete
from keras import ops

from keras_rl2.envs import GraphEnv
from keras_rl2.envs import GraphVectorEnv
from keras_rl2.envs.graph import random_numbers
from keras_rl2.envs.graph.graph_env import graph_env_ids
from keras_rl2.envs.graph.graph_env import make_graph_env
from keras_rl2.graph.graph_env_checks import check_graph_env


class Walk(GraphEnv):
    """A walk on a line, in which nothing is wrong."""

    observation_space = Box(-9.0, 9.0, (1,))
    action_space = Discrete(2)

    def reset(self, seed):
        position = random_numbers.uniform(seed, (1,))
        return {"at": position}, position

    def step(self, state, action, seed):
        position = state["at"] + random_numbers.normal(seed, (1,))
        return {"at": position}, position, ops.sum(position), False, False


def broken(name, reset=None, step=None, **attributes):
    """Makes a walk whose `reset` or `step` return something else."""

    class Broken(Walk):
        def reset(self, seed):
            found = super().reset(seed)
            return reset(*found) if reset else found

        def step(self, state, action, seed):
            # Whatever has become of the state.
            (position,) = state.values()
            state = {"at": ops.cast(position[:1], "float32")}
            found = super().step(state, action, seed)
            return step(*found) if step else found

    return type(name, (Broken,), attributes)


def twice(x):
    return ops.concatenate([x] * 2)


Worthless = broken("Worthless", step=lambda s, o, r, *e: (s, o, r * np.nan, *e))

BROKEN = [
    (
        broken("Grows", step=lambda s, *r: ({"at": twice(s["at"])}, *r)),
        "Grows.step to keep the shapes and dtypes .*Received.*2,",
    ),
    (
        broken("Diverges", step=lambda s, *r: ({"at": s["at"] / 0.0}, *r)),
        "finite state.at from Diverges.step.*inf",
    ),
    (
        broken("Blind", step=lambda s, o, *r: (s, o * np.nan, *r)),
        "finite observation from Blind.step.*nan",
    ),
    (Worthless, "finite reward from Worthless.step.*nan"),
    (
        broken("RewardRow", step=lambda s, o, r, *e: (s, o, o, *e)),
        r"scalar reward from RewardRow.step.*\(1,\)",
    ),
    (broken("FourValues", step=lambda *r: r[:4]), "expected 5, got 4"),
    (
        broken(
            "KerasChance",
            step=lambda s, o, *r: (s, o + keras.random.normal((1,)), *r),
        ),
        "KerasChance.step to return the same",
    ),
    (
        broken("WideObservation", reset=lambda s, o: (s, twice(o))),
        r"observation of WideObservation.reset.*\(2,\)",
    ),
    (
        broken("Words", observation_space=gymnasium.spaces.Text(5)),
        "Expected an observation space of Box",
    ),
]


def test_broken_promises_are_named():
    for kind, said in BROKEN:
        with pytest.raises(ValueError, match=f"(?s){said}"):
            check_graph_env(kind())
    # It is checked as it is made a vector.
    with pytest.raises(ValueError, match="finite reward"):
        GraphVectorEnv(Worthless)


def test_sound_environments_pass():
    for env in (Walk(), *map(make_graph_env, graph_env_ids())):
        check_graph_env(env)
