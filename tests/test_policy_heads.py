import json

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

from keras_rl2.distributions import Bernoulli
from keras_rl2.distributions import Categorical
from keras_rl2.distributions import DiagonalGaussian
from keras_rl2.distributions import MultiCategorical
from keras_rl2.distributions import SquashedGaussian
from keras_rl2.policy_heads import BoxHead
from keras_rl2.policy_heads import DiscreteHead
from keras_rl2.policy_heads import MultiBinaryHead
from keras_rl2.policy_heads import MultiDiscreteHead
from keras_rl2.policy_heads import policy_head

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
}
UNCHANGED = {"discrete", "multi_discrete", "multi_binary", "box_unbounded"}
EVERY = pytest.mark.parametrize("name", SPACES)


def distribution(head, batch=64, seed=0):
    """Return the head's distribution from random parameters."""
    width = head.parameter_sizes[-1]
    rng = np.random.default_rng(seed)
    return head((3 * rng.standard_normal((batch, width))).astype("float32"))


@EVERY
def test_sampled_actions_are_in_the_space(name):
    space = SPACES[name]
    head = policy_head(space)
    draws = head.draw_noise(np.random.default_rng(0), (64,))
    assert draws.shape == (64, *head.noise_shape)
    action = distribution(head).sample(draws)
    assert action.shape == (64, *head.action_shape)
    assert action.dtype == head.action_dtype
    taken = head.to_environment(action).numpy()
    assert taken.shape == (64, *space.shape)
    for one in taken:
        assert space.contains(one.astype(space.dtype))


@EVERY
def test_changes_action_tells_the_truth(name):
    head = policy_head(SPACES[name])
    assert head.changes_action is (name not in UNCHANGED)
    if not head.changes_action:
        action = 5 * distribution(head).mode().numpy()
        np.testing.assert_array_equal(head.to_environment(action), action)


@EVERY
def test_config_is_plain_json_and_makes_the_same_head(name):
    head = policy_head(SPACES[name])
    text = json.dumps(
        keras.saving.serialize_keras_object(head), allow_nan=False
    )
    assert '"registered_name": "keras_rl2>' in text
    again = keras.saving.deserialize_keras_object(json.loads(text))
    assert type(again) is type(head)
    assert again.get_config() == head.get_config()
    action = distribution(head).mode().numpy()
    np.testing.assert_array_equal(
        again.to_environment(2 * action), head.to_environment(2 * action)
    )


@EVERY
def test_noise_repeats_with_the_seed_and_leads_with_any_shape(name):
    head = policy_head(SPACES[name])
    one = head.draw_noise(np.random.default_rng(3), (5, 2))
    other = head.draw_noise(np.random.default_rng(3), (5, 2))
    assert one.shape == (5, 2, *head.noise_shape)
    assert one.dtype == "float32"
    assert np.all(np.isfinite(one))
    np.testing.assert_array_equal(one, other)


@EVERY
def test_wrong_width_is_refused(name):
    head = policy_head(SPACES[name])
    width = head.parameter_sizes[-1] + 1
    with pytest.raises(ValueError, match=f"Received: width {width}"):
        head(np.zeros((2, width)))
    with pytest.raises(ValueError, match="expected rank 2"):
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
    assert head.noise_shape == noise
    assert head.action_shape == action
    assert head.log_std_size == (3 if isinstance(head, BoxHead) else 0)
    assert type(head(np.zeros((2, sizes[-1])))) is kind


@pytest.mark.parametrize("name", ["discrete", "multi_discrete", "multi_binary"])
def test_discrete_heads_want_no_log_std(name):
    head = policy_head(SPACES[name])
    with pytest.raises(ValueError, match="expected no log_std"):
        head(np.zeros((2, head.parameter_sizes[0])), log_std=np.zeros(3))


def test_box_takes_log_std_from_one_place_only():
    head = BoxHead(-1.0, 1.0, (2,))
    separate = head(np.ones((4, 2)), np.array([0.5, -0.5]))
    joint = head(np.tile([1.0, 1.0, 0.5, -0.5], (4, 1)))
    np.testing.assert_allclose(separate.kl(joint), np.zeros(4), atol=1e-12)
    with pytest.raises(ValueError, match="expected a log_std"):
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


def test_squashed_actions_reach_but_never_pass_the_bounds():
    head = BoxHead([-0.1, 0.3], [0.7, 1.1], (2,), squash=True)
    policy = head(np.tile(np.float32([99.0, -99.0, 0.0, 0.0]), (3, 1)))
    taken = head.to_environment(policy.mode()).numpy()
    np.testing.assert_array_equal(
        taken, np.tile(np.float32([0.7, 0.3]), (3, 1))
    )


@EVERY
def test_heads_work_inside_a_graph(name):
    head = policy_head(SPACES[name])

    @tf.function(
        input_signature=[tf.TensorSpec([None, head.parameter_sizes[-1]])] * 1
        + [tf.TensorSpec([None, *head.noise_shape])]
    )
    def act(parameters, draws):
        return head.to_environment(head(parameters).sample(draws))

    draws = head.draw_noise(np.random.default_rng(0), (5,))
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
        spaces.Tuple([spaces.Discrete(2)]),
        spaces.Box(0, 255, (2,), dtype=np.uint8),
    ],
)
def test_other_spaces_are_refused_by_name(space):
    with pytest.raises(ValueError, match=type(space).__name__):
        policy_head(space)


@pytest.mark.parametrize(
    "make",
    [
        lambda: DiscreteHead(0),
        lambda: MultiDiscreteHead([2, 0]),
        lambda: MultiDiscreteHead([2, 3], [1]),
        lambda: MultiBinaryHead(0),
        lambda: BoxHead(0, 1, (2,), "int64"),
        lambda: BoxHead([0, 0, 0], 1, (2,)),
        lambda: BoxHead(None, 1, (2,), squash=True),
    ],
)
def test_wrong_arguments_are_refused_at_construction(make):
    with pytest.raises(ValueError, match="Received"):
        make()


def test_head_of_a_real_environment():
    env = gymnasium.make("Pendulum-v1")
    head = policy_head(env.action_space)
    assert head.get_config() == {
        "low": -2.0,
        "high": 2.0,
        "shape": [1],
        "dtype": "float32",
        "squash": False,
    }
