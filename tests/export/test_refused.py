"""Exports without an operation of the format are refused, without a file."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

import keras_rl2 as rl
from support.exported import ENDINGS
from support.exported import export


@keras.saving.register_keras_serializable(package="test_refused")
class Inverse(keras.layers.Layer):
    """An operation that neither LiteRT nor ONNX has."""

    def call(self, inputs):
        return ops.erfinv(ops.tanh(inputs))


def agent_with(layer):
    return rl.PPO(
        keras.Sequential([keras.Input((4,)), layer, keras.layers.Dense(2)]),
        keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]),
        observation_space=space("CartPole-v1").observation_space,
        action_space=space("CartPole-v1").action_space,
        seed=0,
    )


def space(env):
    return rl.envs.as_vector_env(env)


def test_a_path_of_another_format(tmp_path):
    agent = agent_with(keras.layers.Dense(3))
    for ending, form in [
        (".tflite", "tf_saved_model"),
        (".onnx", "tf_saved_model"),
        (".onnx", "litert"),
    ]:
        path = tmp_path / f"policy{ending}"
        with pytest.raises(ValueError, match=f"Expected `format=.*{form}"):
            agent.export(path, format=form)
        assert not path.exists()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["litert", "onnx"])
def test_an_operation_that_a_format_has_not(form, tmp_path):
    path = tmp_path / f"policy{ENDINGS[form]}"
    path.write_text("what was there")
    with pytest.raises(ValueError, match=f"a policy that {form} supports"):
        export(agent_with(Inverse()), tmp_path, form)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "what was there"
    # TensorFlow itself has it.
    agent = agent_with(Inverse())
    path = export(agent, tmp_path, "tf_saved_model")
    served = rl.PolicyFile(path, trusted=True)
    batch = np.random.default_rng(0).normal(size=(9, 4)).astype("float32")
    actions = agent.act(batch, deterministic=True)
    assert served.act(batch).tolist() == actions.tolist()


def test_arguments_that_the_converter_does_not_know(tmp_path):
    agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    with pytest.raises(TypeError, match="export takes, perhaps `target_spec`"):
        agent.export(tmp_path / "policy.tflite", format="litert", target_spek=1)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "dtype"),
    [("tf_saved_model", "mixed_bfloat16"), ("onnx", "mixed_float16")],
)
def test_half_precision_acts_equally(form, dtype, tmp_path):
    agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), dtype=dtype, seed=0)
    path = export(agent, tmp_path, form)
    found = agent.check_export(path, "CartPole-v1", episodes=2, tolerance=0.05)
    assert found.passed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "dtype"),
    [("litert", "mixed_float16"), ("onnx", "mixed_bfloat16")],
)
def test_half_precision_is_refused(form, dtype, tmp_path):
    agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), dtype=dtype, seed=0)
    with pytest.raises(ValueError, match=f"a policy that {form} supports"):
        export(agent, tmp_path, form)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_operations_of_tensorflow_are_exported_on_request(tmp_path):
    """Apps that link TensorFlow run such files; LiteRT alone fails."""
    agent = rl.PPO.for_env(
        "CartPole-v1", hidden=(8,), dtype="mixed_bfloat16", seed=0
    )
    operations = [
        tf.lite.OpsSet.TFLITE_BUILTINS,
        tf.lite.OpsSet.SELECT_TF_OPS,
    ]
    path = tmp_path / "policy.tflite"
    agent.export(path, "litert", target_spec={"supported_ops": operations})
    manifest = rl.read_manifest(path)
    assert [each["name"] for each in manifest["inputs"]] == ["observation"]
