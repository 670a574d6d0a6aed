"""Uses an installed wheel as its user would, far from any checkout."""

import importlib.metadata
import importlib.util
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile

import keras

import keras_rl2 as rl

package = pathlib.Path(rl.__file__).parent
root = pathlib.Path(__file__).resolve().parents[1]
assert root not in package.parents, f"this is the checkout: {package}"
assert (package / "py.typed").is_file()
for name in ("callbacks", "tests", "examples"):
    assert not (package.parent / name).exists(), f"{name} was installed"
described = importlib.metadata.metadata("keras-rl2-fit").get_payload()
assert "trains PPO on CartPole-v1" in described
assert not re.search(r"\]\((?!https:)", described), "a relative link"

# Beside the package where `pip install --target` put it.
scripts = package.parent / "bin"
if not scripts.is_dir():
    scripts = pathlib.Path(sysconfig.get_path("scripts"))


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the `keras-rl2` command."""
    return subprocess.run(
        [scripts / "keras-rl2", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


listed = command("presets")
assert listed.returncode == 0, listed.stderr
assert "CartPole-v1" in listed.stdout
if importlib.util.find_spec("matplotlib") is None:
    refused = command("plot", "runs")
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "pip install matplotlib" in refused.stderr

with tempfile.TemporaryDirectory() as folder:
    rollouts = rl.RolloutDataset("CartPole-v1", horizon=32, seed=0)
    agent = rl.PPO.for_env("CartPole-v1", seed=0)
    history = agent.fit(
        rollouts,
        epochs=2,
        callbacks=[
            rl.callbacks.TensorBoard(folder),
            rl.callbacks.RecordVideo("CartPole-v1", folder, max_steps=20),
        ],
        verbose=0,
    ).history
    assert len(history["env_steps"]) == 2
    assert list(pathlib.Path(folder).glob("*.gif"))
    file = pathlib.Path(folder, "agent.keras")
    agent.save(file)
    observation = [0.0, 0.0, 0.0, 0.0]
    action = agent.act(observation, deterministic=True)
    loaded = keras.models.load_model(file)
    assert loaded.act(observation, deterministic=True) == action

version = sys.version.split()[0]
print(f"{package}, Python {version}, Keras {keras.__version__}: works")
