"""The manifest of exported files, and files whose manifest is refused."""

import json
import os
import shutil
import subprocess
import sys
import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl
from keras_rl2.export import policy_file as formats
from support.exported import ENDINGS
from support.exported import export
from support.structured_envs import HYBRID_ACTIONS
from support.structured_envs import OBSERVATIONS
from support.structured_envs import StructuredEnv


@pytest.fixture(scope="module")
def agent():
    return rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)


@pytest.fixture(scope="module")
def files(agent, tmp_path_factory):
    """The agent in each format."""
    folder = tmp_path_factory.mktemp("exported")
    return {each: export(agent, folder, each) for each in ENDINGS}


@pytest.mark.parametrize("form", ENDINGS)
def test_the_manifest_describes_the_file(form, agent, files):
    manifest = rl.read_manifest(files[form])
    assert manifest["algorithm"] == "PPO"
    assert manifest["deterministic"] is True
    assert manifest["quantization"] is None
    assert manifest["keras_rl2"] == rl.__version__
    assert manifest["keras"] == keras.__version__
    assert manifest["tensorflow"] == tf.__version__
    assert manifest["inputs"] == [
        {
            "name": "observation",
            "shape": [None, 4],
            "dtype": "float32",
            "role": "observation",
            "path": "",
        }
    ]
    (output,) = manifest["outputs"]
    assert output["shape"] == [None]
    assert output["dtype"] == "int32"
    assert manifest["noise"] == manifest["states"] == []
    policy = rl.PolicyFile(files[form], trusted=True)
    assert policy.observation_space == agent.observation_space
    assert policy.action_space == agent.action_space


def test_names_shapes_and_dtypes_are_those_of_the_file(tmp_path):
    """The file has all kinds of inputs: trees, noise and memory."""
    env = StructuredEnv(OBSERVATIONS["nested"], HYBRID_ACTIONS["dict"])
    cell = keras.layers.GRUCell(4)
    agent = rl.PPO.for_env(env, hidden=(8,), memory=cell, seed=0)
    path = export(agent, tmp_path, "litert", deterministic=False)
    manifest = rl.read_manifest(path)
    runner = formats.litert_runner(str(path))
    inputs = {each["name"]: each for each in manifest["inputs"]}
    outputs = {each["name"]: each for each in manifest["outputs"]}
    assert set(inputs) == set(runner.get_input_details())
    assert set(outputs) == set(runner.get_output_details())
    roles = [each["role"] for each in manifest["inputs"]]
    assert set(roles) == {"observation", "noise", "state"}
    # What the file itself makes of inputs of these shapes and dtypes.
    found = runner(
        **{
            name: np.zeros([3, *each["shape"][1:]], each["dtype"])
            for name, each in inputs.items()
        }
    )
    for name, each in outputs.items():
        assert found[name].shape == (3, *each["shape"][1:])
        assert found[name].dtype == each["dtype"]
    sizes = [part["size"] for part in manifest["noise"]]
    assert sum(sizes) == agent.noise.size


def test_noise_is_named():
    normal, zeros = {"kind": "normal", "size": 1}, {"kind": "zeros", "size": 1}
    gaussian = {"kind": "GaussianNoise", "size": 1, "scale": 0.5}
    epsilon = {"kind": "epsilon_greedy", "size": 2, "epsilon": 0.25}
    for make, env, settings, expected in [
        (rl.PPO, "CartPole-v1", {}, [{"kind": "gumbel", "size": 2}]),
        (rl.PPO, "Pendulum-v1", {}, [normal]),
        (
            rl.DQN,
            "CartPole-v1",
            {"epsilon": 0.25},
            [{**epsilon, "ranked": False}],
        ),
        (rl.TD3, "Pendulum-v1", {"exploration": 0.5}, [gaussian]),
        (rl.TD3, "Pendulum-v1", {"exploration": None}, [zeros]),
        (
            rl.TD3,
            "Pendulum-v1",
            {"exploration": rl.exploration.GaussianNoise(0.5, lowest=0.1)},
            [{**gaussian, "lowest": 0.1}],
        ),
        (
            rl.PPO,
            "Pendulum-v1",
            {"state_dependent_noise": True, "resample_every": 8},
            [{"kind": "normal", "size": 4, "hold": 8}],
        ),
        (rl.SAC, "Pendulum-v1", {"exploration": 0.5}, [normal, gaussian]),
    ]:
        agent = make.for_env(env, hidden=(4,), **settings)
        assert agent.policy.noise.parts == expected
        assert sum(each["size"] for each in expected) == agent.noise.size


def test_other_tools_ignore_the_manifest(files):
    onnx = pytest.importorskip("onnx")
    model = onnx.load(files["onnx"])
    onnx.checker.check_model(model)
    assert [each.key for each in model.metadata_props] == ["keras_rl2.json"]
    with zipfile.ZipFile(files["litert"]) as archive:
        assert archive.namelist() == ["keras_rl2.json"]
        assert archive.testzip() is None
    assert os.listdir(files["tf_saved_model"] / "assets.extra") == [
        "keras_rl2.json"
    ]


def test_bad_manifests_are_refused(files, tmp_path):
    path = tmp_path / "policy"
    shutil.copytree(files["tf_saved_model"], path)
    file = path / "assets.extra" / "keras_rl2.json"
    manifest = json.loads(file.read_text())
    for content, message in [
        ({**manifest, "kind": "other"}, "manifest of kind"),
        ({**manifest, "version": 2}, "and version 1.*version 2"),
        ([], "manifest of kind"),
    ]:
        file.write_text(json.dumps(content))
        with pytest.raises(ValueError, match=message):
            rl.read_manifest(path)
    file.write_text("no JSON")
    with pytest.raises(ValueError, match="not JSON"):
        rl.read_manifest(path)
    file.unlink()
    with pytest.raises(ValueError, match="manifest of kind"):
        rl.PolicyFile(path, trusted=True)


def test_a_saved_model_is_run_only_if_it_is_trusted(files):
    with pytest.raises(ValueError, match="Expected `trusted=True`"):
        rl.PolicyFile(files["tf_saved_model"])


def test_files_that_are_no_export_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        rl.read_manifest(tmp_path / "nothing.tflite")
    with pytest.raises(ValueError, match=r"without saved_model\.pb"):
        rl.read_manifest(tmp_path)
    for name, content in [("notes.onnx", b"notes"), ("a.tflite", b"1234TFL3")]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=r"Expected a.* (policy|manifest)"):
            rl.PolicyFile(tmp_path / name)


_ACTING = """
import sys
import numpy as np
import keras_rl2 as rl
for path in sys.argv[1:]:
    policy = rl.PolicyFile(path)
    print(policy.act(np.ones((2, 4), "float32")).tolist())
assert "tensorflow" not in sys.modules
assert "keras" not in sys.modules
"""


@pytest.mark.slow
def test_a_policy_file_acts_without_tensorflow(agent, files):
    paths = [str(files["onnx"]), str(files["litert"])]
    done = subprocess.run(
        [sys.executable, "-c", _ACTING, *paths],
        check=True,
        capture_output=True,
        text=True,
    )
    expected = agent.act(np.ones((2, 4), "float32"), deterministic=True)
    assert done.stdout == f"{expected.tolist()}\n" * 2
