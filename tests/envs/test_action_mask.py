"""`ActionMask`: masks from wherever an environment has them."""

import re

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TimeLimit

from keras_rl2.envs import ActionMask
from keras_rl2.envs import as_vector_env
from keras_rl2.spaces.supported import is_masked
from support.errors import raises
from support.taxi import TAXI
from support.vector_envs import MODES

POSITIONS, WAYS = spaces.Discrete(5), spaces.Discrete(2)


class Doors(gymnasium.Env):
    """A walk along five doors; one can only go to a door that is there.

    Args:
        observation_space: Space of the observation without the mask.
        action_space: Space of the actions.
        mask: Function of the position to the mask, or None.
        by: "method", "info", "both" or "nothing".
    """

    def __init__(
        self,
        observation_space=POSITIONS,
        action_space=WAYS,
        mask=None,
        by="method",
    ):
        self.observation_space = observation_space
        self.action_space = action_space
        self.mask = mask or (lambda at: [at > 0, at < 4])
        self.by = by
        if by in ("method", "both"):
            self.action_masks = self._mask

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self._observation(), self._info()

    def step(self, action):
        self.at += 2 * int(np.ravel(action)[0]) - 1
        return self._observation(), 0.0, self.at == 4, False, self._info()

    def _mask(self):
        return np.array(self.mask(self.at))

    def _observation(self):
        if isinstance(self.observation_space, spaces.Dict):
            return {"at": self.at, "far": np.float32([4 - self.at])}
        return self.at

    def _info(self):
        if self.by == "info":
            return {"action_mask": self._mask()}
        if self.by == "both":
            # The one that goes with this very observation.
            return {"action_mask": 1 - self._mask()}
        return {}


def test_masks_of_a_method_and_of_info():
    for by in ("method", "info"):
        # Beneath another wrapper.
        env = ActionMask(TimeLimit(Doors(by=by), 10))
        observation, _ = env.reset(seed=0)
        seen = [observation]
        for _ in range(4):
            observation, *_ = env.step(1)
            seen.append(observation)
        assert [each["observation"] for each in seen] == [0, 1, 2, 3, 4]
        masks = [each["action_mask"].tolist() for each in seen]
        assert masks == [[0, 1], [1, 1], [1, 1], [1, 1], [1, 0]]
        assert all(each["action_mask"].dtype == np.int8 for each in seen)
        # Also an environment that is wrapped further is one with a mask.
        assert is_masked(TimeLimit(env, 5).observation_space)
    # What is in `info` goes before the method.
    observation, _ = ActionMask(Doors(by="both")).reset()
    assert observation["action_mask"].tolist() == [1, 0]


def test_a_dict_keeps_its_keys():
    inner = spaces.Dict(
        {"at": spaces.Discrete(5), "far": spaces.Box(0.0, 4.0, (1,))}
    )
    env = ActionMask(Doors(inner))
    assert set(env.observation_space) == {"at", "far", "action_mask"}
    assert env.observation_space["at"] is inner["at"]
    assert set(inner) == {"at", "far"}
    observation, _ = env.reset()
    assert set(observation) == {"at", "far", "action_mask"}
    assert env.observation_space.contains(observation)
    observation, *_ = env.step(1)
    assert observation["at"] == 1
    assert observation["far"].tolist() == [3.0]


@pytest.mark.parametrize(
    ("action_space", "mask"),
    [
        (spaces.Discrete(3, start=5), [0, 1, 1]),
        (spaces.MultiDiscrete([2, 3]), [0, 1, 1, 0, 1]),
        (spaces.MultiBinary(4), [0, 0, 1, 1]),
        (spaces.MultiBinary((2, 2)), [0, 0, 1, 1]),
    ],
)
def test_action_spaces(action_space, mask):
    env = Doors(action_space=action_space, mask=lambda at, mask=mask: mask)
    env = ActionMask(env)
    observation, _ = env.reset()
    assert observation["action_mask"].tolist() == mask
    assert env.observation_space["action_mask"].shape == (len(mask),)
    assert env.action_space == action_space


@pytest.mark.parametrize("mask", [[1], [1, 1, 1], [[1, 1]], 1])
@pytest.mark.parametrize("by", ["method", "info"])
def test_a_mask_of_another_length(mask, by):
    env = ActionMask(Doors(mask=lambda at, mask=mask: mask, by=by))
    with raises(
        r"shape \(2,\) for the action space Discrete",
        re.escape(str(np.shape(mask))),
    ):
        env.reset()


def test_without_any_mask():
    env = ActionMask(Doors(by="nothing"))
    with raises(r"info\['action_mask'\] or a method `action_masks", "Doors"):
        env.reset()


def test_a_mask_that_is_there_already_is_replaced():
    env = ActionMask(ActionMask(Doors()))
    assert set(env.observation_space) == {"observation", "action_mask"}
    observation, _ = env.reset()
    assert observation["action_mask"].tolist() == [0, 1]


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped")
def test_gymnasium_finds_nothing_wrong():
    check_env(ActionMask(Doors()), skip_render_check=True)


def test_in_a_vector_of_any_autoreset_mode():
    for mode in MODES:
        env = as_vector_env(
            gymnasium.vector.SyncVectorEnv(
                [lambda: ActionMask(Doors())] * 2, autoreset_mode=mode
            )
        )
        observation = env.reset(seed=0)
        assert observation["observation"].tolist() == [0, 0]
        for _ in range(4):
            observation, *_, final = env.step(np.ones(2, np.int32))
        last = observation if final is None else final
        assert last["observation"].tolist() == [4, 4]
        assert last["action_mask"].tolist() == [[1, 0]] * 2
        if final is not None:
            assert observation["action_mask"].tolist() == [[0, 1]] * 2
    env = as_vector_env(TAXI, num_envs=2, wrappers=[ActionMask])
    assert is_masked(env.observation_space)
    assert env.reset(seed=0)["action_mask"].shape == (2, 6)
