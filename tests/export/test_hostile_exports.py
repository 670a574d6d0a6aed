"""What strangers have exported writes nothing, and is refused in one line."""

import os
import shutil

import gymnasium
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl
from support import hostile_exports
from support.agents import AnySpaceEnv
from support.hostile_saved_models import saved_models
from support.stock_layers import LAYERS
from support.stock_layers import OBSERVATIONS
from support.stock_layers import network
from support.watching import watched

_MEBIBYTES, _SECONDS = 1024, 1.0
OBSERVATION = np.zeros((2, 4), np.float32)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    paths = hostile_exports.honest(tmp_path_factory.mktemp("honest"))
    # What the first ones to be opened import is not the files' doing.
    for path in paths.values():
        rl.PolicyFile(path).act(OBSERVATION)
    return paths


def refuse(files, folder, canary):
    """Opens all, and returns what each has cost."""
    found = {}
    files = dict(files)
    before = sorted(os.listdir(folder))
    for name, path in files.items():
        with (
            watched(folder) as watch,
            pytest.raises(ValueError, match="Expected") as refused,
        ):
            rl.PolicyFile(path).act(OBSERVATION)
        text = str(refused.value)
        assert "Received" in text or path.name in text, name
        assert len(text.splitlines()) == 1, name
        assert watch.done == [], name
        assert watch.seconds < _SECONDS, name
        assert watch.mebibytes < _MEBIBYTES, name
        assert not list(canary.parent.glob("canary")), name
        found[name] = watch.seconds
    assert sorted(os.listdir(folder)) == before
    slowest = max(found, key=found.get)
    print(f"{len(found)} files, slowest {slowest} {found[slowest]:.2f} s")
    return found


#: One of each kind.
_SOME = (
    *("writes", "table", "saver_as_object", "doubles", "constant"),
    *("no_signature_object", "of_version_1", "half_the_variables"),
    *("pipe_of_a_fingerprint", "another_name", "another_path"),
)


@pytest.mark.parametrize(
    ("names", "least"),
    [(_SOME, len(_SOME)), pytest.param(None, 50, marks=pytest.mark.slow)],
    ids=["some", "all"],
)
def test_saved_models(names, least, whole, tmp_path):
    canary = tmp_path / "canaries" / "canary"
    canary.parent.mkdir()
    folder = tmp_path / "folders"
    folder.mkdir()
    files = saved_models(folder, whole["saved_model"], canary, names)
    assert len(refuse(files, folder, canary)) >= least
    # TensorFlow alone runs what they hold.
    model = tf.saved_model.load(folder / "writes")
    model.signatures["serving_default"](tf.zeros((2, 4)))
    assert canary.read_text() == "x"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("saver_as_object", "the operation '[A-Za-z0-9]+', which no policy"),
        ("slice_of_much", "its weights would be [0-9,]+ bytes"),
    ],
)
def test_refusals_of_saved_models_say_why(name, said, whole, tmp_path):
    canary = tmp_path / "canary"
    [(_, path)] = saved_models(tmp_path, whole["saved_model"], canary, [name])
    with pytest.raises(ValueError, match=said):
        rl.PolicyFile(path)


def test_litert(whole, tmp_path):
    files = hostile_exports.litert_files(tmp_path, whole["litert"])
    assert len(refuse(files, tmp_path, tmp_path / "canary")) >= 10


def test_onnx(tmp_path):
    pytest.importorskip("tf2onnx")
    pytest.importorskip("onnxruntime")
    path = hostile_exports.honest_onnx(tmp_path)
    rl.PolicyFile(path).act(OBSERVATION)
    files = hostile_exports.onnx_files(tmp_path, path)
    assert len(refuse(files, tmp_path, tmp_path / "canary")) >= 15


def test_weights_in_other_files_are_not_asked_for(tmp_path, monkeypatch):
    pytest.importorskip("tf2onnx")
    runtime = pytest.importorskip("onnxruntime")
    honest = hostile_exports.honest_onnx(tmp_path)
    files = dict(hostile_exports.onnx_files(tmp_path, honest))
    opened = []

    def open_session(content, *args, **kwargs):
        opened.append(content)

    monkeypatch.setattr(runtime, "InferenceSession", open_session)
    for name in hostile_exports.ELSEWHERE:
        with pytest.raises(ValueError, match="Expected"):
            rl.PolicyFile(files[f"onnx_{name}"])
    assert opened == []


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYERS)
def test_policies_of_all_layers_of_keras_are_opened(name, tmp_path):
    """Their operations are in the list, loops over sequences too."""
    space = OBSERVATIONS[LAYERS[name][0]]
    env = AnySpaceEnv(space, gymnasium.spaces.Discrete(2))
    agent = rl.PPO(network(name, 2), network(name, 1), seed=0)
    agent.bind(env.observation_space, env.action_space)
    agent.export(tmp_path / "policy")
    observation = space.sample()
    assert rl.PolicyFile(tmp_path / "policy").act(observation) == agent.act(
        observation, deterministic=True
    )


def test_a_copy_is_opened(whole, tmp_path):
    shutil.copytree(whole["saved_model"], tmp_path / "policy")
    actions = rl.PolicyFile(tmp_path / "policy").act(OBSERVATION)
    assert actions.shape == (2,)
