"""Critics with dropout, as in DroQ (Hiraoka et al., 2022)."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_rl2 as rl
from support.agents import EVERY_AGENT
from support.agents import assert_equal_agents
from support.agents import make_agent
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_replay
from support.errors import raises

SAC = EVERY_AGENT["SAC"]
PAIRS = ["act_box", "act_discrete"]


def make(pair="act_box", make=make_eager_agent, **settings):
    env = make_env(pair)
    return make(SAC, env, critic_dropout=0.5, **settings)


@pytest.mark.parametrize("pair", PAIRS)
def test_hidden_layers_are_dropped_out_and_then_normalized(pair):
    agent = make(pair, hidden=(8, 8))
    hidden = ("", "_dropout", "_normalization", "_activation")
    expected = [f"hidden_{k}{end}" for k in range(2) for end in hidden]
    for critic in (*agent.critics, *agent.target_critics):
        names = [layer.name for layer in critic.layers]
        assert names[-9:-1] == expected
    assert "hidden_0_dropout" not in [e.name for e in agent.actor.layers]


@pytest.mark.parametrize("pair", PAIRS)
def test_targets_and_the_loss_of_the_actor_have_dropout(pair):
    agent = make(pair, hidden=(32,))
    seen = ops.convert_to_tensor(np.ones((4, 3), np.float32))
    for networks in (agent.target_critics, agent.critics):
        for training in (False, True):
            # The draw of the action depends on the number of updates alone.
            values = [
                agent.soft_value(networks, seen, 0, training)[0]
                for _ in range(2)
            ]
            assert (values[0].numpy() != values[1].numpy()).all()


def test_a_target_draws_masks_of_its_own():
    agent = make(hidden=(64,))

    def seeds(network):
        dropout = network.get_layer("hidden_0_dropout")
        return int(dropout.seed_generator.state.value[0])

    networks = (*agent.critics, *agent.target_critics)
    assert len({*map(seeds, networks)}) == 4


def test_a_saved_critic_keeps_its_dropout(tmp_path):
    agent = make()
    agent.fit(make_replay(make_env("act_box")), epochs=1, verbose=0)
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    inputs = [ops.ones((1, 3)), ops.ones((1, 1))]
    for critic in (*loaded.critics, *loaded.target_critics):
        values = [critic(inputs, training=False) for _ in range(16)]
        assert len({float(each[0, 0]) for each in values}) > 1


@pytest.mark.slow
@pytest.mark.parametrize("pair", [*PAIRS, "observe_image_act_box"])
def test_a_training_repeats(pair):
    def trained():
        agent = make(pair, make_agent)
        agent.fit(make_replay(make_env(pair)), epochs=2, verbose=0)
        return agent

    assert_equal_agents(trained(), trained())


def test_it_is_refused_without_critics_or_with_another_normalization():
    for kind in (rl.PPO, rl.CrossQ):
        with raises("`critic_dropout=None` for", "critic_dropout=0.1"):
            kind.for_env("Pendulum-v1", critic_dropout=0.1)
    with raises("`normalization` to be 'none' or 'layer'", "batch"):
        make(normalization="batch")
    with raises("critic_dropout", "1.5"):
        rl.TD3.for_env("Pendulum-v1", critic_dropout=1.5)
