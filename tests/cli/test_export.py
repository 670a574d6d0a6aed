"""A file that `keras-rl2 export` writes acts as the agent does."""

import dataclasses
import re

import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.agents import Agent
from keras_rl2.cli import parser
from keras_rl2.cli.main import main
from keras_rl2.export import policy_file as formats

OBSERVATIONS = np.array([[0.0, 0.5, 0.1, -0.5], [0, -1, 0, 1]], np.float32)


NAMES = {
    "tf_saved_model": "policy",
    "onnx": "policy.onnx",
    "litert": "policy.tflite",
}


@pytest.mark.parametrize(
    "form",
    [
        "onnx",
        *(
            pytest.param(form, marks=pytest.mark.slow)
            for form in ("tf_saved_model", "litert")
        ),
    ],
)
def test_an_export_is_written_beside_the_agent(run_folder, form, capsys):
    path = run_folder / NAMES[form]
    assert main(["export", str(run_folder), "--format", form]) == 0
    printed = capsys.readouterr().out
    assert f"{path}: greedy policy as {form}" in printed
    agent = rl.load(run_folder / "agent.keras")
    expected = agent.act(OBSERVATIONS, deterministic=True)
    actions = rl.PolicyFile(path, trusted=True).act(OBSERVATIONS)
    np.testing.assert_array_equal(actions, expected)


def test_an_export_that_passes_the_check_is_written(run_folder, capsys):
    # In a folder that is made for it.
    path = run_folder / "new" / "policy.tflite"
    options = ["--format", "litert", "--quantize", "int8"]
    options += ["--output", str(path)]
    # An untrained policy may lose anything by chance, in a single episode.
    options += ["--check", "--episodes", "3", "--batch-size", "1"]
    assert main(["export", str(run_folder), *options]) == 0
    printed = capsys.readouterr().out
    assert "policy.tflite: acts as the agent: on " in printed
    assert re.search(r" [\d.]+% of choices differ; return", printed)
    manifest = rl.read_manifest(path)
    assert manifest["quantization"] == "int8"


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
    manifest = rl.read_manifest(run_folder / NAMES[form])
    assert manifest["deterministic"] is False
    assert manifest["noise"] == [{"kind": "gumbel", "size": 2}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "required: --format"),
        (
            ["--format", "onnx", "--quantize", "int8"],
            "Expected",
        ),
        (
            ["--format", "onnx", "--check", "--env", "Nowhere-v0"],
            "`Nowhere` doesn't exist",
        ),
    ],
)
def test_invalid_options_are_refused(run_folder, refused, options, message):
    assert message in refused("export", run_folder, *options)
    assert not list(run_folder.glob("policy*"))


def test_the_options_are_those_of_the_formats():
    assert list(parser._FORMATS) == list(formats.ENDINGS)
    assert parser._QUANTIZATIONS == formats.QUANTIZATIONS
