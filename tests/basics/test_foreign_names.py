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


@pytest.mark.parametrize("name", foreign_names.FOREIGN)
def test_an_answer_names_what_there_is(name):
    ours, note = foreign_names.FOREIGN[name]
    assert ours or note
    for each in ours:
        where, argument = _OURS.fullmatch(each).groups()
        value = place(where)
        if argument and where == "for_env":
            value = rl.PPO.for_env
        if argument:
            assert argument in inspect.signature(value).parameters, each


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


def wrong(call):
    with pytest.raises(TypeError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (
            lambda: rl.PPO.for_env("CartPole-v1", clip_range=0.1),
            "Expected an argument that PPO takes: `clip_range` is `clip_ratio` "
            "here. Received: clip_range=0.1",
        ),
        (
            lambda: rl.PPO.for_env("CartPole-v1", n_steps=64),
            "Expected an argument that PPO takes: `n_steps` is "
            "`RolloutDataset(horizon)` or `ReplayDataset(n_step)` here. "
            "Received: n_steps=64",
        ),
        (
            lambda: rl.RolloutDataset("CartPole-v1", n_steps=64),
            "Expected an argument that RolloutDataset takes: `n_steps` is "
            "`horizon` here. Received: n_steps=64",
        ),
        (
            lambda: rl.ReplayDataset("CartPole-v1", learning_starts=64),
            "Expected an argument that ReplayDataset takes: `learning_starts` "
            "is `warm_up` here. Received: learning_starts=64",
        ),
        (
            lambda: rl.DQN(None, exploration_fraction=0.1),
            "Expected an argument that DQN takes: `exploration_fraction` is "
            "`epsilon` here: a Keras schedule over environment steps can make "
            "it fall. Received: exploration_fraction=0.1",
        ),
        (
            lambda: rl.SAC(None, None, ent_coef=0.1),
            "Expected an argument that SAC takes: `ent_coef` is `temperature` "
            "here. Received: ent_coef=0.1",
        ),
        (
            lambda: rl.PPO(None, device="cpu"),
            "Expected an argument that PPO takes: not `device`: TensorFlow "
            "chooses; see `tf.device`. Received: device='cpu'",
        ),
        (
            lambda: rl.EvaluationDataset("CartPole-v1", n_eval_episodes=3),
            "Expected an argument that EvaluationDataset takes: "
            "`n_eval_episodes` is `episodes` here. Received: n_eval_episodes=3",
        ),
        (
            lambda: rl.OfflineDataset("x", batchsize=3),
            "Expected an argument that OfflineDataset takes, perhaps "
            "`batch_size`. Received: batchsize=3",
        ),
    ],
)
def test_who_brings_a_name_is_told_ours(call, wanted):
    assert wrong(call) == wanted


def test_fit_and_evaluate_answer_too():
    agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    rollouts = rl.RolloutDataset("CartPole-v1", horizon=8)
    told = wrong(lambda: agent.fit(rollouts, total_timesteps=10))
    assert "`total_timesteps` is `total_steps` here" in told
    told = wrong(lambda: agent.evaluate("CartPole-v1", n_eval_episodes=10))
    assert "`n_eval_episodes` is `episodes` here" in told


def test_a_name_of_nobody_gets_the_nearest():
    assert foreign_names.answer("gama", {"gamma"}) is None
    told = wrong(lambda: rl.PPO.for_env("CartPole-v1", gama=1))
    assert "perhaps `gamma`" in told
