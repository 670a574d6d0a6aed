"""Text 003: a PPO written by hand around `GradientTape`, and its move to us.

How does `GradientTape` serve a PPO? It records one forward pass of each
minibatch under the present weights; log-probabilities and advantages of the
rollout are constants beside it. So a PPO of one's own keeps its loop and its
two optimizers, and takes from here what is easily got wrong: first the
functions, on the very arrays `[T]` that it has; then the agent, which trains
the same two networks.
"""

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl

GAMMA, DECAY, CLIP = 0.99, 0.95, 0.2


def dense_network(inputs, outputs, name, seed):
    """Makes a network of one hidden layer, as the author's agent does."""
    keras.utils.set_random_seed(seed)
    state = keras.Input((inputs,), name="state")
    hidden = keras.layers.Dense(64, activation="tanh")(state)
    return keras.Model(state, keras.layers.Dense(outputs)(hidden), name=name)


def two_networks(seed):
    """Makes a policy network and a value network for CartPole."""
    return (
        dense_network(4, 2, "policy", seed),
        dense_network(4, 1, "value", seed + 1000),
    )


class OwnPPO:
    """A PPO by hand: two networks, two optimizers, flat arrays of one rollout.

    Targets and the surrogate are ours; acting, loop and updates its own.
    """

    def __init__(self, seed):
        self.policy_network, self.value_network = two_networks(seed)
        self.optimizers = [keras.optimizers.Adam(3e-3) for _ in range(2)]
        self.networks = (self.policy_network, self.value_network)
        for optimizer, network in zip(
            self.optimizers, self.networks, strict=True
        ):
            optimizer.build(network.trainable_variables)
        self.rng = np.random.default_rng(seed)

    def choose(self, state):
        """Returns an action and its log-probability, to be kept with it."""
        log_probs = self.log_probs(tf.constant(state[None])).numpy()[0]
        action = int(np.argmax(log_probs + self.rng.gumbel(size=2)))
        return action, log_probs[action]

    @tf.function(autograph=False)
    def log_probs(self, state):
        """Returns the log-probabilities of both actions `[B, 2]`."""
        logits = self.policy_network(state)
        return rl.distributions.Categorical(logits).log_probs

    def targets(self, rollout):
        """Returns advantages and returns `[T]`."""
        values, next_values = (
            np.asarray(self.value_network(rollout[key]))[:, 0]
            for key in ("state", "next_state")
        )
        return rl.returns.generalized_advantage_estimation(
            rollout["reward"],
            GAMMA * (1.0 - rollout["terminated"]),
            values,
            next_values,
            DECAY,
            truncated=rollout["truncated"],
        )

    @tf.function(autograph=False)
    def update(self, state, action, old_log_prob, advantage, target):
        """Makes one step of both optimizers from one recorded pass."""
        with tf.GradientTape() as tape:
            policy = rl.distributions.Categorical(self.policy_network(state))
            policy_loss = rl.losses.clipped_surrogate(
                policy.log_prob(action), old_log_prob, advantage, CLIP
            )
            value = self.value_network(state)[:, 0]
            # The networks share no weight: of the sum, each gets its own.
            loss = tf.reduce_mean(policy_loss + (target - value) ** 2)
        weights = [network.trainable_variables for network in self.networks]
        gradients = tape.gradient(loss, weights)
        for optimizer, gradient, owned in zip(
            self.optimizers, gradients, weights, strict=True
        ):
            optimizer.apply(gradient, owned)

    def learn(self, rollout, passes=10, size=128):
        """Goes over a rollout several times, in shuffled minibatches."""
        advantage, target = (x.numpy() for x in self.targets(rollout))
        arrays = (
            rollout["state"],
            rollout["action"],
            rollout["log_prob"],
            (advantage - advantage.mean()) / (advantage.std() + 1e-8),
            target,
        )
        for _ in range(passes):
            order = self.rng.permutation(len(target)).reshape(-1, size)
            for rows in order:
                self.update(*(tf.constant(array[rows]) for array in arrays))


class Driver:
    """Steps through one environment, and keeps what happened as arrays."""

    def __init__(self, choose, seed):
        self.env = gymnasium.make("CartPole-v1")
        self.choose = choose
        self.state, _ = self.env.reset(seed=seed)
        self.episode_returns = [0.0]

    def play(self, steps):
        """Returns `[T]` arrays of T steps, whatever episodes they are from."""
        kept = [self._step() for _ in range(steps)]
        arrays = {key: np.array([row[key] for row in kept]) for key in kept[0]}
        return {
            key: array.astype("int32" if key == "action" else "float32")
            for key, array in arrays.items()
        }

    def _step(self):
        action, log_prob = self.choose(self.state)
        state = self.state
        after, reward, terminated, truncated, _ = self.env.step(action)
        self.episode_returns[-1] += reward
        self.state = after
        if terminated or truncated:
            self.state, _ = self.env.reset()
            self.episode_returns.append(0.0)
        return {
            "state": state,
            "action": action,
            "log_prob": log_prob,
            "reward": reward,
            # The true one, also where an episode ended: not the reset's.
            "next_state": after,
            "terminated": terminated,
            "truncated": truncated,
        }

    @property
    def recent(self):
        """Mean of the last ten episodes that ended."""
        return np.mean(self.episode_returns[-11:-1])


# In the default layer, `test_keras_networks.py` learns in a loop of one's own.
@pytest.mark.slow
def test_own_loop_learns_with_our_functions():
    agent = OwnPPO(seed=0)
    driver = Driver(agent.choose, seed=0)
    for _ in range(10):
        agent.learn(driver.play(512))
    assert np.mean(driver.episode_returns[:10]) < 60
    assert driver.recent > 100


def own_agent(seed):
    """Makes our PPO of the author's networks and optimizers."""
    spaces = gymnasium.make("CartPole-v1")
    agent = rl.PPO(
        *two_networks(seed),
        gamma=GAMMA,
        gae_lambda=DECAY,
        clip_ratio=CLIP,
        value_coefficient=1.0,
        max_gradient_norm=None,
        observation_space=spaces.observation_space,
        action_space=spaces.action_space,
        seed=seed,
    )
    agent.compile(
        keras.optimizers.Adam(3e-3),
        critic_optimizer=keras.optimizers.Adam(3e-3),
        jit_compile=False,
    )
    return agent


@pytest.mark.slow
def test_the_same_networks_learn_in_our_agent():
    agent = own_agent(seed=0)
    rollouts = rl.RolloutDataset(
        "CartPole-v1", horizon=512, passes=10, batch_size=128, seed=0
    )
    history = agent.fit(rollouts, epochs=16, verbose=0).history
    assert history["episode_return"][0] < 60
    episodes = rl.EvaluationDataset(
        "CartPole-v1", 20, num_envs=10, deterministic=False, seed=7
    )
    assert agent.evaluate(episodes)["episode_return"] > 100


def a_minibatch(dtype="float32"):
    """Makes samples of one's own."""
    return {
        "observation": np.ones((4, 4), dtype),
        "action": np.array([0, 1, 1, 0]),
        "log_prob": np.full(4, np.log(0.5), dtype),
        "advantage": np.array([1.0, -1.0, 0.5, 2.0], dtype),
        "returns": np.array([3.0, 1.0, 2.0, 0.0], dtype),
    }


@pytest.mark.usefixtures("eagerly")
def test_fit_and_own_batches_take_turns():
    agents = [own_agent(seed=0) for _ in range(2)]
    # Numbers of NumPy are as good as those of Keras.
    for agent, dtype in zip(agents, ("float32", "float64"), strict=True):
        agent.train_on_batch(a_minibatch(dtype))
    for one, other in zip(
        *(agent.get_weights() for agent in agents), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    rollouts = rl.RolloutDataset("CartPole-v1", horizon=32, passes=1, seed=0)
    for count in (3, 5):
        agent.fit(rollouts, epochs=1, verbose=0)
        logs = agent.train_on_batch(a_minibatch(), return_dict=True)
        assert np.isfinite(logs["loss"])
        assert int(agent.optimizer.iterations) == count
