"""Text 002: the two-armed bandit that the loop learns and the array does not.

Why does the array form fail? Not for what the tape watches: the gradient of a
mean is the mean of the gradients. It multiplies `[n, 1]` by `[n]`, which gives
`[n, n]`, and its critic, a softmax over one unit, is 1 whatever it is shown
(`examples/README.md` has the whole story). With `[n]` by `[n]` both forms are
one; and the actor, which ends in a softmax, is taken for what it is.
"""

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl

BANDIT = "keras_rl2.envs:keras_rl2/GaussianBandit-v0"
PULLS = 16
SEEDS = [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2))]


def pasted_actor():
    """Makes the actor: what each arm would pay in, probabilities out."""
    payoffs = keras.Input((2,))
    arms = keras.layers.Dense(2, activation="softmax")(payoffs)
    return keras.Model(payoffs, arms)


def critic(activation=None):
    """Makes a critic of one unit."""
    payoffs = keras.Input((2,))
    return keras.Model(
        payoffs, keras.layers.Dense(1, activation=activation)(payoffs)
    )


def losses_of(actor, valuing, payoffs, action, reward):
    """Returns both losses `[n]` of n pulls."""
    # A probability of 0 has no logarithm.
    logits = tf.math.log(tf.maximum(actor(payoffs), 1e-30))
    log_prob = rl.distributions.Categorical(logits).log_prob(action)
    advantage = reward - valuing(payoffs)[:, 0]
    return rl.losses.policy_gradient(log_prob, advantage) + advantage**2


def by_array(*networks_and_pulls):
    return tf.reduce_mean(losses_of(*networks_and_pulls))


def by_loop(actor, valuing, *pulls):
    one_by_one = [
        losses_of(actor, valuing, *(x[i : i + 1] for x in pulls))[0]
        for i in range(PULLS)
    ]
    return tf.add_n(one_by_one) / PULLS


def learn(form, seed, epochs=150):
    """Trains by hand, and returns the share of the best arm by epoch."""
    keras.utils.set_random_seed(seed)
    networks = pasted_actor(), critic()
    weights = [w for network in networks for w in network.trainable_weights]
    adam, rng = keras.optimizers.Adam(0.1), np.random.default_rng(seed)
    adam.build(weights)

    @tf.function(autograph=False)
    def update(*pulls):
        with tf.GradientTape() as tape:
            loss = form(*networks, *pulls)
        adam.apply(tape.gradient(loss, weights), weights)

    probabilities, shares = tf.function(networks[0]), []
    for _ in range(epochs):
        payoffs = rng.normal((10.0, 0.0), (15.0, 1.0), (PULLS, 2))
        payoffs = tf.constant(payoffs, "float32")
        first = rng.random(PULLS) < probabilities(payoffs).numpy()[:, 0]
        action = tf.constant(np.where(first, 0, 1))
        update(payoffs, action, tf.constant(first.astype("float32")))
        shares.append(np.mean(first))
    return np.array(shares)


# In the default layer, `test_loop_and_batch_form.py` compares the gradients of
# both, and `test_keras_networks.py` learns in a loop of one's own.
@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_loop_and_array_learn_alike(seed):
    loop, array = learn(by_loop, seed), learn(by_array, seed)
    assert loop[-20:].mean() > 0.95
    assert array[-20:].mean() > 0.95
    # The same weights and pulls: the same, up to rounding, from the first.
    np.testing.assert_array_equal(loop[:10], array[:10])
    assert abs(loop.mean() - array.mean()) < 0.02


AGENTS = {
    "A2C": {"passes": 1, "batch_size": None},
    "PPO": {"passes": 4, "batch_size": 100},
}


def trained(name, seed, activation=None, epochs=150, run_eagerly=False):
    """Trains an agent of the pasted networks; returns it and its history."""
    keras.utils.set_random_seed(seed)
    env = gymnasium.make_vec(BANDIT, num_envs=100)
    agent = getattr(rl, name)(pasted_actor(), critic(activation), seed=seed)
    agent.compile(
        keras.optimizers.Adam(0.1), jit_compile=False, run_eagerly=run_eagerly
    )
    rollouts = rl.RolloutDataset(env, horizon=1, seed=seed, **AGENTS[name])
    history = agent.fit(rollouts, epochs=epochs, verbose=0).history
    return agent, history["episode_return"]


@pytest.mark.spread(name=["A2C"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", AGENTS)
def test_the_pasted_actor_learns_the_better_arm(name, seed):
    agent, shares = trained(name, seed)
    assert shares[0] < 0.9
    # Taken as logits, probabilities say 0.73 at the most.
    assert np.mean(shares[-10:]) > 0.95
    payoffs = np.random.default_rng(7).normal((10, 0), (15, 1), (500, 2))
    assert np.mean(agent.act(payoffs, deterministic=True) == 0) > 0.95


def test_what_it_acts_by_is_what_the_actor_says():
    actor = pasted_actor()
    agent = rl.A2C(actor, critic(), seed=0)
    env = gymnasium.make(BANDIT)
    agent.bind(env.observation_space, env.action_space)
    payoffs = np.tile(np.float32([[0.3, -0.4]]), (2000, 1))
    action, log_prob = agent.act(payoffs, return_log_prob=True)
    probability = actor(payoffs).numpy()[0]
    np.testing.assert_allclose(np.exp(log_prob), probability[action], rtol=1e-5)
    assert np.mean(action == 0) == pytest.approx(probability[0], abs=0.05)


@pytest.mark.parametrize("name", AGENTS)
def test_a_critic_that_is_a_softmax_of_one_unit_is_warned_of(name):
    with pytest.warns(
        UserWarning, match=r"(?s)softmax of one unit.*no activation"
    ):
        agent, _ = trained(name, 0, "softmax", epochs=2, run_eagerly=True)
    # It is what it was: 1, whatever it is shown.
    np.testing.assert_array_equal(agent.value(np.eye(2)), [1.0, 1.0])
