import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium.spaces import Box
from gymnasium.spaces import Discrete
from keras import ops

from keras_rl2.envs import GraphEnv
from keras_rl2.envs import GraphVectorEnv
from keras_rl2.envs.graph import random_numbers
from keras_rl2.envs.graph.making import graph_env_ids
from keras_rl2.envs.graph.making import make_graph_env
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


class Grows(Walk):
    def step(self, state, action, seed):
        state, *rest = super().step({"at": state["at"][:1]}, action, seed)
        return {"at": ops.concatenate([state["at"]] * 2)}, *rest


class Narrows(Walk):
    def step(self, state, action, seed):
        state = {"at": ops.cast(state["at"], "float32")}
        state, *rest = super().step(state, action, seed)
        return {"at": ops.cast(state["at"], "float16")}, *rest


class Renames(Walk):
    def step(self, state, action, seed):
        (position,) = state.values()
        state, *rest = super().step({"at": position}, action, seed)
        return {"position": state["at"]}, *rest


class Diverges(Walk):
    def step(self, state, action, seed):
        _, observation, *rest = super().step(state, action, seed)
        return {"at": state["at"] / 0.0}, observation, *rest


class Blind(Walk):
    def step(self, state, action, seed):
        state, observation, *rest = super().step(state, action, seed)
        return state, observation * np.nan, *rest


class Worthless(Walk):
    def step(self, state, action, seed):
        state, observation, _, *ends = super().step(state, action, seed)
        return state, observation, ops.sum(observation) * np.nan, *ends


class RewardRow(Walk):
    def step(self, state, action, seed):
        state, observation, _, *ends = super().step(state, action, seed)
        return state, observation, observation, *ends


class EndRow(Walk):
    def step(self, state, action, seed):
        *rest, _ = super().step(state, action, seed)
        return *rest, ops.zeros((1,), "bool")


class FourValues(Walk):
    def step(self, state, action, seed):
        return super().step(state, action, seed)[:4]


class NumpyChance(Walk):
    def reset(self, seed):
        drawn = np.random.rand(1)  # noqa: NPY002
        position = ops.convert_to_tensor(drawn.astype(np.float32))
        return {"at": position}, position


class KerasChance(Walk):
    def step(self, state, action, seed):
        state, observation, *rest = super().step(state, action, seed)
        return state, observation + keras.random.normal((1,)), *rest


class TensorFlowChance(Walk):
    def step(self, state, action, seed):
        state, observation, _, *ends = super().step(state, action, seed)
        return state, observation, tf.random.uniform(()), *ends


class WideObservation(Walk):
    def reset(self, seed):
        state, observation = super().reset(seed)
        return state, ops.concatenate([observation] * 2)


class LateObservation(Walk):
    def step(self, state, action, seed):
        state, observation, *rest = super().step(state, action, seed)
        return state, observation[0], *rest


class NamedObservation(Walk):
    def reset(self, seed):
        state, observation = super().reset(seed)
        return state, {"at": observation}


class Words(Walk):
    observation_space = gymnasium.spaces.Text(5)


class Bytes(Walk):
    action_space = Box(0, 255, (2,), np.uint8)


class Spaceless(GraphEnv):
    action_space = Discrete(2)
    reset = Walk.reset
    step = Walk.step


class Actionless(GraphEnv):
    observation_space = Walk.observation_space
    reset = Walk.reset
    step = Walk.step


BROKEN = [
    (Grows, "Grows.step to keep the shapes and dtypes .*Received.*2,"),
    (Narrows, "Narrows.step to keep the shapes and dtypes .*float16"),
    (Renames, "Renames.step to keep .*'at'.*Received.*'position'"),
    (Diverges, "finite state at from Diverges.step.*inf"),
    (Blind, "finite observation from Blind.step.*nan"),
    (Worthless, "finite reward from Worthless.step.*nan"),
    (RewardRow, r"scalar reward from RewardRow.step.*\(1,\)"),
    (EndRow, r"scalar truncated from EndRow.step.*\(1,\)"),
    (FourValues, "Received: 4 values"),
    (NumpyChance, "NumpyChance.reset to return the same"),
    (KerasChance, "KerasChance.step to return the same"),
    (TensorFlowChance, "TensorFlowChance.step to return the same"),
    (WideObservation, r"observation of WideObservation.reset.*\(2,\)"),
    (LateObservation, r"observation of LateObservation.step.*\('', \(\)\)"),
    (NamedObservation, "observation of NamedObservation.reset.*'at'"),
    (Words, "Expected an observation space of Box"),
    (Bytes, "Expected an action space of Box"),
    (Spaceless, "`observation_space` as an attribute of Spaceless"),
    (Actionless, "`action_space` as an attribute of Actionless"),
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
