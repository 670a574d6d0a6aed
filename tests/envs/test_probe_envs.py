import warnings

import numpy as np
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from keras_rl2.envs import as_vector_env
from support.probe_envs import PROBES
from support.probe_envs import ActionSpaceEnv
from support.probe_envs import DiscountProbe
from support.probe_envs import ImageEnv
from support.probe_envs import MatchProbe
from support.probe_envs import NonFiniteEnv
from support.probe_envs import ObservationProbe
from support.probe_envs import TimeLimitProbe
from support.probe_envs import WalkEnv
from support.transitions import play


def test_gymnasium_accepts_them():
    for env in (
        *(probe() for probe in PROBES.values()),
        WalkEnv(start=1),
        ActionSpaceEnv(spaces.MultiDiscrete([2, 3])),
        ImageEnv(),
    ):
        with warnings.catch_warnings():
            # It advises against infinite bounds, and actions beyond [-1, 1].
            warnings.simplefilter("ignore")
            check_env(env, skip_render_check=True, skip_close_check=True)


def rewards(env, steps, action=0):
    def policy(i, episode, step):
        return np.int32(action)

    (transitions,) = play(as_vector_env(env), steps, policy)
    return [(float(t[0][0]), float(t[2])) for t in transitions]


def test_rewards_are_as_documented():
    assert rewards(PROBES[1](), 2) == [(0, 1), (0, 1)]
    pairs = rewards(ObservationProbe(), 20)
    assert set(pairs) == {(1, 1), (-1, -1)}
    assert rewards(DiscountProbe(), 4) == [(0, 0), (1, 1)] * 2
    assert rewards(PROBES[4](), 1, action=1) == [(0, 1)]
    assert rewards(PROBES[4](), 1, action=0) == [(0, -1)]
    assert set(rewards(MatchProbe(), 20, action=1)) == {(1, 1), (-1, -1)}
    assert set(rewards(MatchProbe(), 20, action=0)) == {(1, -1), (-1, 1)}
    assert rewards(TimeLimitProbe(), 9) == [(0, 1)] * 9
    env = as_vector_env(PROBES[9]())
    env.reset()
    np.testing.assert_allclose(env.step(np.float32([[0.2]]))[1], [-0.09], 1e-6)


def test_the_adapter_hands_on_what_is_not_finite():
    # The collector refuses it: once for a rollout, and not in every step.
    for index, key in enumerate(("observation", "reward")):
        env = as_vector_env(NonFiniteEnv(at=2, key=key))
        env.reset()
        for finite in (True, False, True):
            value = env.step(np.zeros(1, np.int32))[index]
            assert np.isfinite(value).all() == finite, key
