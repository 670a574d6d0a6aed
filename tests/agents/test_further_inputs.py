"""Networks take further inputs by name, such as the fractions of quantiles."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces
from keras import ops

import keras_rl2 as rl
from keras_rl2.networks.inputs import run_network
from keras_rl2.updates.updater import Objective
from support.agents import AnySpaceEnv
from support.agents import assert_equal_weights
from support.errors import raises

BOX = spaces.Box(-1.0, 1.0, (3,), np.float32)
PICTURE = spaces.Box(0, 255, (8, 8), np.uint8)
OBSERVATIONS = {
    "array": BOX,
    "dict": spaces.Dict({"at": BOX, "seen": PICTURE}),
}


@keras.saving.register_keras_serializable(package="outside")
class FractionDQN(rl.DQN):
    """Learns the quantile of a fraction that the network is given."""

    further_inputs = {"fraction": keras.KerasTensor((None, 1), "float32")}

    @classmethod
    def default_networks(cls, build, **settings):
        inner = build.network("inner", 8, build.seed)
        fraction = keras.Input((1,), name="fraction")
        x = keras.layers.Concatenate()([inner.output, fraction])
        outputs = keras.layers.Dense(build.head.n)(x)
        return (keras.Model([*inner.inputs, fraction], outputs),)

    def outputs_of(self, network, encoded, training=False, **further):
        if not further:
            count = ops.shape(keras.tree.flatten(encoded)[0])[0]
            further = {"fraction": ops.full((count, 1), 0.5)}
        return super().outputs_of(network, encoded, training, **further)

    def quantiles(self, network, observation, fraction, training=False):
        encoded = self.policy.encode(observation)
        return self.q_values(
            self.outputs_of(network, encoded, training, fraction=fraction)
        )

    def objectives(self):
        return {"q": Objective(self.quantile_terms, [self.q_network])}

    def quantile_terms(self, batch):
        count = len(batch["reward"])
        fraction = 0.5 + 0.5 * self.draw_uniform((count, 1), 0)
        values = self.quantiles(
            self.q_network, batch["observation"], fraction, True
        )
        following = batch["next_observation"]
        later = self.quantiles(self.target_network, following, fraction)
        target = batch["reward"] + batch["discount"] * ops.max(later, axis=1)
        index = ops.cast(batch["action"], "int32")[:, None]
        error = target - ops.take_along_axis(values, index, axis=1)[:, 0]
        side = ops.abs(fraction[:, 0] - ops.cast(error < 0, "float32"))
        return {
            "loss": ops.mean(side * ops.abs(error)),
            "td_error": error,
            "q_value": ops.mean(values),
        }


@pytest.mark.parametrize("name", OBSERVATIONS)
def test_an_algorithm_outside_gives_its_network_fractions(name, tmp_path):
    env = AnySpaceEnv(OBSERVATIONS[name], spaces.Discrete(2))
    agent = FractionDQN.for_env(env, epsilon=0.5, seed=0)
    agent.compile(run_eagerly=True)
    before = agent.q_network.get_weights()
    replay = rl.ReplayDataset(
        env,
        batch_size=4,
        warm_up=8,
        steps_per_round=4,
        rounds_per_epoch=1,
        seed=0,
    )
    agent.fit(replay, epochs=1, verbose=0)
    # The last kernel has a row for the fraction.
    changed = agent.q_network.get_weights()[-2] - before[-2]
    assert (changed[-1] != 0.0).any()
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert_equal_weights(loaded, agent)


class FractionTD3(rl.TD3):
    """Has critics of observation, action and fraction."""

    @property
    def further_inputs(self):
        fraction = keras.KerasTensor((None, 1), "float32")
        return {**super().further_inputs, "fraction": fraction}


def test_critics_take_further_inputs_beside_the_action():
    def critic(*widths):
        inputs = [keras.Input((each,)) for each in widths]
        x = keras.layers.Concatenate()(inputs)
        return keras.Model(inputs, keras.layers.Dense(1)(x))

    def make(network, space=BOX):
        actor = keras.Sequential(
            [keras.Input((3,), name="at"), keras.layers.Dense(2)]
        )
        action = spaces.Box(-1.0, 1.0, (2,), np.float32)
        return FractionTD3(
            *(actor, network), observation_space=space, action_space=action
        )

    agent = make(critic(3, 2, 1))
    # The inputs are in the order in which they are given.
    kernel, _ = agent.critics[0].get_weights()
    given = np.ones((1, 3)), 2.0 * np.ones((1, 2)), 3.0 * np.ones((1, 1))
    found = run_network(
        agent.critics[0], given[0], action=given[1], fraction=given[2]
    )
    expected = np.concatenate(given, axis=1) @ kernel
    # Weights may nearly cancel each other.
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    with raises(
        "the critic to take .*, fraction of shape .None, 1.", "3 input"
    ):
        make(critic(3, 2))
    named = spaces.Dict({"at": BOX, "fraction": BOX})
    with raises("no array of the observation to be called 'fraction'", "Dict"):
        make(critic(3, 2, 1), named)


def test_a_tree_is_joined_with_further_inputs_by_name():
    arrays = {
        "goal": np.full((1, 2), 5.0, np.float32),
        "at": np.full((1, 3), 1.0, np.float32),
        "skill": np.full((1, 1), 3.0, np.float32),
    }
    inputs = [
        keras.Input(each.shape[1:], name=key) for key, each in arrays.items()
    ]
    network = keras.Model(inputs, keras.layers.Concatenate()(inputs))
    arrays = {key: tf.constant(each) for key, each in arrays.items()}
    encoded = {"at": arrays["at"]}
    found = run_network(
        network, encoded, skill=arrays["skill"], goal=arrays["goal"]
    )
    assert found.numpy().tolist() == [[5.0, 5.0, 1.0, 1.0, 1.0, 3.0]]
