"""Optimizers and schedules of files of Stable-Baselines3."""

import shutil
import warnings

import keras
import pytest

import keras_rl2 as rl
from keras_rl2.updates.skipped_updates import parts_of
from migrate.test_sb3 import assert_refused
from migrate.test_sb3 import kwargs
from migrate.test_sb3 import rewritten
from support import sb3_parity

pytest.importorskip("torch")
A2C = "a2c_multi_binary_leaky_relu"
ADAMW = "<class 'torch.optim.adamw.AdamW'>"
TF_LIKE = (
    "<class 'stable_baselines3.common.sb2_compat.rmsprop_tf_like.RMSpropTFLike"
    "'>"
)


def instead(**changes):
    """Returns what puts settings in the place of those that there are."""
    return lambda data: data.update(changes)


def falling(name, start, end, fraction):
    """Returns what a `LinearSchedule` is written as."""
    text = f"LinearSchedule(start={start}, end={end}, end_fraction={fraction})"
    return {name: {":type:": "a schedule", "value_schedule": text}}


def migrated(path):
    """Returns an agent, of which nothing may be left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        return rl.migrate.from_sb3(path)


def without_optimizer(**others):
    """Returns what A2C is told by `use_rms_prop=False`."""

    def change(data):
        del data["policy_kwargs"]["optimizer_class"]
        del data["policy_kwargs"]["optimizer_kwargs"]
        data["policy_kwargs"].update(others)

    return change


def test_a2c_has_the_optimizer_that_it_had(tmp_path):
    found = migrated(sb3_parity.FOLDER / f"{A2C}.zip").optimizer
    assert isinstance(found, keras.optimizers.RMSprop)
    assert (found.rho, found.epsilon) == (0.99, 1e-5)
    assert float(found.learning_rate) == pytest.approx(7e-4)
    adam = migrated(rewritten(tmp_path, A2C, without_optimizer())).optimizer
    assert type(adam) is keras.optimizers.Adam
    # What their actors and critics have, of which PyTorch's own is 1e-8.
    assert adam.epsilon == 1e-5


def test_optimizers_by_name(tmp_path):
    for named, given, kind, expected in [
        (
            ADAMW,
            {"betas": [0.8, 0.95], "weight_decay": 0.02, "fused": True},
            keras.optimizers.AdamW,
            {"beta_1": 0.8, "beta_2": 0.95, "weight_decay": 0.02},
        ),
        (ADAMW, {}, keras.optimizers.AdamW, {"weight_decay": 0.01}),
        (
            TF_LIKE,
            {"eps": 1e-3, "alpha": 0.9, "momentum": 0.1},
            keras.optimizers.RMSprop,
            {"epsilon": 1e-3, "rho": 0.9, "momentum": 0.1},
        ),
        (
            "<class 'torch.optim.sgd.SGD'>",
            {"momentum": 0.9, "nesterov": True},
            keras.optimizers.SGD,
            {"momentum": 0.9, "nesterov": True},
        ),
        (
            "<class 'torch.optim.adam.Adam'>",
            {"amsgrad": True},
            keras.optimizers.Adam,
            {"amsgrad": True, "epsilon": 1e-8},
        ),
    ]:
        change = kwargs(optimizer_class=named, optimizer_kwargs=given)
        found = migrated(rewritten(tmp_path, A2C, change)).optimizer
        assert type(found) is kind
        assert {name: getattr(found, name) for name in expected} == expected


def test_a_rate_that_falls_does_so_over_the_updates(tmp_path):
    rollouts = {"n_envs": 4, "n_steps": 20}
    replay = {"learning_starts": 400}
    fall = falling("learning_rate", "0.001", "1e-05", "0.5")
    for name, others, updates in [
        # 10 rounds of 20 steps in 4 environments, one update each.
        (A2C, rollouts, 10),
        # 10 rounds of 80 steps: 3 passes of 5 minibatches of 16.
        ("ppo_discrete", {**rollouts, "n_epochs": 3, "batch_size": 16}, 150),
        # One for four steps after the first 400.
        ("dqn", {**replay, "gradient_steps": 1}, 100),
        # As many as steps.
        ("sac_elu", {**replay, "n_envs": 2, "gradient_steps": -1}, 400),
    ]:
        change = instead(_total_timesteps=800, **others, **fall)
        agent = migrated(rewritten(tmp_path, name, change))
        config = agent.optimizer.get_config()["learning_rate"]["config"]
        assert config["initial_learning_rate"] == 1e-3
        assert config["end_learning_rate"] == 1e-5
        assert config["decay_steps"] == updates // 2
        assert config["power"] == 1.0


def test_an_actor_that_is_updated_less_often_counts_fewer(tmp_path):
    fall = falling("learning_rate", "0.001", "1e-05", "0.5")
    run = {"_total_timesteps": 800, "learning_starts": 400}
    change = instead(**run, gradient_steps=1, n_envs=1, **fall)
    agent = migrated(rewritten(tmp_path, "td3", change))
    agent.build_optimizer()
    steps = {
        part.name: part.get_config()["learning_rate"]["config"]["decay_steps"]
        for part in parts_of(agent.optimizer)
    }
    assert steps == {"actor": 100, "critic": 200}


def test_two_networks_have_one_each_where_the_file_has_another(tmp_path):
    change = kwargs(optimizer_class="<class 'lion.Lion'>")
    with pytest.warns(UserWarning, match="the optimizer"):
        agent = rl.migrate.from_sb3(rewritten(tmp_path, "td3", change))
    agent.build_optimizer()
    assert [each.name for each in parts_of(agent.optimizer)] == [
        "actor",
        "critic",
    ]


def test_a_clip_range_that_falls(tmp_path):
    fall = falling("clip_range", "0.3", "0.1", "1.0")
    run = {"_total_timesteps": 64, "n_steps": 64, "n_envs": 1}
    run |= {"n_epochs": 4, "batch_size": 32}
    path = rewritten(tmp_path, "ppo_discrete", instead(**run, **fall))
    schedule = migrated(path).clip_ratio
    # 8 updates, and a fourth of them.
    assert float(schedule(2)) == pytest.approx(0.25)
    assert float(schedule(8)) == pytest.approx(0.1)


def test_what_is_left_out_is_named(tmp_path):
    function = {"value_schedule": "<function f at 0x1>"}
    mine = "<class '__main__.Mine'>"
    for change, said in [
        (
            instead(learning_rate={":type:": "<class 'function'>"}),
            "the learning rate, a function",
        ),
        (instead(clip_range=function), "clip_range, a function"),
        (instead(clip_range_vf=function), "clip_range_vf"),
        (
            instead(**falling("learning_rate", "0.001", "0.0", "1.0")),
            "from 0.001 to 0, over a run of unknown length",
        ),
        (kwargs(optimizer_class=mine), f"the optimizer {mine}"),
        (
            kwargs(optimizer_kwargs={"weight_decay": 0.1}),
            "weight_decay of Adam",
        ),
    ]:
        path = rewritten(tmp_path, "ppo_discrete", change)
        with pytest.warns(UserWarning, match="not taken over") as caught:
            agent = rl.migrate.from_sb3(path)
        (message,) = [
            str(each.message) for each in caught if each.category is UserWarning
        ]
        assert said in message
        assert "Adam, learning rate 0.0" in message
        assert agent.clip_ratio == 0.2
    # Nor is anything said of what was given.
    change = instead(clip_range=function)
    path = rewritten(tmp_path, "ppo_discrete", change)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        rl.migrate.from_sb3(path, clip_ratio=0.1)


def test_bad_optimizers_and_schedules_are_refused(tmp_path):
    for change, reason in [
        (kwargs(optimizer_kwargs={"eps": -1.0}), "an optimizer with eps=-1.0"),
        (kwargs(optimizer_kwargs={"betas": 3}), "an optimizer with betas=3"),
        (
            instead(**falling("learning_rate", "1e999", "0.0", "1.0")),
            "settings with learning_rate",
        ),
        (
            instead(**falling("learning_rate", "0.1", "0.0", "0.0")),
            "settings with learning_rate",
        ),
    ]:
        assert_refused(rewritten(tmp_path, "ppo_discrete", change), reason)


def test_the_ending_may_be_left_out(tmp_path):
    shutil.copy(sb3_parity.FOLDER / "dqn.zip", tmp_path / "model.v1.zip")
    assert isinstance(rl.migrate.from_sb3(tmp_path / "model.v1"), rl.DQN)
    with pytest.raises(FileNotFoundError, match=r"model\.v2"):
        rl.migrate.from_sb3(tmp_path / "model.v2")
