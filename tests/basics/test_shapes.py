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


def test_a_column_beside_a_flat_array_raises_with_the_squeeze():
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


def traced(check, *shapes):
    """Traces a check of tensors of which only these shapes are known."""
    signature = [tf.TensorSpec(shape) for shape in shapes]
    tf.function(check).get_concrete_function(*signature)


def test_unknown_sizes_pass_while_tracing_and_known_ones_are_compared():
    def same(*tensors):
        names = "abc"[: len(tensors)]
        check_same_shape(**dict(zip(names, tensors, strict=True)))

    def all_checks(a, b, c):
        check_same_shape(a=a, b=b, c=c)
        check_rank(2, a=a, b=b, c=c)
        check_shape((4, 3), a=a, b=b, c=c)

    traced(all_checks, [None, 3], [4, None], None)
    with pytest.raises(ValueError, match=r"broadcast to \[\?, \?\]"):
        traced(same, [None, 1], [None])
    # Two sizes differ, though a third is unknown.
    with pytest.raises(ValueError, match="Expected equal shapes"):
        traced(same, [None], [3], [4])


def test_a_wrong_rank_or_shape_names_the_argument():
    with pytest.raises(ValueError, match="Expected rank 1 for reward"):
        check_rank(1, reward=np.ones((2, 2)), discount=np.ones(2))
    check_rank((1, 2), flat=np.ones(3), rows=np.ones((3, 2)))
    with pytest.raises(ValueError, match="Expected rank 1 or 2 for number"):
        check_rank((1, 2), number=1.0, flat=np.ones(3))
    check_shape((None, 2), action=np.ones((5, 2)))
    with pytest.raises(ValueError, match=r"Expected shape \[4\] for action"):
        check_shape((4,), action=np.ones((4, 1)))


def test_static_shape():
    assert static_shape(1.0) == ()
    assert static_shape([[1, 2]]) == (1, 2)
    assert static_shape(keras.Input((3,))) == (None, 3)


def test_common_float_dtype():
    for *dtypes, expected in (
        ("int64", "bool", "float32"),
        ("float16", "int32", "float32"),
        ("bfloat16", "float16", "float32"),
        ("float32", "float64", "float64"),
    ):
        arrays = [keras.ops.ones((2,), dtype=dtype) for dtype in dtypes]
        made = [array.dtype.name for array in as_float(*arrays)]
        assert made == [expected] * 2, dtypes


def test_lists_and_numbers_lose_no_digits_beside_float64():
    wide, listed = as_float(np.array([1.0]), [0.1])
    assert float(listed[0]) == 0.1
    assert float(as_scalar(wide, number=0.1)) == 0.1
    (narrow,) = as_float([1.0])
    assert as_scalar(narrow, number=np.float64(0.1)).dtype.name == "float32"
    with pytest.raises(ValueError, match="rank 0 for number"):
        as_scalar(narrow, number=[0.1])
