import pytest
from PIL import Image

import keras_rl2 as rl
from keras_rl2.cli.main import main


class TestEvaluate:
    def test_numbers_are_those_of_the_agent(self, trained, capsys):
        options = ["--episodes", "3", "--seed", "7"]
        assert main(["evaluate", str(trained), *options]) == 0
        agent = rl.load(trained / "best.keras")
        results = agent.evaluate("CartPole-v1", episodes=3, num_envs=3, seed=7)
        mean = results["episode_return"]
        assert f"return {mean:.1f} +-" in capsys.readouterr().out

    def test_stochastic_is_something_else(self, trained, capsys):
        for options in ([], ["--stochastic"]):
            assert main(["evaluate", str(trained), *options]) == 0
        greedy, stochastic = capsys.readouterr().out.splitlines()
        assert "20 stochastic episodes" in stochastic
        assert greedy.split()[2] != stochastic.split()[2]

        assert main(["evaluate", str(trained), "--env", "CartPole-v0"]) == 0
        assert capsys.readouterr().out.startswith("CartPole-v0: return")


class TestRecord:
    @pytest.mark.slow
    def test_mp4(self, run_folder, capsys):
        imageio = pytest.importorskip("imageio.v2")
        assert main(["record", str(run_folder), "--max-steps", "30"]) == 0
        path = run_folder / "best.mp4"
        printed = capsys.readouterr().out
        assert printed.startswith(f"{path}: ")
        frames = int(printed.split(": ")[1].split()[0])
        with imageio.get_reader(path) as reader:
            assert reader.get_meta_data()["fps"] == 50
            assert reader.get_meta_data()["size"] == (600, 400)
            assert reader.count_frames() == frames

    def test_gif(self, trained, tmp_path, capsys):
        path = tmp_path / "videos" / "cartpole.gif"
        options = ["--episodes", "2", "--seed", "1", "--output", str(path)]
        options += ["--max-steps", "30"]
        assert main(["record", str(trained), *options]) == 0
        printed = capsys.readouterr().out
        frames = int(printed.split(": ")[1].split()[0])
        returns = [
            float(each) for each in printed.split("return ")[1].split(",")
        ]
        # One picture for each step, and one of how each episode begins.
        assert sum(returns) + 2 == frames
        with Image.open(path) as image:
            assert image.size == (600, 400)
            seconds = 0
            for index in range(image.n_frames):
                image.seek(index)
                seconds += image.info["duration"] / 1000
        # Pictures that are alike become one of the same length.
        assert seconds == pytest.approx(frames / 50)
