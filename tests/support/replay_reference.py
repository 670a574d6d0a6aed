"""The expected contents of a replay buffer, computed step by step."""

import dataclasses

import numpy as np

from keras_rl2.collecting.trajectory import Trajectory


@dataclasses.dataclass
class Step:
    """One transition of one environment, and its number t * B + b."""

    index: int
    observation: object
    action: object
    reward: float
    terminated: bool
    ended: bool
    next_observation: object


def stream(generator, steps, num_envs, next_step, width=2):
    """Makes random episodes, as the environments of either kind report them.

    Args:
        generator: `np.random.Generator`.
        steps: T.
        num_envs: B.
        next_step: Whether an episode's end is followed by a row that is only
            a reset, instead of a final observation.
        width: Size of an observation.

    Returns:
        A `Trajectory`, and for each environment its list of `Step`.
    """
    leading = (steps, num_envs)
    observation = generator.normal(size=(steps + 1, num_envs, width))
    observation = observation.astype(np.float32)
    action = generator.integers(0, 9, leading).astype(np.int32)
    reward = generator.normal(size=leading).astype(np.float32)
    terminated, truncated = generator.random((2, *leading)) < 0.12
    valid = np.ones(leading, np.bool_)
    final, final_index = [], []
    truth = [[] for _ in range(num_envs)]
    for t in range(steps):
        for b in range(num_envs):
            if next_step and t and (terminated | truncated)[t - 1, b]:
                valid[t, b] = terminated[t, b] = truncated[t, b] = False
                reward[t, b] = 0.0
                continue
            ended = bool(terminated[t, b] or truncated[t, b])
            following = observation[t + 1, b]
            if ended and not next_step:
                following = generator.normal(size=width).astype(np.float32)
                final.append(following)
                final_index.append(t * num_envs + b)
            truth[b].append(
                Step(
                    t * num_envs + b,
                    observation[t, b],
                    action[t, b],
                    reward[t, b],
                    bool(terminated[t, b]),
                    ended,
                    following,
                )
            )
    final = np.array(final, np.float32).reshape(-1, width)
    arrays = (observation, action, reward, terminated, truncated, valid)
    return Trajectory(*arrays, final, np.array(final_index, np.int32)), truth


def part(trajectory, start, stop):
    """Returns some steps of a trajectory as one of their own."""
    num_envs = trajectory.reward.shape[1]
    step = trajectory.final_index // num_envs
    inside = (step >= start) & (step < stop)
    return Trajectory(
        trajectory.observation[start : stop + 1],
        trajectory.action[start:stop],
        trajectory.reward[start:stop],
        trajectory.terminated[start:stop],
        trajectory.truncated[start:stop],
        trajectory.valid[start:stop],
        trajectory.final_observation[inside],
        trajectory.final_index[inside] - start * num_envs,
    )


def expected_items(truth, n_step, gamma, oldest):
    """Returns the transitions that can be drawn, by their numbers.

    Args:
        truth: For each environment its list of `Step`.
        n_step: n.
        gamma: Discount factor.
        oldest: Smallest number that has not been overwritten.
    """
    items = {}
    for steps in truth:
        for i, first in enumerate(steps):
            total, window = 0.0, []
            for step in steps[i : i + n_step]:
                total += gamma ** len(window) * float(step.reward)
                window.append(step)
                if step.ended:
                    break
            last = window[-1]
            complete = last.ended or len(window) == n_step
            if complete and first.index >= oldest:
                items[first.index] = {
                    "observation": first.observation,
                    "action": first.action,
                    "reward": total,
                    "discount": gamma ** len(window) * (not last.terminated),
                    "next_observation": last.next_observation,
                }
    return items


def assert_holds(buffer, items, draws=4096):
    """Asserts that a buffer gives all of these transitions, and no other."""
    assert len(buffer) == len(items)
    if not items:
        return
    batch = buffer.sample(draws)
    assert set(batch["index"].tolist()) == set(items)
    for key in ("observation", "action", "reward", "discount"):
        expected = np.array([items[i][key] for i in batch["index"].tolist()])
        np.testing.assert_allclose(batch[key], expected, 1e-5, 1e-5)
    np.testing.assert_array_equal(
        batch["next_observation"],
        np.array(
            [items[i]["next_observation"] for i in batch["index"].tolist()]
        ),
    )
