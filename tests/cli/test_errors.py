import gymnasium
import keras
import pytest

from keras_rl2.cli import errors
from keras_rl2.cli.main import main
from support.taxi import TAXI

TRAIN = ("train", "ppo", "CartPole-v1")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "COMMAND"),
        (["trian"], "'train'"),
        (["train", "ppo"], "ENV"),
        (
            ["train", "pop", "CartPole-v1"],
            "one of A2C",
        ),
        (["train", "ppo", "CartPol-v1"], "nearest: CartPole-v1"),
        (["train", "ppo", "cartpole"], "nearest: CartPole-v1"),
        (["train", "ppo", "Ant-v99"], "nearest: Ant-v"),
        (["train", "ppo", "no_module:Mine-v0"], "no module 'no_module'"),
        ([*TRAIN, "--steps", "many"], "20k or 1e6, received 'many'"),
        ([*TRAIN, "--steps", "0"], "at least 1, received '0'"),
        ([*TRAIN, "--seed", "-1"], "received '-1'"),
        ([*TRAIN, "--set", "agent.gama=0.9"], "'agent.gamma'"),
        ([*TRAIN, "--set", "agent.gamma=high"], "agent.gamma='high'"),
        ([*TRAIN, "--set", "agent.gamma"], "expected KEY=VALUE"),
        ([*TRAIN, "--preset", "none.json"], "none.json: No such file"),
        ([*TRAIN, "--preset", "CartPol-v1"], "perhaps 'CartPole-v1'"),
        ([*TRAIN, "--resume"], "nothing to resume"),
        ([*TRAIN, "--resume", "--set", "agent.gamma=1"], "--set does not go"),
        ([*TRAIN, "--resume", "--envs", "2"], "--envs does not go"),
        (["train", "td3", "CartPole-v1"], "TD3"),
        (["evaluate", "nowhere"], "nowhere: no such file or folder"),
        (["evaluate", "."], "holds no agent.keras"),
        (["record", "nowhere"], "nowhere: no such file or folder"),
        (["export", "nowhere", "--format", "onnx"], "nowhere"),
        (["export", ".", "--format", "zip"], "'tf_saved_model'"),
        (["plot", "nowhere"], "nowhere: no such file or folder"),
        (["plot", "."], "no progress.csv"),
        (["presets", "CartPol-v1"], "nearest: CartPole-v1"),
        (["doctor", "CartPol-v1"], "nearest: CartPole-v1"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    arguments, said, refused, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert said in refused(*arguments)
    # And leaves nothing behind.
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("env_id", "pip"),
    [
        ("LunarLander-v3", 'pip install "gymnasium[box2d]"'),
        ("Ant-v5", 'pip install "gymnasium[mujoco]"'),
        (TAXI, 'pip install "gymnasium[toy-text]"'),
    ],
)
@pytest.mark.parametrize("command", [["doctor"], ["train", "ppo"]])
def test_a_missing_extra_is_named(command, env_id, pip, refused, monkeypatch):
    def make(*_, **__):
        raise gymnasium.error.DependencyNotInstalled("Something else")

    monkeypatch.setattr(gymnasium, "make", make)
    line = refused(*command, env_id)
    assert pip in line
    assert env_id in line


@pytest.mark.parametrize("command", ["train", "tune"])
def test_an_environment_that_is_not_there_is_the_first_thing_said(
    command, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main([command, "reinforce", "CartPol-v1"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(
        "keras-rl2: unknown environment 'CartPol-v1', nearest: CartPole-v1"
    )


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
    def test_a_file_of_another_kind(self, tmp_path, refused):
        path = tmp_path / "agent.keras"
        path.write_text("no agent")
        line = refused("evaluate", path, "--env", "CartPole-v1")
        assert "not a .keras file" in line

    def test_half_a_file(self, run_folder, refused):
        path = run_folder / "best.keras"
        path.write_bytes(path.read_bytes()[:5000])
        assert "not a .keras file" in refused("evaluate", run_folder)

    def test_a_model_that_is_no_agent(self, tmp_path, refused):
        path = tmp_path / "agent.keras"
        keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)]).save(path)
        line = refused("evaluate", path, "--env", "CartPole-v1")
        assert "Expected a saved agent of keras_rl2" in line
        assert "Sequential" in line

    def test_an_environment_that_nobody_named(self, run_folder, refused):
        (run_folder / "preset.json").unlink()
        assert "--env" in refused("evaluate", run_folder)

    def test_a_preset_that_is_no_json(self, run_folder, refused):
        (run_folder / "preset.json").write_text("{")
        assert "preset.json: not JSON" in refused("evaluate", run_folder)

    def test_another_environment(self, trained, refused):
        line = refused("evaluate", trained, "--env", "Pendulum-v1")
        assert "Expected" in line

    def test_a_folder_above_says_where_one_is(self, run_folder, refused):
        assert "seed-0" in refused("evaluate", run_folder.parent)


@pytest.mark.parametrize(
    ("arguments", "pip"),
    [
        (["record"], "pip install imageio imageio-ffmpeg"),
        (["export", "--format", "onnx"], "pip install tf2onnx"),
    ],
)
def test_a_missing_package_is_named(
    arguments, pip, trained, refused, monkeypatch
):
    monkeypatch.setattr(errors.importlib.util, "find_spec", lambda _: None)
    command, *options = arguments
    assert pip in refused(command, trained, *options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["record", "--output", "video.avi"], ".mp4 or .gif"),
        (
            ["export", "--format", "litert", "--output", "policy.onnx"],
            ".tflite",
        ),
    ],
)
def test_an_ending_that_does_not_fit(options, said, trained, refused):
    command, *rest = options
    assert said in refused(command, trained, *rest)


def test_an_environment_without_pictures(trained, refused):
    class Blind(gymnasium.envs.classic_control.CartPoleEnv):
        metadata = {"render_modes": []}

    gymnasium.register("Blind-v0", Blind, max_episode_steps=10)
    try:
        line = refused(
            "record", trained, "--env", "Blind-v0", "--output", "x.gif"
        )
        assert "rgb_array" in line
    finally:
        del gymnasium.registry["Blind-v0"]


def test_the_end_of_a_training_is_told_with_its_notes():
    error = FloatingPointError("Expected finite gradients.")
    error.add_note("The last finite checkpoint is runs/7")
    assert errors.is_expected(error)
    assert errors.in_one_line(error) == (
        "Expected finite gradients. The last finite checkpoint is runs/7"
    )
