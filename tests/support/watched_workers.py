"""Agents with workers, watched for whether all that they see is whole."""

import keras
import numpy as np

import keras_rl2 as rl
from support.datasets import episodes_of
from support.worker_envs import LONGEST
from support.worker_envs import SHORTEST
from support.worker_envs import NumberedEnv

HORIZON = 32
NUM_ENVS = 4
REPLAY = {
    "capacity": 600,
    "batch_size": 16,
    "warm_up": 96,
    "steps_per_round": 48,
    "updates_per_round": 2,
    "n_step": 3,
}


class Watch:
    """Checks all that an agent is shown of `NumberedEnv`.

    Attributes:
        rollouts: int. How many it was.
        gaps: int. Places where environments took the place of others.
    """

    def __init__(self, data, agent):
        self.rollouts = self.gaps = 0
        self._data = data
        self._before = None
        agent.observers.add(self)

    def __call__(self, trajectory):
        self.rollouts += 1
        steps = (self._data.horizon, self._data.env.num_envs)
        assert trajectory.reward.shape == steps
        observation = trajectory.observation
        assert observation.shape == (steps[0] + 1, steps[1], 3)
        following = observation[1:].copy()
        t, b = np.divmod(trajectory.final_index, steps[1])
        following[t, b] = trajectory.final_observation
        # Each step leads from one step of an episode to its next.
        np.testing.assert_array_equal(
            following[..., :2], observation[:-1, :, :2]
        )
        np.testing.assert_array_equal(
            following[..., 2], observation[:-1, :, 2] + 1
        )
        np.testing.assert_array_equal(trajectory.reward, following[..., 2])
        # What begins within a rollout is the next episode of the same.
        ended = trajectory.ended
        assert trajectory.valid.all()
        np.testing.assert_array_equal(
            observation[1:][ended],
            np.stack(
                [
                    following[ended][:, 0],
                    following[ended][:, 1] + 1,
                    np.zeros(ended.sum()),
                ],
                axis=1,
            ),
        )
        assert ((trajectory.reward < LONGEST) | ended).all()
        assert ended.any(axis=0).all()
        if self._before is not None:
            goes_on = (observation[0] == self._before).all(axis=1)
            # Others begin with an episode, those of a process together.
            assert (observation[0, ~goes_on, 2] == 0).all()
            same = observation[0, :, 0] == self._before[:, 0]
            later = observation[0, :, 1] > self._before[:, 1]
            assert (goes_on | later | ~same).all()
            self.gaps += int(np.count_nonzero(~goes_on))
        self._before = observation[-1].copy()

    def assert_statistics(self):
        """Asserts that all episodes that were counted are whole ones."""
        episodes = episodes_of(self._data)
        lengths = np.array(episodes["episode_lengths"])
        assert len(lengths)
        assert ((lengths >= SHORTEST) & (lengths <= LONGEST)).all()
        np.testing.assert_array_equal(
            episodes["episode_returns"], lengths * (lengths + 1) / 2
        )


def made(env=NumberedEnv, workers=None, kind=rl.PPO, **settings):
    """Makes an agent, data and a watch; no processes are left by a failure."""
    defaults = (
        {"horizon": HORIZON, "passes": 1, "batch_size": None}
        if kind.on_policy
        else REPLAY
    )
    dataset = rl.RolloutDataset if kind.on_policy else rl.ReplayDataset
    data = dataset(
        env,
        num_envs=NUM_ENVS,
        seed=0,
        workers=workers or rl.LocalWorkers(2),
        **{**defaults, **settings},
    )
    agent = kind.for_env(data.env, hidden=(8,), seed=0)
    agent.compile(keras.optimizers.SGD(0.01), run_eagerly=True)
    return agent, data
