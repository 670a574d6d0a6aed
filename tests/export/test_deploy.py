"""The programs of `examples/deploy` act as the agent does, where they run.

Their requirements are not installed with the tests: a compiler, headers, Node,
Chromium. `ONNXRUNTIME_INCLUDE` is the folder of `onnxruntime_cxx_api.h`; the
packages of `examples/deploy/web/package.json` are looked for in the folder
`NODE_MODULES`, or beside it. docs/export.md says where they come from.
"""

import functools
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.envs import as_vector_env

DEPLOY = Path(__file__).resolve().parents[2] / "examples" / "deploy"
WEB = DEPLOY / "web"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def agent():
    return rl.PPO.from_preset("CartPole-v1", seed=0)


@pytest.fixture(scope="module")
def trained():
    """An agent that balances the pole, so that returns differ."""
    agent = rl.PPO.from_preset("CartPole-v1", seed=0)
    rollouts = rl.RolloutDataset(
        "CartPole-v1", horizon=32, passes=20, batch_size=256, num_envs=8, seed=0
    )
    agent.fit(rollouts, total_steps=50_000, verbose=0)
    return agent


@pytest.fixture(scope="module")
def observations():
    return np.random.default_rng(0).normal(size=(50, 4)).astype("float32")


@pytest.fixture
def expected(agent, observations):
    return actions_of(agent, observations)


def actions_of(agent, observations):
    """Returns greedy actions, each of which is chosen at times."""
    actions = agent.act(observations, deterministic=True).tolist()
    assert set(actions) == {0, 1}
    return actions


def needed(*programs):
    """Skips a test where a program is not installed."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")


def output(*command, given=None, cwd=None):
    done = subprocess.run(
        [str(each) for each in command],
        input=given,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def lines(observations):
    """Returns observations as programs read them."""
    return "".join(
        " ".join(f"{number:.9g}" for number in row) + "\n"
        for row in observations.tolist()
    )


def test_a_saved_model_in_c(agent, observations, expected, tmp_path):
    needed("gcc")
    import tensorflow as tf

    headers, libraries = tf.sysconfig.get_include(), tf.sysconfig.get_lib()
    if not Path(headers, "tensorflow", "c", "c_api.h").exists():
        pytest.skip("needs the headers of TensorFlow")
    agent.export(tmp_path / "policy")
    output(
        "gcc",
        f"-I{headers}",
        DEPLOY / "cpp" / "saved_model_policy.c",
        f"-L{libraries}",
        "-l:libtensorflow_cc.so.2",
        "-l:libtensorflow_framework.so.2",
        f"-Wl,-rpath,{libraries}",
        "-o",
        tmp_path / "program",
    )
    arguments = (tmp_path / "policy", 4)
    found = output(tmp_path / "program", *arguments, given=lines(observations))
    assert [int(each) for each in found.split()] == expected


def test_onnx_in_cpp(agent, observations, expected, tmp_path):
    needed("g++")
    pytest.importorskip("tf2onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    headers = os.environ.get("ONNXRUNTIME_INCLUDE", "/usr/include/onnxruntime")
    if not Path(headers, "onnxruntime_cxx_api.h").exists():
        pytest.skip("needs ONNXRUNTIME_INCLUDE, a folder of its headers")
    folder = Path(onnxruntime.__file__).parent / "capi"
    library = next(iter(folder.glob("libonnxruntime.so.*")), None)
    if library is None:
        pytest.skip("needs libonnxruntime.so in the wheel of onnxruntime")
    (tmp_path / "libonnxruntime.so.1").symlink_to(library)
    agent.export(tmp_path / "policy.onnx", format="onnx")
    output(
        "g++",
        "-std=c++17",
        f"-I{headers}",
        DEPLOY / "cpp" / "onnx_policy.cpp",
        f"-L{tmp_path}",
        "-l:libonnxruntime.so.1",
        f"-Wl,-rpath,{tmp_path}",
        "-o",
        tmp_path / "program",
    )
    found = output(
        tmp_path / "program",
        tmp_path / "policy.onnx",
        given=lines(observations),
    )
    assert [int(each) for each in found.split()] == expected


@pytest.fixture(scope="module")
def modules():
    """The packages of the web example."""
    folder = Path(os.environ.get("NODE_MODULES", WEB / "node_modules"))
    if not (folder / "onnxruntime-web").is_dir():
        pytest.skip("needs `npm install` in examples/deploy/web")
    return folder


@pytest.fixture
def site(modules, trained, observations, tmp_path):
    """The web example with its packages and a policy of each format."""
    for path in WEB.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    (tmp_path / "node_modules").symlink_to(modules)
    trained.export(tmp_path / "policy.onnx", format="onnx")
    trained.export(tmp_path / "policy.tflite", format="litert", batch_size=1)
    text = json.dumps(observations.tolist())
    (tmp_path / "observations.json").write_text(text)
    return tmp_path


def test_onnx_in_node(site, trained, observations):
    needed("node")
    command = ("node", "onnx_policy.mjs", "policy.onnx", "observations.json")
    found = json.loads(output(*command, cwd=site))
    assert found == actions_of(trained, observations)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and says nothing."""

    def log_message(self, *arguments):
        pass


@pytest.mark.parametrize("query", ["", "?litert"])
def test_onnx_and_litert_in_a_browser(query, site, trained, observations):
    needed("chromium")
    if query and not (site / "node_modules" / "@litertjs" / "core").is_dir():
        pytest.skip("needs `npm install` in examples/deploy/web")
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = output(
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={site / 'profile'}",
            "--virtual-time-budget=60000",
            "--dump-dom",
            f"http://127.0.0.1:{server.server_port}/index.html{query}",
        )
        server.shutdown()
    error = re.search(r'<pre id="error">([^<]*)</pre>', page)[1]
    assert error == ""
    actions = re.search(r'<pre id="actions">([^<]*)</pre>', page)[1]
    assert json.loads(actions) == actions_of(trained, observations)
    # As long as in Python: the same pole.
    steps = re.search(r'<output id="return">(\d+)</output>', page)[1]
    assert int(steps) > 100


def test_litert_in_the_interpreter_of_microcontrollers(tmp_path):
    """The actions are numbers: it has no operation for the best choice."""
    pytest.importorskip("tflite_micro")
    agent = rl.SAC.for_env("Pendulum-v1", hidden=(32, 32), seed=0)
    env = as_vector_env("Pendulum-v1", 8)
    observations = env.reset(seed=0)
    for quantize, tolerance in ((None, 1e-5), ("int8", 0.3)):
        path = tmp_path / f"{quantize}.tflite"
        seen = observations if quantize else None
        agent.export(
            path,
            "litert",
            quantize=quantize,
            representative=seen,
            batch_size=1,
        )
        command = (sys.executable, DEPLOY / "micro_policy.py", path)
        found = output(*command, given=lines(observations))
        np.testing.assert_allclose(
            [float(each) for each in found.split()],
            agent.act(observations, deterministic=True)[:, 0],
            atol=tolerance,
        )
