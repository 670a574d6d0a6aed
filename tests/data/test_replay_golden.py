"""The replay buffers against the published numbers of other libraries."""

import numpy as np
import pytest

from keras_rl2.data.prioritized_replay_buffer import PrioritizedReplayBuffer
from keras_rl2.data.prioritized_replay_buffer import SumTree
from keras_rl2.data.replay_buffer import ReplayBuffer
from keras_rl2.spaces.array_spec import ArraySpec
from support import golden

NUMBER = ArraySpec((), "float32")


def cases(function):
    """Runs a test for the published cases of a function."""
    return pytest.mark.parametrize(
        "case",
        [c for c in golden.load_cases() if c["function"] == function],
        ids=lambda case: case["id"],
    )


def sampled(buffer):
    """Returns each transition of a buffer, by its number."""
    batch = buffer.sample(2048)
    _, rows = np.unique(batch["index"], return_index=True)
    batch = {key: value[rows] for key, value in batch.items()}
    assert len(rows) == len(buffer)
    return batch


def assert_close(actual, expected, case):
    np.testing.assert_allclose(actual, expected, **case["tolerance"])


@cases("nstep_replay")
def test_n_step_replay(case):
    inputs, expected = case["inputs"], case["expected"]
    buffer = ReplayBuffer(
        100, 1, NUMBER, (), np.int32,
        n_step=inputs["n"], gamma=inputs["gamma"], seed=0,
    )  # fmt: skip
    for t, reward in enumerate(inputs["rewards"]):
        buffer.add(
            [t], [0], [reward], [t == inputs["terminated_at"]],
            [t == inputs["truncated_at"]], [True], [t + 1],
        )  # fmt: skip
    batch = sampled(buffer)
    rows = np.searchsorted(batch["index"], inputs["indices"])
    assert batch["index"][rows].tolist() == inputs["indices"]
    assert_close(batch["reward"][rows], expected["rewards"], case)
    assert_close(batch["next_observation"][rows], expected["next_obs"], case)
    bootstraps = 1.0 - np.array(expected["dones"])
    discount = bootstraps * np.array(expected["discounts"])
    assert_close(batch["discount"][rows], discount, case)


@cases("nstep_ring")
def test_n_step_ring(case):
    """Q(s) is minus the reward of that step, which is its observation here.

    At the end of an episode, or of the data, Q is of the last step itself.
    """
    inputs = case["inputs"]
    size, n_step = len(inputs["rewards"]), inputs["n"]
    buffer = ReplayBuffer(
        size, 1, NUMBER, (), np.int32,
        n_step=n_step, gamma=inputs["gamma"], seed=0,
    )  # fmt: skip
    # Twelve steps were stored in a ring of ten: indices are places in it.
    order = inputs["indices"]
    for t, place in enumerate([0, 1, *order]):
        reward = float(inputs["rewards"][place])
        # What was overwritten does not matter.
        flags = [[inputs[k][place] == 1] for k in ("terminated", "truncated")]
        ended = flags[0][0] or flags[1][0]
        following = order[t - 1] if 2 <= t < size + 1 else place
        following = float(inputs["rewards"][following])
        buffer.add(
            [reward], [0], [reward], *flags, [True], [following],
            [reward] if ended else None,
        )  # fmt: skip
    buffer.cut()
    batch = sampled(buffer)
    # The oldest is number 2, and place 2: expected in the same order.
    assert batch["index"].tolist() == list(range(2, size + 2))
    returns = batch["reward"] - batch["discount"] * batch["next_observation"]
    assert_close(returns, case["expected"]["returns"], case)


@cases("sum_tree")
def test_sum_tree(case):
    inputs, expected = case["inputs"], case["expected"]
    tree = SumTree(len(inputs["priorities"]))
    tree.update(np.arange(tree.capacity), inputs["priorities"])
    assert_close(tree.total, expected["root"], case)
    assert tree.find(inputs["queries"]).tolist() == expected["indices"]
    if "update" in inputs:
        index, value = inputs["update"]
        tree.update([index], [value])
        assert_close(tree.total, expected["root_after"], case)
        found = tree.find(inputs["queries_after"])
        assert found.tolist() == expected["indices_after"]


@cases("sum_tree_never_zero")
def test_sum_tree_never_zero(case):
    inputs = case["inputs"]
    tree = SumTree(len(inputs["priorities"]))
    tree.update(np.arange(tree.capacity), inputs["priorities"])
    found = set(tree.find(inputs["queries"]).tolist())
    assert not found & set(case["expected"]["forbidden"])


@cases("per_weights")
def test_importance_weights(case):
    inputs = case["inputs"]
    priorities = np.array(inputs["priorities"])
    count = len(priorities)
    buffer = PrioritizedReplayBuffer(
        count, 1, NUMBER, (), np.int32, seed=0,
        # A function: another library takes numbers above 1, too.
        alpha=inputs["alpha"], beta=lambda _: inputs["beta"], epsilon=1e-12,
    )  # fmt: skip
    for t in range(count):
        buffer.add([t], [0], [0.0], [False], [False], [True], [t + 1])
    buffer.update_priorities(np.arange(count), priorities)
    # The batch holds the smallest priority: its maximum is the buffer's.
    batch = sampled(buffer)
    pairs = zip(
        batch["weight"], case["expected"]["weights_by_index"], strict=True
    )
    for weight, expected in pairs:
        # The other library never drew its newest item; see the case's note.
        if expected is not None:
            assert_close(weight, expected, case)
    assert len(batch["weight"]) == count
