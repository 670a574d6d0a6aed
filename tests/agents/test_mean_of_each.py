import numpy as np
import pytest
import tensorflow as tf

from keras_rl2.updates.mean_of_each import MeanOfEach


@pytest.fixture
def metric():
    return MeanOfEach(["loss", "entropy"])


def result(metric):
    return {key: float(value) for key, value in metric.result().items()}


def test_means(metric):
    assert np.isnan([*result(metric).values()]).all()
    for loss, entropy in ((1.0, 5.0), (2.0, -5.0), (6.0, 3.0)):
        metric.update_state({"entropy": entropy, "loss": loss})
    assert result(metric) == {"loss": 3.0, "entropy": 1.0}
    metric.reset_state()
    assert np.isnan([*result(metric).values()]).all()


def test_totals_count_whatever_an_update_weighs():
    metric = MeanOfEach(["loss"], totals=["skipped"])
    for loss, skipped in ((1.0, False), (np.nan, True), (np.inf, True)):
        metric.update_state({"loss": loss, "skipped": skipped}, not skipped)
    assert result(metric) == {"loss": 1.0, "skipped": 2.0}


def test_an_update_of_weight_0_leaves_no_trace(metric):
    metric.update_state({"loss": 4.0, "entropy": 2.0})
    nan = float("nan")
    metric.update_state({"loss": nan, "entropy": nan}, sample_weight=0.0)
    assert result(metric) == {"loss": 4.0, "entropy": 2.0}


def test_weights(metric):
    metric.update_state({"loss": 1.0, "entropy": 0.0}, sample_weight=3.0)
    metric.update_state({"loss": 5.0, "entropy": 0.0}, sample_weight=1.0)
    assert result(metric)["loss"] == pytest.approx(2.0)


def test_a_nan_is_shown_and_a_missing_name_an_error(metric):
    metric.update_state({"loss": float("nan"), "entropy": 1.0})
    assert np.isnan(result(metric)["loss"])
    assert result(metric)["entropy"] == 1.0
    with pytest.raises(ValueError, match=r"to return `entropy` .*loss"):
        metric.update_state({"loss": 1.0})


def test_in_a_graph_and_compiled(metric):
    @tf.function(jit_compile=True)
    def update(loss):
        metric.update_state({"loss": loss, "entropy": 2.0 * loss})
        return metric.result()

    update(tf.constant(1.0))
    assert float(update(tf.constant(3.0))["entropy"]) == 4.0
