"""Evaluations while an agent is trained, and the best agent of a run."""

import json
from pathlib import Path

import keras
import pytest
from tensorboard.backend.event_processing.event_accumulator import (
    EventAccumulator,
)

import keras_rl2 as rl
from keras_rl2.cli.main import main
from support.agents import assert_equal_weights
from support.run_folders import rows_of


def train(logdir, *options, algorithm="ppo"):
    arguments = ["train", algorithm, "CartPole-v1", "--logdir", str(logdir)]
    small = ["--set", "networks.hidden=[8]"]
    small += ["dataset.passes=1"] if algorithm == "ppo" else []
    small = [] if "--resume" in options else small
    assert main([*arguments, *small, *options]) == 0
    (folder,) = Path(logdir).glob("*/seed-0")
    return folder


def score_of(folder):
    return json.loads((folder / "best.json").read_text())


def weights_of(path):
    return keras.models.load_model(path).get_weights()


def evaluated(agent):
    """The result of 20 episodes, as the command plays them."""
    return agent.evaluate("CartPole-v1", episodes=20, num_envs=20, seed=0)


@pytest.mark.usefixtures("eagerly")
def test_evaluations_come_every_so_many_steps(tmp_path, capsys):
    folder = train(tmp_path, "--steps", "1000", "--evaluate", "400")
    rows = rows_of(folder)
    found = [
        (int(row["env_steps"]), float(row["val_episode_return"]))
        for row in rows
        if row["val_episode_return"]
    ]
    # At ends of Keras epochs, counted from the last one.
    expected, due = [], 400
    for row in rows:
        if int(row["env_steps"]) >= due:
            expected.append(int(row["env_steps"]))
            due = expected[-1] + 400
    steps = [step for step, _ in found]
    assert steps == expected
    assert len(steps) >= 2
    score = score_of(folder)
    last = capsys.readouterr().out.splitlines()[-2:]
    assert last[0].startswith(f"{folder / 'agent.keras'}: return ")
    assert last[1].startswith(
        f"{folder / 'best.keras'}: return {score['episode_return']:.1f} +- "
    )
    agent = rl.load(folder / "agent.keras")
    end = evaluated(agent)["episode_return"]
    assert f"return {end:.1f} +-" in last[0]
    assert score["episode_return"] == max(*(r for _, r in found), end)
    events = EventAccumulator(str(folder)).Reload()
    shown = events.Scalars("eval/mean_reward")
    assert [event.step for event in shown] == steps


def test_the_best_agent_repeats_its_score(trained):
    score = score_of(trained)
    agent = rl.load(trained / "best.keras")
    assert agent.env_steps == score["env_steps"]
    expected = evaluated(agent)
    assert {name: score[name] for name in expected} == expected


@pytest.mark.usefixtures("eagerly")
class TestResume:
    def resume(self, folder, *options):
        steps = int(rows_of(folder)[-1]["env_steps"])
        more = ["--resume", "--steps", str(steps + 300), "--evaluate", "0"]
        train(folder.parents[1], *more, *options)

    def test_the_best_stays_until_it_is_beaten(self, run_folder):
        score = score_of(run_folder) | {"episode_return": 500.0}
        (run_folder / "best.json").write_text(json.dumps(score))
        best = (run_folder / "best.keras").read_bytes()
        agent = (run_folder / "agent.keras").read_bytes()
        self.resume(run_folder)
        assert score_of(run_folder) == score
        assert (run_folder / "best.keras").read_bytes() == best
        assert (run_folder / "agent.keras").read_bytes() != agent

    def test_the_best_is_beaten(self, run_folder):
        score = score_of(run_folder) | {"episode_return": -1.0}
        (run_folder / "best.json").write_text(json.dumps(score))
        self.resume(run_folder)
        assert_equal_weights(
            weights_of(run_folder / "best.keras"),
            weights_of(run_folder / "agent.keras"),
        )
        assert score_of(run_folder)["episode_return"] > 0.0

    @pytest.mark.slow
    def test_a_score_of_another_agent_is_not_believed(
        self, run_folder, monkeypatch
    ):
        """Lost with a process that ended between two files."""
        score = score_of(run_folder)
        false = score | {"env_steps": 1, "episode_return": 1e6}
        (run_folder / "best.json").write_text(json.dumps(false))
        best = weights_of(run_folder / "best.keras")
        # Whatever comes is worse.
        measured = rl.Agent.evaluate

        def worse(self, episodes):
            results = measured(self, episodes)
            if self.env_steps > score["env_steps"]:
                results["episode_return"] = 0.0
            return results

        monkeypatch.setattr("keras_rl2.agents.Agent.evaluate", worse)
        self.resume(run_folder)
        assert score_of(run_folder) == score
        assert_equal_weights(weights_of(run_folder / "best.keras"), best)
