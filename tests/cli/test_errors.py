import gymnasium
import keras
import pytest

from keras_rl2.cli import parser
from keras_rl2.cli.main import in_one_line
from keras_rl2.cli.main import is_expected
from keras_rl2.cli.main import main

TRAIN = ("train", "ppo", "CartPole-v1")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "COMMAND"),
        (["trian"], "'train'"),
        (["train", "ppo"], "ENV"),
        (["train", "pop", "CartPole-v1"], "one of A2C"),
        (["train", "ppo", "CartPol-v1"], "Did you mean: `CartPole`?"),
        (["train", "ppo", "cartpole"], "Did you mean: `CartPole`?"),
        (["train", "ppo", "no_module:Mine-v0"], "No module named 'no_module'"),
        ([*TRAIN, "--steps", "many"], "20k or 1e6, received 'many'"),
        ([*TRAIN, "--steps", "0"], "at least 1, received '0'"),
        ([*TRAIN, "--set", "agent.gama=0.9"], "'agent.gamma'"),
        ([*TRAIN, "--set", "agent.gamma=high"], "gamma='high'"),
        ([*TRAIN, "--preset", "none.json"], "none.json: No such file"),
        ([*TRAIN, "--preset", "CartPol-v1"], "perhaps 'CartPole-v1'"),
        ([*TRAIN, "--resume"], "no checkpoint to resume from"),
        ([*TRAIN, "--resume", "--set", "agent.gamma=1"], "--set does not go"),
        (["train", "td3", "CartPole-v1"], "TD3"),
        (["evaluate", "nowhere"], "nowhere: no such file or folder"),
        (["evaluate", "."], "holds no agent.keras"),
        (["export", "nowhere", "--format", "onnx"], "nowhere"),
        (["plot", "."], "no progress.csv"),
    ],
)
def test_a_mistake_is_reported_in_one_line(
    refused, tmp_path, monkeypatch, arguments, said
):
    monkeypatch.chdir(tmp_path)
    assert said in refused(*arguments), arguments
    # And leaves nothing behind.
    assert list(tmp_path.iterdir()) == [], arguments


def test_a_missing_extra_is_named(refused, monkeypatch):
    said = 'Box2D is missing, `pip install "gymnasium[box2d]"`'

    def make(*_, **__):
        raise gymnasium.error.DependencyNotInstalled(said)

    monkeypatch.setattr(gymnasium, "make", make)
    for command in (["doctor"], ["train", "ppo"]):
        assert said in refused(*command, "LunarLander-v3")


def test_debug_shows_the_traceback():
    with pytest.raises(FileNotFoundError, match="nowhere"):
        main(["evaluate", "nowhere", "--debug"])
    with pytest.raises(FileNotFoundError, match="nowhere"):
        main(["--debug", "evaluate", "nowhere"])


def test_faults_of_the_code_are_not_hidden(monkeypatch):
    def fail(*_, **__):
        raise AttributeError("a fault")

    monkeypatch.setattr(gymnasium, "make", fail)
    with pytest.raises(AttributeError, match="a fault"):
        main(["doctor", "Acrobot-v1"])


class TestSavedAgents:
    def test_invalid_agent_files(self, run_folder, refused):
        path = run_folder / "best.keras"
        half = path.read_bytes()[:5000]
        for content in (b"no agent", half):
            path.write_bytes(content)
            assert "a saved agent" in refused("evaluate", run_folder)
        keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)]).save(path)
        line = refused("evaluate", path, "--env", "CartPole-v1")
        assert "Expected a saved agent of keras_rl2" in line
        assert "Sequential" in line

    def test_a_folder_without_an_environment_requires_env(
        self, run_folder, refused
    ):
        (run_folder / "preset.json").write_text("{")
        assert "preset.json: not JSON" in refused("evaluate", run_folder)
        (run_folder / "preset.json").unlink()
        assert "--env" in refused("evaluate", run_folder)


def test_a_missing_package_is_named(trained, refused, monkeypatch):
    monkeypatch.setattr(parser.importlib.util, "find_spec", lambda _: None)
    line = refused("record", trained)
    assert "pip install imageio imageio-ffmpeg" in line


def test_an_ending_that_does_not_fit(trained, refused):
    line = refused("record", trained, "--output", "video.avi")
    assert ".mp4 or .gif" in line
    options = ["--format", "litert", "--output", "policy.onnx"]
    assert "'.onnx'" in refused("export", trained, *options)


def test_the_error_of_a_training_is_printed_with_its_notes():
    error = FloatingPointError("Expected finite gradients.")
    error.add_note("The last finite checkpoint is runs/7")
    assert is_expected(error)
    assert in_one_line(error) == (
        "Expected finite gradients. The last finite checkpoint is runs/7"
    )
