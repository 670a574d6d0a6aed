"""The events in a directory of TensorBoard."""

from tensorboard.backend.event_processing.event_accumulator import (
    EventAccumulator,
)


def read(log_dir):
    """Returns all events of a directory."""
    everything = {"scalars": 0, "histograms": 0, "tensors": 0, "images": 0}
    return EventAccumulator(str(log_dir), everything).Reload()
