import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

from keras_rl2.distributions import Bernoulli
from keras_rl2.distributions import BoxHead
from keras_rl2.distributions import Categorical
from keras_rl2.distributions import DiagonalGaussian
from keras_rl2.distributions import DiscreteHead
from keras_rl2.distributions import MultiBinaryHead
from keras_rl2.distributions import MultiCategorical
from keras_rl2.distributions import MultiDiscreteHead
from keras_rl2.distributions import SquashedGaussian
from keras_rl2.distributions import StandardNoise
from keras_rl2.distributions import policy_head
from keras_rl2.exploration import AddedNoise
from keras_rl2.exploration import JoinedNoise
from keras_rl2.exploration import OrnsteinUhlenbeckNoise

SPACES = {
    "discrete": spaces.Discrete(3),
    "discrete_start": spaces.Discrete(3, start=-1),
    "multi_discrete": spaces.MultiDiscrete([2, 3]),
    "multi_discrete_start": spaces.MultiDiscrete([2, 3], start=[5, -5]),
    "multi_discrete_2d": spaces.MultiDiscrete([[2, 3], [4, 1]]),
    "multi_binary": spaces.MultiBinary(4),
    "multi_binary_2d": spaces.MultiBinary((2, 3)),
    "box": spaces.Box(-1.0, 1.0, (3,)),
    "box_uneven": spaces.Box(
        np.array([-1.0, 0.0], "float32"), np.array([1.0, 30.0], "float32")
    ),
    "box_unbounded": spaces.Box(-np.inf, np.inf, (2,)),
    "box_half": spaces.Box(0.0, np.inf, (2,)),
    "box_2d": spaces.Box(-2.0, 2.0, (2, 2), dtype=np.float64),
    "box_scalar": spaces.Box(-2.0, 2.0, ()),
    "box_inexact": spaces.Box(
        np.array([-0.1, 0.3, -10, 1e6]),
        np.array([0.7, 1.1, 0.1, 1e6 + 1]),
        dtype=np.float64,
    ),
}
SQUASHED = ("box", "box_uneven", "box_2d", "box_scalar", "box_inexact")
HEADS = {name: policy_head(space) for name, space in SPACES.items()} | {
    f"{name}_squashed": policy_head(SPACES[name], squash=True)
    for name in SQUASHED
}
UNCHANGED = {"discrete", "multi_discrete", "multi_binary"}
UNCHANGED |= {"box_unbounded", "box_squashed"}
EVERY = pytest.mark.parametrize("name", HEADS)


def space_of(name):
    """Return the space that a head of `HEADS` is for."""
    return SPACES[name.removesuffix("_squashed")]


def distribution(head, batch=64, seed=0):
    """Return the head's distribution from random parameters."""
    width = head.parameter_sizes[-1]
    rng = np.random.default_rng(seed)
    return head((3 * rng.standard_normal((batch, width))).astype("float32"))


@EVERY
def test_sampled_and_random_actions_are_in_the_space(name):
    space, head = space_of(name), HEADS[name]
    draws, _ = head.noise.draw(np.random.default_rng(0), (64,))
    assert draws.shape == (64, head.noise.size)
    sampled = distribution(head).sample(draws)
    random = head.random_action(np.random.default_rng(0), (8, 50))
    assert random.shape == (8, 50, *head.action_shape)
    assert sampled.shape == (64, *head.action_shape)
    for action in (sampled, random.reshape(400, *head.action_shape)):
        assert action.dtype == head.action_dtype
        taken = head.to_environment(action).numpy()
        assert taken.shape[1:] == space.shape
        assert all(space.contains(one.astype(space.dtype)) for one in taken)


def test_changes_action_is_true_for_heads_that_convert():
    for name, head in HEADS.items():
        assert head.changes_action is (name not in UNCHANGED), name
        if not head.changes_action:
            scale = 1 if name == "box_squashed" else 5
            action = scale * distribution(head).mode().numpy()
            np.testing.assert_array_equal(head.to_environment(action), action)


def test_config_is_plain_json_and_makes_the_same_head():
    for name, head in HEADS.items():
        config = keras.saving.serialize_keras_object(head)
        text = json.dumps(config, allow_nan=False)
        assert '"registered_name": "keras_rl2>' in text
        again = keras.saving.deserialize_keras_object(json.loads(text))
        assert type(again) is type(head)
        assert again.get_config() == head.get_config()
        action = 2 * distribution(head).mode().numpy()
        np.testing.assert_array_equal(
            again.to_environment(action), head.to_environment(action), name
        )


def test_noise_and_random_actions_repeat_with_the_seed():
    for name, head in HEADS.items():
        one, other = (
            head.noise.draw(np.random.default_rng(3), (5, 2))[0]
            for _ in range(2)
        )
        assert one.shape == (5, 2, head.noise.size)
        assert one.dtype == "float32"
        assert np.all(np.isfinite(one))
        np.testing.assert_array_equal(one, other, err_msg=name)
        one, other, third = (
            head.random_action(np.random.default_rng(seed), (200,))
            for seed in (3, 3, 4)
        )
        np.testing.assert_array_equal(one, other, err_msg=name)
        assert not np.array_equal(one, third), name


def test_wrong_width_is_refused():
    for head in HEADS.values():
        width = head.parameter_sizes[-1] + 1
        with pytest.raises(ValueError, match=f"Received: width {width}"):
            head(np.zeros((2, width)))
        with pytest.raises(ValueError, match="Expected rank 2"):
            head(np.zeros(head.parameter_sizes[-1]))


@pytest.mark.parametrize(
    ("head", "kind", "sizes", "noise", "action"),
    [
        (DiscreteHead(3), Categorical, (3,), (3,), ()),
        (MultiDiscreteHead([[2, 3]]), MultiCategorical, (5,), (5,), (2,)),
        (MultiBinaryHead((2, 2)), Bernoulli, (4,), (4,), (4,)),
        (BoxHead(-1, 1, (3,)), DiagonalGaussian, (3, 6), (3,), (3,)),
        (
            BoxHead(-1, 1, (3,), squash=True),
            SquashedGaussian,
            (3, 6),
            (3,),
            (3,),
        ),
    ],
)
def test_interface(head, kind, sizes, noise, action):
    assert head.parameter_sizes == sizes
    assert (head.noise.size,) == noise
    assert head.action_shape == action
    assert head.log_std_size == (3 if isinstance(head, BoxHead) else 0)
    assert type(head(np.zeros((2, sizes[-1])))) is kind


@pytest.mark.parametrize("name", ["discrete", "multi_discrete", "multi_binary"])
def test_discrete_heads_want_no_log_std(name):
    head = HEADS[name]
    with pytest.raises(ValueError, match="Expected no log_std"):
        head(np.zeros((2, head.parameter_sizes[0])), log_std=np.zeros(3))


def test_box_takes_log_std_from_one_place_only():
    head = BoxHead(-1.0, 1.0, (2,))
    separate = head(np.ones((4, 2)), np.array([0.5, -0.5]))
    joint = head(np.tile([1.0, 1.0, 0.5, -0.5], (4, 1)))
    np.testing.assert_allclose(separate.kl(joint), np.zeros(4), atol=1e-12)
    with pytest.raises(ValueError, match="Expected a log_std"):
        head(np.ones((4, 2)))
    with pytest.raises(ValueError, match="none beside width 4"):
        head(np.ones((4, 4)), np.zeros(2))
    with pytest.raises(ValueError, match="log_std"):
        head(np.ones((4, 2)), np.zeros(1))


def test_predicted_log_std_is_clipped():
    policy = BoxHead(-1.0, 1.0, (2,))(np.array([[0.0, 0.0, -99.0, 99.0]]))
    np.testing.assert_allclose(policy.log_std, [[-20.0, 2.0]])


def test_log_std_may_be_a_variable():
    log_std = keras.Variable(np.zeros(2), dtype="float32")
    with tf.GradientTape() as tape:
        policy = BoxHead(-1.0, 1.0, (2,))(np.zeros((4, 2), "float32"), log_std)
        entropy = tf.reduce_mean(policy.entropy())
    np.testing.assert_allclose(tape.gradient(entropy, log_std.value), [1, 1])


def test_to_environment_by_hand():
    assert DiscreteHead(3, 2).to_environment([0, 2]).numpy().tolist() == [2, 4]
    shifted = MultiDiscreteHead([[2], [3]], [[1], [0]])
    assert shifted.to_environment([[1, 2]]).numpy().tolist() == [[[2], [2]]]
    clipped = BoxHead([[0.0], [None]], 1.0, (2, 1)).to_environment([[-7, 7]])
    assert clipped.numpy().tolist() == [[[0.0], [1.0]]]
    low_free = BoxHead([[0.0], [None]], 1.0, (2, 1)).to_environment([[7, -7]])
    assert low_free.numpy().tolist() == [[[1.0], [-7.0]]]


def test_from_environment_by_hand():
    assert DiscreteHead(3, 2).from_environment([2, 4]).numpy().tolist() == [
        0,
        2,
    ]
    shifted = MultiDiscreteHead([[2], [3]], [[1], [0]])
    assert shifted.from_environment([[[2], [2]]]).numpy().tolist() == [[1, 2]]
    # Around 4, by 2 to either side; and a number that is always 1.
    uneven = BoxHead([2.0, 1.0], [6.0, 1.0], (2,), squash=True)
    own = uneven.from_environment([[2.0, 1.0], [5.0, 1.0], [7.0, 1.0]])
    np.testing.assert_allclose(own, [[-1, 0], [0.5, 0], [1, 0]], atol=1e-6)


def test_squashed_actions_are_of_the_unit_box_whatever_the_bounds():
    parameters = np.float32([[0.5, -99.0, 0.1, 0.2]])
    one = BoxHead(-1.0, 1.0, (2,), squash=True)(parameters)
    other = BoxHead([0.0, -7.0], [1e3, 0.5], (2,), squash=True)(parameters)
    draws = np.float32([[0.3, 0.3]])
    mine, yours = (p.sample_and_log_prob(draws) for p in (one, other))
    np.testing.assert_array_equal(mine[0], yours[0])
    np.testing.assert_array_equal(mine[1], yours[1])
    np.testing.assert_allclose(one.mode(), [[np.tanh(0.5), -1.0]], rtol=1e-6)
    policy = HEADS["box_uneven_squashed"](one.base.mean, log_std=[0.0, 0.0])
    np.testing.assert_array_equal(policy.mode(), one.mode())


def test_unit_box_is_stretched_to_the_bounds_by_hand():
    head = BoxHead([[0.0], [-2.0]], [[30.0], [2.0]], (2, 1), squash=True)
    taken = head.to_environment([[-1, -1], [-0.5, 0.25], [0, 0], [1, 1]])
    assert taken.shape == (4, 2, 1)
    by_hand = [[0.0, -2.0], [7.5, 0.5], [15.0, 0.0], [30.0, 2.0]]
    assert taken[..., 0].numpy().tolist() == by_hand


@pytest.mark.parametrize("name", SQUASHED)
def test_stretching_is_precise_and_reaches_both_bounds(name):
    space, head = SPACES[name], HEADS[f"{name}_squashed"]
    unit = np.linspace(-1, 1, 1001, dtype="float32")
    unit = np.repeat(unit[:, None], head.action_shape[0], axis=1)
    taken = head.to_environment(unit).numpy().reshape(len(unit), -1)
    low, high = (b.ravel().astype("float64") for b in (space.low, space.high))
    exact = low + (unit.astype("float64") + 1) / 2 * (high - low)
    step = np.spacing(np.float32(np.maximum(abs(low), abs(high))))
    assert np.all(abs(taken - exact) <= 2 * step)
    assert np.all((taken >= low) & (taken <= high))
    # The last float32 that is still within.
    assert np.all(taken[0] - low < np.spacing(abs(low).astype("float32")))
    assert np.all(high - taken[-1] < np.spacing(abs(high).astype("float32")))
    for beyond in np.float32([1.0000001, 1.5, 1e6]):
        outside = head.to_environment(beyond * unit[[0, -1]]).numpy()
        np.testing.assert_array_equal(outside.reshape(2, -1), taken[[0, -1]])


def test_squashing_into_the_largest_bounds_stays_finite():
    largest = float(np.finfo("float32").max)
    head = BoxHead(-largest, largest, (1,), squash=True)
    taken = head.to_environment([[-1.0], [0.0], [1.0]]).numpy()
    assert taken.tolist() == [[-largest], [0.0], [largest]]
    fixed = BoxHead(2.0, 2.0, (1,), squash=True)
    assert fixed.to_environment([[-1.0], [0.3]]).numpy().tolist() == [[2], [2]]


@pytest.mark.parametrize(
    ("head", "counts"),
    [
        (DiscreteHead(3, start=-1), [3]),
        (MultiDiscreteHead([[2, 3], [4, 1]]), [2, 3, 4, 1]),
        (MultiBinaryHead((2, 3)), [2] * 6),
    ],
)
def test_random_discrete_actions_are_uniform_and_count_from_0(head, counts):
    action = head.random_action(np.random.default_rng(0), (2000,))
    for column, count in zip(action.reshape(2000, -1).T, counts, strict=True):
        assert column.min() >= 0
        # Five deviations of a binomial count.
        share = 2000 / count
        difference = np.bincount(column, minlength=count) - share
        assert len(difference) == count
        assert np.all(abs(difference) <= 5 * np.sqrt(share))


def test_random_squashed_actions_are_uniform_in_the_unit_box():
    for name in SQUASHED:
        head = HEADS[f"{name}_squashed"]
        action = head.random_action(np.random.default_rng(0), (10_000,))
        for column in action.T:
            assert_uniform(column, -1.0, 1.0)


def test_random_box_actions_are_drawn_by_how_each_dimension_is_bounded():
    head = BoxHead([2.0, 5.0, None, None], [3.0, None, -5.0, None], (4,))
    action = head.random_action(np.random.default_rng(0), (10_000,))
    both, below, above, free = action.T.astype("float64")
    assert_uniform(both, 2.0, 3.0)
    for beyond in (below - 5.0, -5.0 - above):
        assert beyond.min() >= 0
        # Mean, deviation and median of an exponential.
        np.testing.assert_allclose(beyond.mean(), 1.0, atol=0.05)
        np.testing.assert_allclose(beyond.std(), 1.0, atol=0.1)
        np.testing.assert_allclose(np.median(beyond), np.log(2), atol=0.05)
    np.testing.assert_allclose(free.mean(), 0.0, atol=0.05)
    np.testing.assert_allclose(free.std(), 1.0, atol=0.05)


def assert_uniform(action, low, high):
    """Check that each tenth of the range gets a tenth of 10,000 actions."""
    counts, _ = np.histogram(action, bins=10, range=(low, high))
    assert counts.sum() == len(action) == 10_000
    assert np.all(abs(counts - 1000) < 150)


@pytest.mark.parametrize(
    "name",
    [
        "discrete_start",
        "multi_discrete_2d",
        "multi_binary_2d",
        "box_half",
        "box_2d_squashed",
    ],
)
def test_heads_work_inside_a_graph(name):
    head = HEADS[name]

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, head.parameter_sizes[-1]]),
            tf.TensorSpec([None, head.noise.size]),
        ]
    )
    def act(parameters, draws):
        return head.to_environment(head(parameters).sample(draws))

    draws, _ = head.noise.draw(np.random.default_rng(0), (5,))
    parameters = np.ones((5, head.parameter_sizes[-1]), "float32")
    np.testing.assert_allclose(
        act(parameters, draws),
        head.to_environment(head(parameters).sample(draws)),
        rtol=1e-6,
    )


@pytest.mark.parametrize(
    "space",
    [
        spaces.Text(5),
        spaces.Sequence(spaces.Discrete(2)),
        spaces.Graph(spaces.Discrete(2), None),
        spaces.Dict({}),
        spaces.Tuple([]),
        spaces.Box(0, 255, (2,), dtype=np.uint8),
    ],
)
def test_other_spaces_are_refused_by_name(space):
    received = f"Received: {type(space).__name__}"
    with pytest.raises(ValueError, match=received):
        policy_head(space)


@pytest.mark.parametrize(
    "make",
    [
        lambda: DiscreteHead(0),
        lambda: MultiDiscreteHead([2, 0]),
        lambda: MultiDiscreteHead([2, 3], [1]),
        lambda: MultiBinaryHead(0),
        lambda: BoxHead([0, 0, 0], 1, (2,)),
        lambda: BoxHead(None, 1, (2,), squash=True),
        lambda: BoxHead([0, 2], 1, (2,)),
        lambda: BoxHead(float("nan"), 1, (2,)),
        lambda: policy_head(spaces.Box(0, np.inf, (2,)), squash=True),
    ],
)
def test_wrong_arguments_are_refused_at_construction(make):
    with pytest.raises(ValueError, match=r"Received|broadcast"):
        make()


@pytest.mark.parametrize(
    "space", [spaces.Discrete(3, start=2), spaces.MultiDiscrete([3, 3])]
)
def test_random_actions_are_among_those_allowed(space):
    head = policy_head(space)
    flags = np.tile([0, 1, 1], head.mask_size // 3)
    mask = np.broadcast_to(flags, (500, head.mask_size))
    action = head.random_action(np.random.default_rng(0), (500,), mask)
    assert {*np.unique(action)} == {1, 2}


def test_scaled_actions_are_in_units_of_half_the_range():
    """Middles 0 and 15, halves 1 and 15; a dimension without bounds stays."""
    low, high = [-1.0, 0.0, -np.inf], [1.0, 30.0, np.inf]
    head = BoxHead(low, high, shape=(3,), scaled=True)
    own = [[0.5, 0.5, 7.0], [3.0, -1.0, -9.0]]
    theirs = [[0.5, 22.5, 7.0], [1.0, 0.0, -9.0]]
    np.testing.assert_array_equal(head.to_environment(own), theirs)
    np.testing.assert_array_equal(
        head.from_environment(theirs), [[0.5, 0.5, 7.0], [1.0, -1.0, -9.0]]
    )
    drawn = head.random_action(np.random.default_rng(0), (1000,))
    assert np.abs(drawn[:, :2]).max(0) == pytest.approx([1.0, 1.0], abs=0.01)
    assert BoxHead(**head.get_config()).get_config() == head.get_config()


@pytest.mark.parametrize(
    ("hold", "draws"),
    [(1, [0, 1, 2, 3, 4]), (2, [0, 0, 1, 1, 2]), (None, [0] * 5)],
)
def test_noise_is_held_for_steps_of_each_environment(hold, draws):
    noise = StandardNoise("normal", 3, hold)
    drawn, _ = noise.draw(np.random.default_rng(0), (5, 2))
    fresh = np.random.default_rng(0).standard_normal(
        (max(draws) + 1, 2, 3), dtype=np.float32
    )
    np.testing.assert_array_equal(drawn, fresh[draws])
    # Rows of a single step are of several environments.
    one, _ = noise.draw(np.random.default_rng(0), (5,))
    assert len(np.unique(one)) == 15
    held = {} if hold == 1 else {"hold": hold}
    assert noise.parts == [{"kind": "normal", "size": 3, **held}]


def test_joined_noises_keep_the_state_of_each():
    walk = AddedNoise(OrnsteinUhlenbeckNoise(), size=2)
    noise = JoinedNoise([StandardNoise("gumbel", 3), walk])
    whole, last = noise.draw(np.random.default_rng(0), (1, 4))
    assert whole.shape == (1, 4, noise.size) == (1, 4, 5)
    generator = np.random.default_rng(0)
    StandardNoise("gumbel", 3).draw(generator, (1, 4))
    own, state = walk.draw(generator, (1, 4))
    np.testing.assert_array_equal(whole[..., 3:], own)
    np.testing.assert_array_equal(last[1], state)
    # It goes on, as after a checkpoint whose tuples are lists.
    generators = [np.random.default_rng(1) for _ in range(2)]
    then, _ = noise.draw(generators[0], (1, 4), [*last])
    StandardNoise("gumbel", 3).draw(generators[1], (1, 4))
    np.testing.assert_array_equal(
        then[..., 3:], walk.draw(generators[1], (1, 4), state)[0]
    )
