"""Files that hold no exported policy, whatever reads them."""

import importlib.util
import os

import pytest

import keras_rl2 as rl


def without(monkeypatch, *names):
    """Has modules that are not to be found."""
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name in names else found(name, *rest),
    )


@pytest.mark.parametrize("missing", [(), ("onnxruntime",)])
def test_notes_are_refused_in_one_way(missing, tmp_path, monkeypatch):
    pytest.importorskip("onnx")
    without(monkeypatch, *missing)
    path = tmp_path / "notes.onnx"
    path.write_text("notes")
    with pytest.raises(ValueError, match=r"Expected an exported.*notes\.onnx"):
        rl.read_manifest(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no pipes")
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path):
    path = tmp_path / "policy.tflite"
    os.mkfifo(path)
    with pytest.raises(ValueError, match=r"Expected a file.*a pipe"):
        rl.read_manifest(path)
