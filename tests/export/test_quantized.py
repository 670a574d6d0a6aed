"""Exports of fewer bits: what they keep, what they take, what is refused."""

import keras
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

import keras_rl2 as rl
from keras_rl2.export import quantizing
from support.agents import EVERY_AGENT
from support.export_cases import compare
from support.export_cases import env_of
from support.export_cases import observations_of
from support.exported import export
from support.structured_envs import vector


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
def test_sixteen_bits_act_almost_alike(option, name, agents, tmp_path):
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
        ("memory", "PPO", True),
        ("several actions", "PPO", False),
    ],
)
def test_eight_bits_act_much_alike(
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
        ("masks", "DQN", False),
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


def test_fewer_bits_make_smaller_files(tmp_path, monkeypatch):
    monkeypatch.setattr(quantizing, "MOST_STEPS", 20)
    agent = rl.PPO.for_env("CartPole-v1", hidden=(64, 64), seed=0)
    sizes = {}
    for quantize in (None, "float16", "int8"):
        seen = "CartPole-v1" if quantize == "int8" else None
        path = tmp_path / f"{quantize}.tflite"
        agent.export(path, "litert", quantize=quantize, representative=seen)
        sizes[quantize] = path.stat().st_size
    weights = sum(v.numpy().size for v in agent.actor.variables)
    assert sizes["float16"] < sizes[None] - 1.8 * weights
    assert sizes["int8"] < sizes["float16"]
    assert np.int8 not in kinds_of_tensors(tmp_path / "float16.tflite")
    assert np.int8 in kinds_of_tensors(tmp_path / "int8.tflite")


@pytest.mark.slow
@pytest.mark.parametrize("option", ["masks", "memory", "several actions"])
def test_ranges_are_found_by_playing(option, agents, monkeypatch):
    """In environments that raise where an action is not one of theirs."""
    monkeypatch.setattr(quantizing, "MOST_STEPS", 300)
    agent = agents(option, "PPO")
    case = EVERY_AGENT["PPO"]
    env = vector(lambda: env_of(option, case), num_envs=3)
    rows = quantizing.representative_rows(agent, env, deterministic=False)
    assert len(rows) >= quantizing.MOST_STEPS
    width = len(rows[0])
    assert {len(row) for row in rows} == {width}
    assert {array.shape[0] for row in rows for array in row} == {1}
    if option == "memory":
        states = np.concatenate([row[-1] for row in rows])
        # Zeros when an episode begins, and not otherwise.
        zeros = ~states.any(axis=-1)
        assert 0.05 < zeros.mean() < 0.95


def test_ranges_include_random_actions(ppo):
    """A policy that stands still sees next to nothing."""
    rows = quantizing.representative_rows(ppo, "CartPole-v1", True)
    angles = np.concatenate([row[0] for row in rows])[:, 2]
    assert angles.max() > 0.15
    assert angles.min() < -0.15


def test_observations_of_a_recurrent_policy_are_an_episode():
    cell = keras.layers.GRUCell(4)
    agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), memory=cell, seed=0)
    batch = np.random.default_rng(0).normal(size=(5, 4)).astype("float32")
    rows = quantizing.representative_rows(agent, batch, True)
    state = agent.initial_state(1)
    for index, (observation, kept) in enumerate(rows):
        np.testing.assert_array_equal(observation, batch[index : index + 1])
        np.testing.assert_allclose(kept, state[0], rtol=1e-5, atol=1e-6)
        _, state = agent.act(observation, state, deterministic=True)


def test_bad_arguments_are_refused_before_anything_is_written(ppo, tmp_path):
    given = {"quantize": "int8", "representative": "CartPole-v1"}
    for options, message in [
        ({"format": "onnx", "quantize": "float16"}, 'with `format="litert"`'),
        ({"quantize": "int8"}, "Expected `representative` observations with"),
        ({**given, "quantize": "float16"}, "Expected `representative` obs"),
        ({"representative": "CartPole-v1"}, "and only with it"),
        ({"quantize": "int4"}, "one of .'float16', 'int8'"),
        ({"quantize": True}, "one of .'float16', 'int8'"),
        ({"format": "pytorch"}, "Expected `format` to be one of"),
        ({**given, "representative": np.zeros(4)}, "one observation"),
        ({**given, "representative": np.zeros((9, 3))}, r"shape \(9, 3\)"),
        ({**given, "representative": "Acrobot-v1"}, "with the observation"),
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
    with pytest.raises(ValueError, match=r"ends in \.tflite"):
        ppo.export(tmp_path / "policy.lite", format="litert")
    assert not list(tmp_path.iterdir())
