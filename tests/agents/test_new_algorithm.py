"""The code of the page on new algorithms runs as the page describes."""

import pathlib
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

import keras_rl2 as rl
from support.agents import KINDS
from support.agents import assert_equal_weights
from support.agents import make_env
from support.agents import make_replay
from support.agents import make_rollouts
from support.agents import weights_of

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "new_algorithm.md"
BLOCKS = re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE.read_text("utf-8"))


@pytest.fixture(scope="module")
def page():
    """The names that the page's classes have."""
    names = {}
    for block in BLOCKS:
        if "class " in block:
            exec(block, names)
    return names


def update_once(kind, batch, **settings):
    agent = kind.for_env(make_env(), hidden=(8,), seed=0, **settings)
    agent.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    agent.updates.assign(1)
    logs = agent.train_step(batch)
    return agent, {key: float(value) for key, value in logs.items()}


@pytest.fixture
def batch():
    generator = np.random.default_rng(0)
    return {
        "observation": tf.constant(generator.normal(size=(6, 3)), "float32"),
        "next_observation": tf.constant(
            generator.normal(size=(6, 3)), "float32"
        ),
        "action": tf.constant([0, 1, 2, 2, 1, 0]),
        "reward": tf.ones(6),
        "discount": tf.fill(6, 0.9),
    }


def test_cql_without_its_penalty_is_dqn(page, batch):
    settings = {"double": True, "dueling": True}
    plain, _ = update_once(rl.DQN, batch, **settings)
    other, _ = update_once(page["DiscreteCQL"], batch, alpha=0.0, **settings)
    assert_equal_weights(other, plain)


def test_the_penalty_of_cql_is_that_of_the_loss(page, batch):
    agent = rl.DQN.for_env(make_env(), hidden=(8,), seed=0)
    values = np.array(agent(batch["observation"]), np.float64)
    taken = values[np.arange(6), batch["action"]]
    expected = np.mean(np.log(np.exp(values).sum(axis=1)) - taken)
    _, plain = update_once(rl.DQN, batch)
    _, logs = update_once(page["DiscreteCQL"], batch, alpha=0.5)
    assert logs["conservative_loss"] == pytest.approx(expected, rel=1e-5)
    assert logs["loss"] == pytest.approx(
        plain["loss"] + 0.5 * expected, rel=1e-5
    )


def test_no_private_name_is_needed():
    for block in BLOCKS:
        assert not re.search(r"\._[a-z]|\b_[a-z]", block.replace("__", ""))


@pytest.mark.parametrize("name", ["HuberA2C", "DiscreteCQL", "TD3BC"])
def test_each_trains_and_is_saved(page, name, tmp_path):
    kind = page[name]
    env = make_env("act_box" if name == "TD3BC" else "act_discrete")
    agent = kind.for_env(env, hidden=(8,), seed=0)
    agent.compile(run_eagerly=True)
    dataset = make_rollouts(env) if agent.on_policy else make_replay(env)
    before = weights_of(agent)
    history = agent.fit(dataset, verbose=0).history
    for old, new in zip(before, agent.get_weights(), strict=True):
        assert (old != new).any()
    for key in agent.statistics_names:
        assert np.isfinite(history[key]).all()
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert type(loaded) is kind
    assert_equal_weights(loaded, agent)


@pytest.mark.slow
def test_the_page_runs_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in BLOCKS:
        exec(block, names)


@pytest.mark.parametrize("name", KINDS)
def test_networks_are_built_once_the_whole_constructor_has_ended(name):
    class Mine(KINDS[name].make):
        def __init__(self, *networks, **kwargs):
            super().__init__(*networks, **kwargs)
            self.set_last = 5

        def build_networks(self):
            self.found = self.set_last
            super().build_networks()

    class Least(Mine):
        pass

    for kind in (Mine, Least):
        assert kind.for_env(make_env(KINDS[name].pair), hidden=(4,)).found == 5


def test_a_mixin_may_have_the_outermost_constructor():
    class Mixin:
        def __init__(self, *networks, **kwargs):
            super().__init__(*networks, **kwargs)
            self.mixed_in = True

    class Mine(Mixin, rl.PPO):
        def build_networks(self):
            assert self.mixed_in
            super().build_networks()

    assert Mine.for_env("CartPole-v1", hidden=(4,)).built


def test_a_network_that_acts_has_to_be_named():
    class Mine(rl.DQN):
        names = False

        def build_networks(self):
            super().build_networks()
            self.last = keras.Sequential(
                [keras.Input((2,)), keras.layers.Dense(2)]
            )

        @property
        def acting_networks(self):
            found = super().acting_networks
            return [*found, self.last] if self.names else found

        def objectives(self):
            return {"q": rl.agents.Objective(self.terms, [self.last])}

        def terms(self, batch):
            values = self(batch["observation"], training=True)
            return {"loss": ops.mean(values), "q_value": 0.0, "td_error": 0.0}

        def call(self, observation, training=False):
            return self.last(super().call(observation, training))

    agent = Mine.for_env("CartPole-v1", hidden=(4,), epsilon=0.0, seed=0)
    replay = rl.ReplayDataset("CartPole-v1", batch_size=8, warm_up=16, seed=0)
    with pytest.raises(ValueError, match=r"Expected .*acting_networks.*dense"):
        agent.fit(replay, total_steps=256, verbose=0)
    agent.names = True
    before = weights_of(agent.last)
    agent.fit(replay, total_steps=256, verbose=0)
    assert (before[0] != agent.last.get_weights()[0]).any()
