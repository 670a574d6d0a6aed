"""Several learners train the weights of one learner with the same batches."""

import contextlib
import json
import os
import shutil
import subprocess
import sys

import keras
import pytest
import tensorflow as tf

import keras_rl2 as rl
from keras_rl2.envs import as_vector_env
from support import learners
from support.agents import EVERY_AGENT
from support.agents import Hook
from support.agents import assert_equal_weights
from support.agents import make_agent
from support.agents import make_env
from support.agents import make_replay
from support.agents import make_rollouts
from support.agents import weights_of
from support.checkpointed import wait_for_checkpoint


def check(result):
    tolerance = 1e-5
    assert result["updates"] >= 19
    assert result["difference"] <= tolerance
    assert result["optimizer"] <= tolerance
    assert result["logs"] <= tolerance
    # So that it is not for want of learning.
    assert result["moved"] > 100 * tolerance
    assert result["devices"] == 0.0
    assert result["skipped"] == [0.0, 0.0]
    assert result["loaded acts alike"]


# Two devices.


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("learners"))
    done = subprocess.run(
        [sys.executable, learners.__file__, folder],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("name", learners.VARIANTS)
def test_two_devices_train_the_weights_of_one_device(name, results):
    # Gradients of halves of a minibatch are rounded, then added.
    check(results[name])


@pytest.mark.slow
def test_rows_that_would_be_left_over_are_refused(results):
    refused = results["left over"]
    assert "change `batch_size`. Received: 5 of them" in refused


# What is refused.


@pytest.fixture(scope="module")
def strategy():
    return tf.distribute.MirroredStrategy(["/cpu:0"])


def shared(strategy, name="PPO", **settings):
    with strategy.scope():
        return make_agent(EVERY_AGENT[name], make_env(), **settings)


def test_other_scopes_are_refused(strategy):
    other = tf.distribute.OneDeviceStrategy("/cpu:0")
    refused = pytest.raises(ValueError, match=r"Received: OneDeviceStrategy")
    with refused, other.scope():
        make_agent(EVERY_AGENT["PPO"], make_env())
    agent = shared(strategy)
    refused = pytest.raises(ValueError, match=r"Expected `fit` after the `str")
    with refused, strategy.scope():
        agent.fit(make_rollouts(make_env()), verbose=0)


def test_a_loss_scale_is_refused(strategy):
    agent = shared(strategy, dtype="mixed_float16")
    with pytest.raises(ValueError, match="no loss scale"):
        agent.fit(make_rollouts(make_env()), verbose=0)


def test_other_ways_of_executing_are_refused(strategy):
    for arguments, refused in (
        ({"jit_compile": True}, r"no `jit_compile`.*=True"),
        ({"run_eagerly": True}, r"in whole rounds: without `run_eagerly`"),
        ({"steps_per_execution": 1}, r"with `steps_per_execution='auto'`"),
    ):
        agent = shared(strategy, compile_arguments=arguments)
        with pytest.raises(ValueError, match=refused):
            agent.fit(make_rollouts(make_env()), verbose=0)
        assert agent.env_steps == 0
    agent = shared(strategy, "DQN")
    minibatches = make_replay(make_env()).as_dataset(agent).take(1)
    with pytest.raises(ValueError, match=r"on a dataset of `keras_rl2`"):
        agent.fit(minibatches, verbose=0)


def test_jit_compile_auto_means_no_xla(strategy):
    agent = shared(strategy, compile_arguments={"jit_compile": "auto"})
    agent.fit(make_rollouts(make_env()), verbose=0)
    assert not agent.rounds.compiled
    assert int(agent.optimizer.iterations.numpy()) == 2


def test_parts_made_outside_of_the_strategy_scope_are_refused(strategy):
    """Networks, optimizer and agent belong into one scope."""
    env = make_env()
    for within in ("network", "optimizer", "agent"):

        def scope(part, within=within):
            return (
                strategy.scope() if part == within else contextlib.nullcontext()
            )

        with scope("network"):
            network = rl.networks.mlp((3,), 3, seed=0)
        with scope("agent"):
            agent = rl.DQN(network, seed=0)
            agent.bind(env.observation_space, env.action_space)
        with scope("optimizer"):
            agent.compile(keras.optimizers.SGD(0.1))
        with pytest.raises(ValueError, match=r"within the same `strategy.sc"):
            agent.fit(make_replay(env), verbose=0)


def test_layers_that_look_at_the_whole_minibatch_are_refused(strategy):
    for make in (
        keras.layers.BatchNormalization,
        lambda: keras.layers.Dense(4, activity_regularizer="l2"),
    ):
        with strategy.scope():
            layer = make()
            network = keras.Sequential(
                [keras.Input((3,)), layer, keras.layers.Dense(3)]
            )
            agent = rl.DQN(network, seed=0)
            agent.compile()
        with pytest.raises(ValueError, match=f"Received: '{layer.name}'"):
            agent.fit(make_replay(make_env()), verbose=0)


def test_spaces_may_be_learned_by_fit(strategy):
    """Target networks are made then, and are those of the strategy too."""
    with strategy.scope():
        agent = rl.DQN(rl.networks.mlp((3,), 3, seed=0), seed=0)
    agent.fit(make_replay(make_env()), verbose=0)
    assert int(agent.updates.numpy()) == 2
    kinds = {type(each.value) for each in agent.target_network.variables}
    assert kinds == {type(each.value) for each in agent.q_network.variables}


# Beside training.


@pytest.mark.slow
def test_a_run_is_resumed_from_its_checkpoint(strategy, tmp_path):
    case = EVERY_AGENT["PPO"]

    def trained(folder, *callbacks):
        dataset = case.make_dataset(as_vector_env("CartPole-v1", 2))
        with strategy.scope():
            agent = make_agent(case, dataset.env)
        checkpoint = rl.callbacks.Checkpoint(tmp_path / folder, every_steps=1)
        callbacks = [checkpoint, *callbacks]
        agent.fit(dataset, epochs=4, callbacks=callbacks, verbose=0)
        return agent

    def keep(agent):
        if agent.env_steps == case.env_steps(2):
            wait_for_checkpoint()
            shutil.copytree(tmp_path / "whole", tmp_path / "of two rounds")

    whole = trained("whole", Hook(keep))
    resumed = trained("of two rounds")
    assert int(resumed.optimizer.iterations.numpy()) == 8
    assert_equal_weights(resumed, weights_of(whole))
