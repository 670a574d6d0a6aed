import json

import matplotlib as mpl
import pytest

from keras_rl2.cli import errors
from keras_rl2.cli.main import main


def write(folder, returns, algorithm=None, environment="CartPole-v1"):
    """Writes a training with a return at every 100 steps."""
    folder.mkdir(parents=True)
    rows = [f"{100 * (i + 1)},{each}" for i, each in enumerate(returns)]
    text = "\n".join(["env_steps,episode_return", *rows]) + "\n"
    (folder / "progress.csv").write_text(text)
    if algorithm:
        preset = {"algorithm": algorithm, "environment": environment}
        (folder / "preset.json").write_text(json.dumps(preset))


@pytest.fixture
def runs(tmp_path):
    for seed, value in enumerate([0.0, 1.0, 3.0, 100.0]):
        folder = tmp_path / "PPO-CartPole-v1" / f"seed-{seed}"
        write(folder, [value, value], "PPO")
    folder = tmp_path / "DQN-CartPole-v1" / "seed-0"
    write(folder, [5.0, 7.0, 9.0], "DQN")
    return tmp_path


@pytest.fixture(autouse=True)
def readable_svg():
    with mpl.rc_context({"svg.fonttype": "none"}):
        yield


def test_curves_are_grouped_by_algorithm(runs, tmp_path, capsys):
    picture = tmp_path / "pictures" / "curves.svg"
    assert main(["plot", str(runs), "--output", str(picture)]) == 0
    dqn, ppo, last = capsys.readouterr().out.splitlines()
    assert dqn == (
        "DQN on CartPole-v1: return 9.0 [9.0, 9.0] at 300 steps, 1 seed"
    )
    assert ppo.startswith("PPO on CartPole-v1: return 2.0 [0.")
    assert ppo.endswith("at 200 steps, 4 seeds")
    assert last == str(picture)
    drawn = picture.read_text()
    for text in (
        ">environment steps<",
        ">return (sum of rewards), last 100 episodes<",
        ">PPO (4 seeds)<",
        ">DQN (1 seed)<",
        ">CartPole-v1<",
    ):
        assert drawn.count(text) == 1


def test_png(runs, monkeypatch):
    monkeypatch.chdir(runs)
    assert main(["plot", "PPO-CartPole-v1"]) == 0
    png = (runs / "learning_curves.png").read_bytes()
    assert png.startswith(b"\x89PNG")


def test_each_environment_has_a_panel(runs, tmp_path):
    write(runs / "SAC-Pendulum-v1" / "seed-0", [1, 2], "SAC", "Pendulum-v1")
    picture = tmp_path / "curves.svg"
    assert main(["plot", str(runs), "--output", str(picture)]) == 0
    drawn = picture.read_text()
    assert drawn.count(">environment steps<") == 2
    assert ">Pendulum-v1<" in drawn


def test_updates_on_recorded_data_have_a_panel(runs, tmp_path, capsys):
    folder = runs / "CQL-CartPole-v1" / "seed-0"
    folder.mkdir(parents=True)
    # Evaluated every other epoch.
    rows = ["updates,val_episode_return", "20,", "40,9.0", "60,", "80,12.0"]
    (folder / "progress.csv").write_text("\n".join(rows) + "\n")
    preset = {"algorithm": "CQL", "environment": "CartPole-v1", "updates": 80}
    (folder / "preset.json").write_text(json.dumps(preset))
    picture = tmp_path / "curves.svg"
    assert main(["plot", str(runs), "--output", str(picture)]) == 0
    assert "return 12.0 [12.0, 12.0] at 80 updates, " in capsys.readouterr().out
    drawn = picture.read_text()
    assert drawn.count(">updates<") == drawn.count(">environment steps<") == 1
    assert ">return (sum of rewards), evaluations<" in drawn
    assert drawn.count(">CartPole-v1<") == 2


def test_trainings_of_one_kind_are_told_apart(runs, tmp_path):
    other = tmp_path / "other" / "PPO-CartPole-v1"
    write(other / "seed-0", [1.0], "PPO")
    picture = tmp_path / "curves.svg"
    paths = [str(runs / "PPO-CartPole-v1"), str(other)]
    assert main(["plot", *paths, "--output", str(picture)]) == 0
    drawn = picture.read_text()
    assert f">PPO, {other} (1 seed)<" in drawn
    assert f">PPO, {paths[0]} (4 seeds)<" in drawn


def test_a_training_named_twice_counts_once(runs, capsys, monkeypatch):
    monkeypatch.chdir(runs)
    one = "DQN-CartPole-v1"
    assert (
        main(["plot", one, f"{one}/seed-0", f"{one}/seed-0/progress.csv"]) == 0
    )
    assert "1 seed\n" in capsys.readouterr().out


def test_a_row_that_is_being_written_is_left_out(tmp_path, capsys):
    folder = tmp_path / "seed-0"
    write(folder, ["nan", 1.0, 2.0])
    path = folder / "progress.csv"
    path.write_text(path.read_text() + "400")
    output = str(tmp_path / "curves.png")
    assert main(["plot", str(folder), "--output", output]) == 0
    assert "return 2.0 [2.0, 2.0] at 300 steps" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no episode_return"),
        ("a,b\n1,2\n", "expected a column env_steps or updates, received a"),
        ("env_steps,loss\n1,2\n", "no episode_return"),
        ("env_steps,episode_return\n1,many\n", "'many'"),
        ("env_steps,episode_return\n1,nan\n", "no episode has ended"),
        ("env_steps,episode_return\n", "no episode has ended"),
        ("\xff\xfe", "not a table"),
    ],
)
def test_other_files_are_refused(text, said, tmp_path, refused):
    path = tmp_path / "progress.csv"
    path.write_bytes(text.encode("latin-1"))
    assert said in refused("plot", path)


def test_matplotlib_is_asked_for(runs, tmp_path, refused, monkeypatch):
    monkeypatch.setattr(errors.importlib.util, "find_spec", lambda _: None)
    output = tmp_path / "pictures" / "curves.png"
    assert "pip install matplotlib" in refused("plot", runs, "--output", output)
    assert not output.parent.exists()


def test_an_unknown_kind_of_picture(runs, refused):
    output = runs / "curves.doc"
    assert "doc" in refused("plot", runs, "--output", output)
