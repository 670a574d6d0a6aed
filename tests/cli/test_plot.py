import json

import matplotlib as mpl
import pytest

from keras_rl2.cli import parser
from keras_rl2.cli.main import main
from keras_rl2.cli.plot import read_curve


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


def test_environments_and_recorded_data_have_panels(runs, tmp_path, capsys):
    write(runs / "SAC-Pendulum-v1" / "seed-0", [1, 2], "SAC", "Pendulum-v1")
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
    assert drawn.count(">updates<") == 1
    assert drawn.count(">environment steps<") == 2
    assert ">return (sum of rewards), evaluations<" in drawn
    assert drawn.count(">CartPole-v1<") == 2
    assert drawn.count(">Pendulum-v1<") == 1


def test_trainings_of_one_algorithm_have_distinct_labels(runs, tmp_path):
    other = tmp_path / "other" / "PPO-CartPole-v1"
    write(other / "seed-0", [1.0], "PPO")
    picture = tmp_path / "curves.svg"
    paths = [str(runs / "PPO-CartPole-v1"), str(other)]
    assert main(["plot", *paths, "--output", str(picture)]) == 0
    drawn = picture.read_text()
    assert f">PPO, {other} (1 seed)<" in drawn
    assert f">PPO, {paths[0]} (4 seeds)<" in drawn


def test_a_row_that_is_being_written_is_left_out(tmp_path):
    write(tmp_path / "seed-0", ["nan", 1.5, 2.5])
    path = tmp_path / "seed-0" / "progress.csv"
    path.write_text(path.read_text() + "400,3")
    steps, returns = read_curve(path)
    assert steps.tolist() == [100.0, 200.0, 300.0]
    assert returns[1:].tolist() == [1.5, 2.5]


def test_other_files_are_refused(tmp_path, refused):
    path = tmp_path / "progress.csv"
    head = "env_steps,episode_return\n"
    for text, said in (
        ("", "no episode_return"),
        ("a,b\n1,2\n", "expected a column env_steps or updates"),
        ("env_steps,loss\n1,2\n", "no episode_return"),
        (head + "1,many\n", "'many'"),
        (head + "1,nan\n", "no episode has ended"),
        (head, "no episode has ended"),
        ("\xff\xfe", "not a table"),
    ):
        path.write_bytes(text.encode("latin-1"))
        assert said in refused("plot", path), text[:50]


def test_pictures_want_matplotlib_and_a_known_ending(
    runs, refused, monkeypatch
):
    assert "doc" in refused("plot", runs, "--output", runs / "curves.doc")
    monkeypatch.setattr(parser.importlib.util, "find_spec", lambda _: None)
    output = runs / "pictures" / "curves.png"
    assert "pip install matplotlib" in refused("plot", runs, "--output", output)
    assert not output.parent.exists()
