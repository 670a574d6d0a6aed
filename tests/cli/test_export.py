"""What `keras-rl2 export` writes acts as the agent does."""

import dataclasses
import re

import numpy as np
import onnxruntime
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

import keras_rl2 as rl
from keras_rl2.agents import Agent
from keras_rl2.cli import agent_file
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
    agent = agent_file.load(run_folder / "agent.keras")
    expected = agent.act(OBSERVATIONS, deterministic=True)
    np.testing.assert_array_equal(serve(run_folder / name), expected)


def test_an_export_that_passes_the_check_is_written(run_folder, capsys):
    options = ["--format", "litert", "--quantize", "int8"]
    # An untrained policy may lose anything by chance, in a single episode.
    options += ["--check", "--episodes", "3"]
    assert main(["export", str(run_folder), *options]) == 0
    printed = capsys.readouterr().out
    assert "policy.tflite: acts as the agent: on " in printed
    assert re.search(r"observations [\d.]+% of choices differ; return", printed)
    manifest = rl.read_manifest(run_folder / "policy.tflite")
    assert manifest["quantization"] == "int8"


def test_a_file_of_another_agent_fails_the_check(run_folder, capsys, refused):
    path = run_folder / "other.tflite"
    other = rl.PPO.for_env("CartPole-v1", hidden=(4,), seed=3)
    other.export(path, format="litert")
    arguments = ["export", str(run_folder), "--episodes", "3"]
    assert main([*arguments, "--check-file", str(path)]) == 1
    assert "other.tflite: FAILED: on " in capsys.readouterr().err
    # In a folder that is made for it.
    good = str(run_folder / "new" / "policy.tflite")
    assert main([*arguments, "--format", "litert", "--output", good]) == 0
    capsys.readouterr()
    assert main([*arguments, "--check-file", good]) == 0
    assert "policy.tflite: acts as the agent: on " in capsys.readouterr().out
    other_env = ["--check-file", good, "--env", "Acrobot-v1"]
    assert "Expected" in refused(*arguments, *other_env)


@pytest.mark.slow
def test_an_export_that_fails_the_check_is_not_written(
    run_folder, capsys, monkeypatch
):
    path = run_folder / "policy.tflite"
    path.write_text("what was there")
    check = Agent.check_export

    def failed(*args, **kwargs):
        return dataclasses.replace(check(*args, **kwargs), difference=1.0)

    monkeypatch.setattr(Agent, "check_export", failed)
    arguments = ["export", str(run_folder), "--format", "litert", "--check"]
    assert main(arguments) == 1
    assert capsys.readouterr().err.endswith("; not written\n")
    assert path.read_text() == "what was there"


@pytest.mark.slow
@pytest.mark.parametrize("form", ["tf_saved_model", "onnx"])
def test_stochastic_files_take_noise(run_folder, form, capsys):
    arguments = ["export", str(run_folder), "--format", form, "--stochastic"]
    assert main([*arguments, "--check", "--episodes", "2"]) == 0
    assert "stochastic policy as" in capsys.readouterr().out
    name, _ = FORMATS[form]
    manifest = rl.read_manifest(run_folder / name)
    assert manifest["deterministic"] is False
    assert manifest["noise"] == [{"kind": "gumbel", "size": 2}]


def test_invalid_options_are_refused(run_folder, refused):
    for options, message in (
        ([], "--format is required: one of tf_saved_model, onnx, litert"),
        (
            ["--format", "onnx", "--quantize", "int8"],
            "--quantize: expected --format litert, received onnx",
        ),
        (
            ["--check-file", "policy.onnx", "--format", "onnx"],
            "leave out --format",
        ),
        (["--check-file", "nowhere"], "nowhere: no such file or folder"),
        (
            ["--format", "onnx", "--check", "--env", "Nowhere-v0"],
            "Nowhere-v0",
        ),
    ):
        assert message in refused("export", run_folder, *options)
        assert not list(run_folder.glob("policy*"))
