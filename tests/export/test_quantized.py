"""Exports of fewer bits: accuracy, size, and refused combinations."""

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

import keras_rl2 as rl
from support.export_cases import compare
from support.export_cases import observations_of
from support.exported import export


@pytest.fixture(scope="module")
def ppo():
    """Small, and not to be changed."""
    return rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("plain", "SAC"),
        ("normalized", "TD3"),
        ("pictures", "DQN"),
        ("trees", "SAC"),
        ("masks", "PPO"),
        ("memory", "PPO"),
        ("several actions", "PPO"),
    ],
)
def test_sixteen_bits_act_within_a_small_tolerance(
    option, name, agents, tmp_path
):
    agent = agents(option, name)
    path = export(agent, tmp_path, "litert", quantize="float16")
    difference, disagreements = compare(agent, rl.PolicyFile(path))
    assert difference < 1e-2
    assert disagreements < 0.05
    assert rl.read_manifest(path)["quantization"] == "float16"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "name", "deterministic"),
    [
        ("plain", "SAC", False),
        ("normalized", "TD3", True),
        ("pictures", "DQN", True),
        ("trees", "SAC", True),
        ("several actions", "PPO", False),
    ],
)
def test_eight_bits_act_within_a_larger_tolerance(
    option, name, deterministic, agents, tmp_path
):
    agent = agents(option, name)
    path = export(
        agent,
        tmp_path,
        "litert",
        deterministic=deterministic,
        quantize="int8",
        representative=observations_of(agent, 256, seed=99),
    )
    difference, disagreements = compare(agent, rl.PolicyFile(path))
    # Of ranges of 2 and more, of which there are 256 steps in each layer.
    assert difference < 1.0
    assert disagreements < 0.3
    assert rl.read_manifest(path)["quantization"] == "int8"


@pytest.mark.parametrize(
    ("option", "name", "deterministic"),
    [
        ("masks", "PPO", True),
        ("memory", "PPO", True),
        ("plain", "DQN", False),
    ],
)
def test_policies_that_eight_bits_cannot_hold_are_refused(
    option, name, deterministic, agents, tmp_path
):
    """A choice among logits of 0 to 9 beside one of -1e32 is none."""
    agent = agents(option, name)
    with pytest.raises(ValueError, match=r"Expected a policy that fits"):
        export(
            agent,
            tmp_path,
            "litert",
            deterministic=deterministic,
            quantize="int8",
            representative=observations_of(agent, 8),
        )
    assert not list(tmp_path.iterdir())


def kinds_of_tensors(path):
    interpreter = Interpreter(model_path=str(path))
    return {each["dtype"] for each in interpreter.get_tensor_details()}


def test_fewer_bits_make_smaller_files(tmp_path):
    agent = rl.PPO.for_env("CartPole-v1", hidden=(64, 64), seed=0)
    batch = np.random.default_rng(0).normal(size=(20, 4))
    sizes = {}
    for quantize in (None, "float16", "int8"):
        seen = batch if quantize == "int8" else None
        path = tmp_path / f"{quantize}.tflite"
        agent.export(path, "litert", quantize=quantize, representative=seen)
        sizes[quantize] = path.stat().st_size
    weights = sum(v.numpy().size for v in agent.actor.variables)
    assert sizes["float16"] < sizes[None] - 1.8 * weights
    assert sizes["int8"] < sizes["float16"]
    assert np.int8 not in kinds_of_tensors(tmp_path / "float16.tflite")
    assert np.int8 in kinds_of_tensors(tmp_path / "int8.tflite")


def test_bad_arguments_are_refused_before_anything_is_written(ppo, tmp_path):
    given = {"quantize": "int8", "representative": np.zeros((9, 4))}
    for options, message in [
        ({"format": "onnx", "quantize": "float16"}, 'with `format="litert"`'),
        ({"quantize": "int8"}, "Expected `representative` observations with"),
        ({**given, "quantize": "float16"}, "Expected `representative` obs"),
        ({"representative": np.zeros((9, 4))}, "and only with it"),
        ({"quantize": "int4"}, "None or 'float16' or 'int8'"),
        ({"quantize": True}, "None or 'float16' or 'int8'"),
        ({"format": "pytorch"}, "Expected `format` to be"),
        ({**given, "representative": np.zeros(4)}, "one observation"),
        ({**given, "representative": np.zeros((9, 3))}, r"shape \(9, 3\)"),
        ({**given, "representative": "Acrobot-v1"}, "Expected"),
    ]:
        options = {"format": "litert", **options}
        suffix = ".onnx" if options["format"] == "onnx" else ".tflite"
        path = tmp_path / f"policy{suffix}"
        path.write_text("what was there")
        with pytest.raises(ValueError, match=message):
            ppo.export(path, **options)
        assert path.read_text() == "what was there"
        path.unlink()
        assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match=r"ends in '.tflite'"):
        ppo.export(tmp_path / "policy.lite", format="litert")
    assert not list(tmp_path.iterdir())
