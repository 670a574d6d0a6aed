"""Names of other libraries are answered with ours."""

import inspect
import re
from pathlib import Path

import pytest

import keras_rl2 as rl
from keras_rl2.basics import foreign_names

DOCS = Path(__file__).resolve().parents[2] / "docs"
_OURS = re.compile(r"(\w+(?:\.\w+)*)(?:\((\w+)\))?")


def place(name):
    """Returns the function or class that an answer names."""
    value = rl if hasattr(rl, name.split(".")[0]) else rl.Agent
    for part in name.split("."):
        value = getattr(value, part)
    return value


def test_answers_name_what_there_is():
    for name, (ours, note) in foreign_names.FOREIGN.items():
        assert ours or note, name
        for each in ours:
            where, argument = _OURS.fullmatch(each).groups()
            value = rl.PPO.for_env if where == "for_env" else place(where)
            if argument:
                taken = inspect.signature(value).parameters
                assert argument in taken, (name, each)


def asked_of_pages():
    """Yields the arguments of other libraries that pages have rows for."""
    for page in ("coming_from_stable_baselines3.md", "coming_from_cleanrl.md"):
        text = (DOCS / page).read_text("utf-8")
        for title in ("argument by argument", "| `ppo.py` |"):
            for part in text.split(title)[1:]:
                part = part.split("\n## ")[0]
                rows = re.findall(r"(?m)^\| `(\w+)` \| (.*?) \|", part)
                yield from (row for row in rows if row[1].strip())


def test_pages_and_answers_know_the_same_names():
    asked = set(asked_of_pages())
    assert len(asked) > 40
    # What has no argument here, or the same name.
    own = {"env", "policy", "seed", "layer_init", "make_env", "save_model"}
    own |= {"capture_video"}
    taken = {
        name
        for kind in (rl.PPO, rl.DQN, rl.SAC, rl.TD3)
        for name in kind.argument_names()
    }
    unanswered = {
        name
        for name, _ in asked
        if name not in foreign_names.FOREIGN and name not in taken | own
    }
    assert unanswered == set()


def test_a_name_of_another_library_is_answered_with_ours():
    agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    rollouts = rl.RolloutDataset("CartPole-v1", horizon=8)
    for call, wanted in (
        (
            lambda: rl.PPO.for_env("CartPole-v1", clip_range=0.1),
            "Expected an argument that PPO takes: `clip_range` is `clip_ratio` "
            "here. Received: clip_range=0.1",
        ),
        (
            lambda: rl.RolloutDataset("CartPole-v1", n_steps=64),
            "RolloutDataset takes: `n_steps` is `horizon` here.",
        ),
        (
            lambda: rl.PPO.for_env("CartPole-v1", n_steps=64),
            "`RolloutDataset(horizon)` or `ReplayDataset(n_step)` here.",
        ),
        (
            lambda: rl.DQN(None, exploration_fraction=0.1),
            "`exploration_fraction` is `epsilon` here: a Keras schedule over "
            "environment steps can make it fall. Received:",
        ),
        (
            lambda: rl.PPO(None, device="cpu"),
            "takes: not `device`: TensorFlow chooses; see `tf.device`. "
            "Received: device='cpu'",
        ),
        (
            lambda: rl.OfflineDataset("x", batchsize=3),
            "OfflineDataset takes, perhaps `batch_size`. Received: batchsize=3",
        ),
        (
            lambda: agent.fit(rollouts, total_timesteps=10),
            "`total_timesteps` is `total_steps` here",
        ),
        (
            lambda: agent.evaluate("CartPole-v1", n_eval_episodes=10),
            "`n_eval_episodes` is `episodes` here",
        ),
    ):
        with pytest.raises(TypeError) as caught:
            call()
        assert wanted in str(caught.value)
    assert foreign_names.answer("gama", {"gamma"}) is None
