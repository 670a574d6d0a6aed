"""What `keras-rl2 export` writes acts as the agent does."""

import numpy as np
import onnxruntime
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from keras_rl2.cli import saved_agents
from keras_rl2.cli.main import main

OBSERVATIONS = np.array([[0.0, 0.5, 0.1, -0.5], [0, -1, 0, 1]], np.float32)


def served_by_tensorflow(path):
    policy = tf.saved_model.load(str(path))
    return policy.serve(OBSERVATIONS).numpy()


def served_by_onnx(path):
    session = onnxruntime.InferenceSession(path)
    (name,) = [each.name for each in session.get_inputs()]
    (actions,) = session.run(None, {name: OBSERVATIONS})
    return actions


def served_by_litert(path):
    runner = Interpreter(model_path=str(path)).get_signature_runner(
        "serving_default"
    )
    (actions,) = runner(observation=OBSERVATIONS).values()
    return actions


FORMATS = {
    "tf_saved_model": ("policy", served_by_tensorflow),
    "onnx": ("policy.onnx", served_by_onnx),
    "litert": ("policy.tflite", served_by_litert),
}


@pytest.mark.parametrize("form", FORMATS)
def test_it_is_written_beside_the_agent(run_folder, form, capsys):
    name, serve = FORMATS[form]
    assert main(["export", str(run_folder), "--format", form]) == 0
    printed = capsys.readouterr().out
    assert f"{run_folder / name}: greedy policy as {form}" in printed
    agent = saved_agents.load(run_folder / "agent.keras")
    expected = agent.act(OBSERVATIONS, deterministic=True)
    np.testing.assert_array_equal(serve(run_folder / name), expected)


def test_folders_are_made_for_what_is_asked_for(trained, tmp_path):
    path = tmp_path / "new" / "cartpole.tflite"
    arguments = ["export", str(trained), "--format", "litert"]
    assert main([*arguments, "--output", str(path)]) == 0
    assert served_by_litert(path).shape == (2,)
