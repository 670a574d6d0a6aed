import io

import numpy as np
import tensorflow as tf
from PIL import Image

from keras_rl2.callbacks.tensorboard import EventWriter
from support.events import read


def test_curves_lie_at_their_steps(tmp_path):
    writer = EventWriter(tmp_path)
    for step in (64, 128):
        writer.write(step, scalars={"loss": step / 2, "time/fps": 1.0})
    events = read(tmp_path)
    assert [(x.step, x.value) for x in events.Scalars("loss")] == [
        (64, 32.0),
        (128, 64.0),
    ]
    assert set(events.Tags()["scalars"]) == {"loss", "time/fps"}


def test_histograms_count_finite_numbers(tmp_path):
    arrays = {
        "some": np.array([[1.0, np.nan], [3.0, np.inf]], np.float32),
        "integers": np.arange(5),
        "none": np.array([np.nan]),
        "empty": np.empty(0),
    }
    EventWriter(tmp_path).write(7, histograms=arrays)
    events = read(tmp_path)
    assert set(events.Tags()["histograms"]) == {"some", "integers"}
    (event,) = events.Histograms("some")
    found = event.histogram_value
    assert event.step == 7
    assert (found.min, found.max, found.num, found.sum) == (1.0, 3.0, 2, 4.0)
    assert found.sum_squares == 10.0
    assert sum(found.bucket) == 2
    assert found.bucket_limit[-1] == 3.0


def test_images_texts_and_a_graph(tmp_path):
    buffer = io.BytesIO()
    Image.new("RGB", (8, 6)).save(buffer, "gif")

    @tf.function
    def double(x):
        return 2.0 * x

    writer = EventWriter(tmp_path)
    writer.gif(5, "video/episode", buffer.getvalue())
    writer.text(3, {"first": "*one*", "second": "two"})
    writer.graph(double.get_concrete_function(tf.TensorSpec(())).graph)
    events = read(tmp_path)
    (event,) = events.Images("video/episode")
    assert (event.step, event.width, event.height) == (5, 8, 6)
    assert event.encoded_image_string == buffer.getvalue()
    (event,) = events.Tensors("first")
    assert event.step == 3
    assert event.tensor_proto.string_val == [b"*one*"]
    assert set(events.Tags()["tensors"]) == {"first", "second"}
    assert "x" in {node.name for node in events.Graph().node}


def test_the_first_event_makes_the_file(tmp_path):
    writer = EventWriter(tmp_path / "logs")
    assert not (tmp_path / "logs").exists()
    writer.write(0, scalars={"a": 1.0})
    writer.text(0, {"b": "c"})
    assert len(list((tmp_path / "logs").iterdir())) == 1
