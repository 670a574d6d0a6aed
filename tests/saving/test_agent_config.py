"""The config of a saved agent holds the arguments of its constructor."""

import inspect

import keras
import pytest

import keras_rl2 as rl
from support.agents import make_env
from support.agents import settings_of


def registered(kind):
    return keras.saving.register_keras_serializable(package="config")(kind)


@registered
class Scaled(rl.DQN):
    def __init__(self, q_network, *, scale=1.0, rates=(), **kwargs):
        super().__init__(q_network, **kwargs)
        self.scale = scale
        self.rates = rates


@registered
class ScaledAndShifted(Scaled):
    def __init__(self, q_network, *, shift=0.0, **kwargs):
        super().__init__(q_network, **kwargs)
        self.shift = shift


@registered
class Forgetful(rl.DQN):
    def __init__(self, q_network, *, scale=1.0, **kwargs):
        super().__init__(q_network, **kwargs)
        self._twice = 2.0 * scale


@registered
class ByItself(rl.A2C):
    """Takes one argument less than its base, and keeps another elsewhere."""

    def __init__(self, actor, critic=None, *, scale=1.0, gamma=0.9, **kwargs):
        if "gae_lambda" in kwargs:
            raise TypeError("gae_lambda")
        super().__init__(actor, critic, gamma=gamma, **kwargs)
        self._twice = 2.0 * scale

    def get_config(self):
        config = super().get_config()
        del config["gae_lambda"]
        return {**config, "scale": self._twice / 2.0}


@registered
class BelowIt(ByItself):
    def __init__(self, actor, critic=None, *, shift=0.0, **kwargs):
        super().__init__(actor, critic, **kwargs)
        self.shift = shift


def make(kind, **settings):
    return kind.for_env(make_env(), hidden=(4,), seed=0, **settings)


def saved_and_loaded(agent, tmp_path):
    agent.save(tmp_path / "agent.keras")
    return keras.models.load_model(tmp_path / "agent.keras")


def test_attributes_are_kept_without_a_get_config(tmp_path):
    rate = keras.optimizers.schedules.PolynomialDecay(1.0, 10)
    agent = make(ScaledAndShifted, scale=3.0, shift=5.0, rates=(rate, 0.5))
    again = saved_and_loaded(agent, tmp_path)
    assert (again.scale, again.shift) == (3.0, 5.0)
    assert again.rates[0].get_config() == rate.get_config()
    assert again.rates[1] == 0.5
    assert settings_of(again) == settings_of(agent)


def test_an_argument_of_another_name(tmp_path):
    agent = make(Scaled, loss="mse")
    assert agent.get_config()["loss"] == "mse"
    assert saved_and_loaded(agent, tmp_path).loss_name == "mse"


@pytest.mark.parametrize("kind", [ByItself, BelowIt])
def test_a_get_config_of_its_own_changes_that_of_the_base(kind, tmp_path):
    below = {"shift": 7.0} if kind is BelowIt else {}
    agent = make(kind, scale=3.0, gamma=0.8, **below)
    config = agent.get_config()
    assert (config["scale"], config["gamma"]) == (3.0, 0.8)
    assert "gae_lambda" not in config
    again = saved_and_loaded(agent, tmp_path)
    assert settings_of(again) == settings_of(agent)
    assert getattr(again, "shift", 7.0) == 7.0


def test_arguments_that_a_subclass_does_not_take_are_left_out():
    taken = inspect.signature(rl.REINFORCE).parameters
    assert "gae_lambda" not in taken
    assert set(make(rl.REINFORCE).get_config()) == set(taken)


def test_an_argument_that_is_not_kept_is_found_by_save(tmp_path):
    agent = make(Forgetful, scale=3.0)
    assert "scale" not in agent.get_config()
    with pytest.raises(
        ValueError,
        match=r"Expected Forgetful to keep each .*none for \['scale'\]",
    ):
        agent.save(tmp_path / "agent.keras")
    assert not [*tmp_path.iterdir()]


def test_a_value_that_cannot_be_written_is_found_by_save(tmp_path):
    agent = make(Scaled, scale=object())
    with pytest.raises(ValueError, match=r"none for \['scale'\]"):
        agent.save(tmp_path / "agent.keras")
    agent.save_weights(tmp_path / "agent.weights.h5")
