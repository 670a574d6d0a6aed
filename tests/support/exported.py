"""Exporting an agent in each format, in tests."""

import pytest

ENDINGS = {"tf_saved_model": "", "onnx": ".onnx", "litert": ".tflite"}
"""Formats, and how names of files end."""


def export(agent, folder, form, **options):
    """Exports an agent; returns the path, or skips without its packages."""
    if form == "onnx":
        pytest.importorskip("tf2onnx")
        pytest.importorskip("onnxruntime")
    path = folder / f"policy{ENDINGS[form]}"
    agent.export(path, format=form, **options)
    return path
