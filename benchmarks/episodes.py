"""Episodes of a training, and the learning curve that they give."""

from collections import deque
from itertools import accumulate
from statistics import fmean

#: Equal parts of a training, of which each is a point of its curve.
PARTS = 20


def count_all(data):
    """Has a dataset of ours count all episodes, and not the last 100."""
    counted = data.source.collector.episodes
    assert not counted.returns
    counted.returns, counted.lengths = deque(), deque()


def of_dataset(data):
    """Returns pairs of environment steps at the end of an episode, and return.

    Environments are as good as one after the other: with several, steps of
    episodes that have not ended yet are not counted.
    """
    counted = data.source.collector.episodes
    return zip(accumulate(counted.lengths), counted.returns, strict=True)


def of_monitors(env):
    """Returns the same of Stable-Baselines3's monitors."""
    returns = env.env_method("get_episode_rewards")
    lengths = env.env_method("get_episode_lengths")
    found = []
    for each, taken in zip(returns, lengths, strict=True):
        steps = 0
        for value, length in zip(each, taken, strict=True):
            steps += length * env.num_envs
            found.append((steps, value))
    return found


def curve_of(episodes, steps):
    """Returns the mean return of the episodes of each part of a training.

    Args:
        episodes: iterable of environment steps at the end of an episode, and
            its return.
        steps: int. The length of the training. What a last round has beyond
            it belongs to the last part.

    Returns:
        list of environment steps at the end of a part, and the mean. Parts in
        which no episode ended are left out.
    """
    parts = [[] for _ in range(PARTS)]
    for end, value in episodes:
        parts[min(PARTS * (end - 1) // steps, PARTS - 1)].append(value)
    return [
        [steps * number // PARTS, round(fmean(part), 2)]
        for number, part in enumerate(parts, 1)
        if part
    ]
