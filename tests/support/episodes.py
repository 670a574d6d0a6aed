"""Records of episodes that can be told apart number by number."""

import numpy as np

ENDS = {3: "terminated", 9: "truncated", 10: "terminated", 17: "terminated"}
"""Steps that end an episode of `record`."""


def record(count=20, ends=None, seed=0):
    """Returns arrays of `count` steps whose observations count them."""
    ends = ENDS if ends is None else ends
    generator = np.random.default_rng(seed)
    ended = {
        key: np.array([ends.get(t) == key for t in range(count)])
        for key in ("terminated", "truncated")
    }
    time = np.arange(count, dtype=np.float32)
    return {
        "observations": np.stack([time, -time], axis=1),
        "actions": generator.integers(0, 2, count),
        "rewards": generator.normal(size=count),
        "terminations": ended["terminated"],
        "truncations": ended["truncated"],
        # That of the last step of an episode is no other step's.
        "next_observations": np.stack(
            [
                np.where(ended["terminated"] | ended["truncated"], 100, 1)
                + time,
                np.where(ended["terminated"] | ended["truncated"], 0, -1)
                - time,
            ],
            axis=1,
        ),
    }


def continuous(count=60, observations=3, seed=0):
    """Returns arrays as of Pendulum, in episodes of 20 steps."""
    generator = np.random.default_rng(seed)
    time = np.arange(count)
    return {
        "observations": generator.normal(size=(count, observations)),
        "actions": generator.uniform(-2.0, 2.0, (count, 1)),
        "rewards": generator.normal(size=count),
        "terminations": time % 40 == 19,
        "truncations": time % 40 == 39,
    }


def one_by_one(data, n_step, gamma):
    """Returns all transitions by the definition, by their first number."""
    ended = data["terminations"] | data["truncations"]
    found = {}
    for t in range(len(ended)):
        total, k = 0.0, 0
        while True:
            total += gamma**k * data["rewards"][t + k]
            k += 1
            if k == n_step or ended[t + k - 1] or t + k == len(ended):
                break
        last = t + k - 1
        found[t] = (
            data["actions"][t],
            total,
            0.0 if data["terminations"][last] else gamma**k,
            data["next_observations"][last],
        )
    return found
