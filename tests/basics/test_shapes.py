import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_rl2.basics.shapes import as_float
from keras_rl2.basics.shapes import as_scalar
from keras_rl2.basics.shapes import check_rank
from keras_rl2.basics.shapes import check_same_shape
from keras_rl2.basics.shapes import check_shape
from keras_rl2.basics.shapes import static_shape


def test_column_beside_flat_says_what_to_do():
    with pytest.raises(ValueError, match="broadcast to") as caught:
        check_same_shape(advantage=np.ones((4, 1)), log_prob=np.ones(4))
    message = str(caught.value)
    assert "advantage of shape [4, 1], log_prob of shape [4]" in message
    assert "would broadcast to [4, 4]" in message
    assert "squeeze(advantage, axis=-1)" in message


@pytest.mark.parametrize("make", [np.ones, tf.ones, keras.ops.ones])
def test_arrays_of_every_kind_are_refused(make):
    with pytest.raises(ValueError, match=r"a of shape \[2, 3\]"):
        check_same_shape(a=make((2, 3)), b=make((3, 2)))
    check_same_shape(a=make((2, 3)), b=[[1, 2, 3], [4, 5, 6]])


def test_symbolic_tensors_are_refused_while_tracing():
    @tf.function(
        input_signature=[tf.TensorSpec([None, 1]), tf.TensorSpec([None])]
    )
    def function(a, b):
        check_same_shape(a=a, b=b)
        return a

    with pytest.raises(ValueError, match=r"broadcast to \[\?, \?\]"):
        function(tf.ones((4, 1)), tf.ones(4))


def test_unknown_dimensions_and_ranks_pass():
    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 3]),
            tf.TensorSpec([4, None]),
            tf.TensorSpec(None),
        ]
    )
    def function(a, b, c):
        check_same_shape(a=a, b=b, c=c)
        check_rank(2, a=a, b=b, c=c)
        check_shape((4, 3), a=a, b=b, c=c)
        return a

    function(*[tf.ones((4, 3))] * 3)


def test_two_known_sizes_differ_though_a_third_is_unknown():
    @tf.function(
        input_signature=[
            tf.TensorSpec([None]),
            tf.TensorSpec([3]),
            tf.TensorSpec([4]),
        ]
    )
    def function(a, b, c):
        check_same_shape(a=a, b=b, c=c)
        return a

    with pytest.raises(ValueError, match="Expected equal shapes"):
        function(tf.ones(3), tf.ones(3), tf.ones(4))


def test_wrong_rank_names_the_argument():
    with pytest.raises(ValueError, match="Expected rank 1 for reward"):
        check_rank(1, reward=np.ones((2, 2)), discount=np.ones(2))


def test_given_shape():
    check_shape((None, 2), action=np.ones((5, 2)))
    with pytest.raises(ValueError, match=r"Expected shape \[4\] for action"):
        check_shape((4,), action=np.ones((4, 1)))


def test_static_shape():
    assert static_shape(1.0) == ()
    assert static_shape([[1, 2]]) == (1, 2)
    assert static_shape(keras.Input((3,))) == (None, 3)


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (["int64", "bool"], "float32"),
        (["float16", "int32"], "float32"),
        (["bfloat16", "float16"], "float32"),
        (["float32", "float64"], "float64"),
    ],
)
def test_common_float_dtype(dtypes, expected):
    arrays = [keras.ops.ones((2,), dtype=dtype) for dtype in dtypes]
    assert [array.dtype.name for array in as_float(*arrays)] == [expected] * 2


def test_lists_and_numbers_lose_no_digits_beside_float64():
    wide, listed = as_float(np.array([1.0]), [0.1])
    assert float(listed[0]) == 0.1
    assert float(as_scalar(wide, number=0.1)) == 0.1
    (narrow,) = as_float([1.0])
    assert as_scalar(narrow, number=np.float64(0.1)).dtype.name == "float32"
    with pytest.raises(ValueError, match="rank 0 for number"):
        as_scalar(narrow, number=[0.1])


def test_several_ranks_to_choose_from():
    check_rank((1, 2), flat=np.ones(3), rows=np.ones((3, 2)))
    with pytest.raises(ValueError, match="Expected rank 1 or 2 for number"):
        check_rank((1, 2), number=1.0, flat=np.ones(3))
