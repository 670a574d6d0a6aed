"""Replay of trees: each array as a buffer of that array alone has it."""

import dataclasses
import functools

import numpy as np
import pytest

from keras_rl2.data.prioritized_replay_buffer import PrioritizedReplayBuffer
from keras_rl2.data.replay_buffer import ReplayBuffer
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import named_leaves
from support.agents import OFF_POLICY_KINDS
from support.agents import make_eager_agent
from support.agents import make_replay
from support.errors import raises
from support.replay_reference import part
from support.replay_reference import stream
from support.structured_envs import OBSERVATIONS
from support.structured_envs import StructuredEnv
from support.structured_envs import vector
from support.vector_envs import MODES

WIDTH = 3
SPEC = {
    "vector": ArraySpec((WIDTH,), "float32"),
    "inner": (
        ArraySpec((2, WIDTH), "uint8"),
        {"number": ArraySpec((), "int32")},
    ),
}
KINDS = {
    "uniform": (ReplayBuffer, {}),
    "prioritized": (PrioritizedReplayBuffer, {"alpha": 0.7, "beta": 0.5}),
}


def make(kind="uniform", spec=SPEC, capacity=60, num_envs=2, **settings):
    """Makes a buffer of a tree, or of one array."""
    cls, own = KINDS[kind]
    settings = {"n_step": 3, "gamma": 0.9, "seed": 0, **own, **settings}
    return cls(capacity, num_envs, spec, (), np.int32, **settings)


def as_tree(array):
    """Returns a tree of `SPEC`, each array of which tells rows apart."""
    # Whole numbers and signs are the same in many rows, as a picture's are.
    coarse = np.stack([array, -array], axis=-2)
    return {
        "vector": array,
        "inner": (
            (100 * np.abs(coarse)).astype(np.uint8),
            {"number": (1e6 * array[..., 0]).astype(np.int32)},
        ),
    }


def tree_of(trajectory):
    """Returns a trajectory whose observations are trees."""
    return dataclasses.replace(
        trajectory,
        observation=as_tree(trajectory.observation),
        final_observation=as_tree(trajectory.final_observation),
    )


def only(trajectory, path):
    """Returns a trajectory of trees with one array of them for observation."""
    return dataclasses.replace(
        trajectory,
        observation=dict(named_leaves(trajectory.observation))[path],
        final_observation=dict(named_leaves(trajectory.final_observation))[
            path
        ],
    )


def streamed(steps=130, num_envs=2, next_step=False, seed=0):
    generator = np.random.default_rng(seed)
    return tree_of(stream(generator, steps, num_envs, next_step, WIDTH)[0])


def part_of(trajectory, start, stop):
    """Returns some steps of a trajectory of trees."""
    return tree_of(part(only(trajectory, "vector"), start, stop))


def assert_like_flat(buffer, flat, draws=600):
    """Asserts that a batch equals those of buffers of one array each."""
    batch = buffer.sample(draws)
    for path, one in flat.items():
        expected = one.sample(draws)
        for key, array in expected.items():
            found = batch[key]
            if key.endswith("observation"):
                found = dict(named_leaves(found))[path]
            assert found.dtype == array.dtype
            np.testing.assert_array_equal(found, array, err_msg=path)


def flat_buffers(kind, **settings):
    return {
        path: make(kind, spec, **settings) for path, spec in named_leaves(SPEC)
    }


@pytest.mark.parametrize(
    ("kind", "next_step", "n_step"),
    [("uniform", False, 3), ("prioritized", True, 1)],
)
def test_each_array_is_that_of_a_flat_buffer(kind, next_step, n_step):
    trajectory = streamed(next_step=next_step, seed=n_step)
    buffer = make(kind, n_step=n_step)
    flat = flat_buffers(kind, n_step=n_step)
    # Not yet full, full, and around several times.
    for start, stop in ((0, 13), (13, 29), (29, 31), (31, 130)):
        piece = part_of(trajectory, start, stop)
        buffer.extend(piece)
        if stop == 31:
            buffer.cut()
        for path, one in flat.items():
            one.extend(only(piece, path))
            if stop == 31:
                one.cut()
            assert len(one) == len(buffer) > 0
        assert_like_flat(buffer, flat)
        if kind == "prioritized":
            index = buffer.sample(20)["index"]
            for one in (buffer, *flat.values()):
                one.update_priorities(index, np.arange(20.0) ** 2)
            for one in flat.values():
                one.sample(20)


def test_trees_that_do_not_fit():
    trajectory = streamed(8)
    assert len(trajectory.final_index)
    buffer = make()
    for which in ("observation", "final_observation"):
        tree = getattr(trajectory, which)
        vector, inner = tree["vector"], tree["inner"]
        for changed, expected, received in (
            ({"vector": vector}, "inner.0", "vector"),
            (
                {**tree, "vector": vector[..., :2]},
                r"vector of shape \(.*3,?\)",
                r"\(.*2.*\)",
            ),
            (
                {**tree, "inner": (inner[0] * 0.5, *inner[1:])},
                "inner.0 of shape.* dtype uint8",
                "float",
            ),
        ):
            with raises(expected, received):
                buffer.extend(
                    dataclasses.replace(trajectory, **{which: changed})
                )
            assert len(buffer) == buffer.steps == 0


@pytest.mark.parametrize(
    ("name", "prioritized", "mode"),
    [
        ("DQN", True, MODES[0]),
        ("SAC", False, MODES[1]),
        pytest.param("DQN", False, MODES[2], marks=pytest.mark.slow),
    ],
)
def test_drawn_transitions_are_those_of_the_environments(
    name, prioritized, mode
):
    """Both observations of a transition are those of one moment each."""
    case = OFF_POLICY_KINDS[name]
    make_one = functools.partial(
        StructuredEnv, OBSERVATIONS["nested"], case.action_space
    )
    env = vector(make_one, mode)
    replay = make_replay(
        env, n_step=2, prioritized=prioritized, capacity=64, warm_up=48
    )
    agent = make_eager_agent(case, env)
    moments, following = set(), set()

    def keep(trajectory):
        for t, b in np.argwhere(trajectory.valid):
            moments.add(_key(trajectory.observation, (t, b)))
            following.add(_key(trajectory.observation, (t + 1, b)))
        for index in range(len(trajectory.final_index)):
            following.add(_key(trajectory.final_observation, index))

    agent.observers.add(keep)
    replay.bind(agent)
    for _ in range(4):
        replay.refresh()
    batch = replay.sample(200)
    for index in range(200):
        assert _key(batch["observation"], index) in moments
        assert _key(batch["next_observation"], index) in following


def _key(tree, index):
    """Returns all numbers of one observation."""
    return b"".join(
        np.ascontiguousarray(a[index]).tobytes() for a in leaves(tree)
    )
