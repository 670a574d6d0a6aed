"""Times the ways to train a PPO, from `fit` to your own loop.

    python benchmarks/your_own_loop.py

prints the table of docs/your_own_loop.md: CartPole-v1, 8 environments, 128
steps each, 4 passes over 4 minibatches of 256, two networks of 2 x 64 tanh. A
round is all of that. The ways take turns, each run is of ROUNDS rounds, and
the numbers are medians over the runs; the first rounds, which trace, count for
nothing.
"""

import argparse
import os
import platform
import statistics
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks import peers

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import gymnasium as gym
import keras
import numpy as np
import tensorflow as tf

import keras_rl2 as rl

ENVS, HORIZON, PASSES, SIZE = 8, 128, 4, 256
STEPS = ENVS * HORIZON
UPDATES = PASSES * STEPS // SIZE


class Way:
    """One way to train: an agent, its rollouts, and what makes a round.

    Attributes:
        name: str. For the table.
        collecting: float. Seconds of all rounds so far, of `collect` and
            `prepare`.
    """

    name = ""

    def __init__(self):
        env = gym.make_vec("CartPole-v1", ENVS, vectorization_mode="sync")
        self.agent = rl.PPO.for_env(env, seed=0)
        self.rollouts = rl.RolloutDataset(
            env, HORIZON, PASSES, SIZE, scale_rewards=False, seed=0
        )
        self.rollouts.bind(self.agent)
        self.agent.optimizer.build(self.agent.trainable_variables)
        self._spent = {"collecting": 0.0}
        for name in ("collect", "prepare"):
            peers.clock(self.rollouts, name, "collecting", self._spent)

    @property
    def collecting(self):
        return self._spent["collecting"]

    def run(self, rounds):
        """Makes some rounds."""
        raise NotImplementedError


class FitOnRounds(Way):
    name = "`agent.fit(rollouts)`"

    def run(self, rounds):
        self.agent.fit(self.rollouts, epochs=rounds, verbose=0)


class FitOnMinibatches(Way):
    name = "`agent.fit(rollouts.as_dataset(agent))`"

    def __init__(self):
        super().__init__()
        self.minibatches = self.rollouts.as_dataset(self.agent)

    def run(self, rounds):
        self.agent.fit(
            self.minibatches,
            epochs=rounds,
            steps_per_epoch=UPDATES,
            callbacks=[rl.callbacks.RolloutRefresh(self.rollouts)],
            verbose=0,
        )


class OwnLoop(Way):
    name = "`refresh()`, `tf.function(agent.train_step)`"
    compiled = False

    def __init__(self):
        super().__init__()
        self.minibatches = iter(self.rollouts.as_dataset(self.agent))
        self.step = tf.function(
            self.agent.train_step, autograph=False, jit_compile=self.compiled
        )

    def run(self, rounds):
        for _ in range(rounds):
            self.rollouts.refresh()
            for _ in range(UPDATES):
                logs = self.step(next(self.minibatches))
        logs["loss"].numpy()


class OwnCompiledLoop(OwnLoop):
    name = "`refresh()`, `tf.function(agent.train_step, jit_compile=True)`"
    compiled = True


class OnBatches(Way):
    name = "`refresh()`, `agent.train_on_batch(minibatch)`"

    def __init__(self):
        super().__init__()
        self.minibatches = iter(self.rollouts.as_dataset(self.agent))

    def run(self, rounds):
        for _ in range(rounds):
            self.rollouts.refresh()
            for _ in range(UPDATES):
                self.agent.train_on_batch(next(self.minibatches))


class AllYourOwn(Way):
    """Environment, acting, targets and updates of your own."""

    name = "all your own, with `rl.returns` and `rl.losses`"

    def __init__(self):
        self.env = gym.make_vec("CartPole-v1", ENVS, vectorization_mode="sync")
        self.actor = rl.networks.mlp((4,), 2, output_gain=0.01, seed=0)
        self.critic = rl.networks.mlp((4,), 1, seed=1)
        self.weights = [
            *self.actor.trainable_weights,
            *self.critic.trainable_weights,
        ]
        self.adam = keras.optimizers.Adam(3e-4, epsilon=1e-5)
        self.adam.build(self.weights)
        self.rng = np.random.default_rng(0)
        self.seen, _ = self.env.reset(seed=0)
        self.was_reset = np.zeros(ENVS, np.bool_)
        self.spent = 0.0

    @property
    def collecting(self):
        return self.spent

    @tf.function(autograph=False)
    def act(self, seen, noise):
        policy = rl.distributions.Categorical(self.actor(seen))
        action = policy.sample(noise)
        return action, policy.log_prob(action)

    @tf.function(autograph=False)
    def targets(self, seen, last, reward, terminated, truncated):
        # [T + 1, B, 4] as rows, for one pass
        rows = tf.concat([seen, last[None]], axis=0)
        values = self.critic(tf.reshape(rows, (-1, 4)))
        values = tf.reshape(values, (HORIZON + 1, ENVS))
        return rl.returns.generalized_advantage_estimation(
            reward,
            0.99 * (1.0 - terminated),
            values[:-1],
            values[1:],
            0.95,
            truncated,
        )

    @tf.function(autograph=False)
    def update(self, seen, action, log_prob, advantage, target, weight):
        with tf.GradientTape() as tape:
            policy = rl.distributions.Categorical(self.actor(seen))
            loss = rl.losses.clipped_surrogate(
                policy.log_prob(action), log_prob, advantage, 0.2
            )
            error = target - self.critic(seen)[:, 0]
            loss = tf.reduce_mean(weight * (loss + 0.5 * error**2))
        gradients = tape.gradient(loss, self.weights)
        gradients, _ = tf.clip_by_global_norm(gradients, 0.5)
        self.adam.apply(gradients, self.weights)
        return loss

    def run(self, rounds):
        for _ in range(rounds):
            start = time.perf_counter()
            samples = self.collect()
            self.spent += time.perf_counter() - start
            for _ in range(PASSES):
                order = self.rng.permutation(STEPS).reshape(-1, SIZE)
                for rows in order:
                    loss = self.update(*(array[rows] for array in samples))
        loss.numpy()

    def collect(self):
        """Takes the steps of a round, and computes targets."""
        kept = []
        for _ in range(HORIZON):
            noise = self.rng.gumbel(size=(ENVS, 2)).astype("float32")
            action, log_prob = (x.numpy() for x in self.act(self.seen, noise))
            after, reward, terminated, truncated, _ = self.env.step(action)
            # Where an episode has just ended, this step was the reset only.
            weight = ~self.was_reset
            row = action, log_prob, reward, terminated, truncated, weight
            kept.append((self.seen, *row))
            self.seen, self.was_reset = after, terminated | truncated
        columns = zip(*kept, strict=True)
        seen, action, log_prob, reward, terminated, truncated, weight = (
            np.array(column) for column in columns
        )
        flags = [x.astype("float32") for x in (reward, terminated, truncated)]
        advantage, target = (
            x.numpy().reshape(STEPS)
            for x in self.targets(seen, self.seen, *flags)
        )
        return (
            seen.reshape(STEPS, 4),
            action.reshape(STEPS),
            log_prob.reshape(STEPS),
            (advantage - advantage.mean()) / (advantage.std() + 1e-8),
            target,
            weight.reshape(STEPS).astype("float32"),
        )


WAYS = (
    FitOnRounds,
    FitOnMinibatches,
    OwnLoop,
    OwnCompiledLoop,
    OnBatches,
    AllYourOwn,
)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    ways = [make() for make in WAYS]
    for way in ways:
        way.run(3)
    measured = [[] for _ in ways]
    for _ in range(arguments.runs):
        for way, times in zip(ways, measured, strict=True):
            times.append(time_round(way, arguments.rounds))
    print_table(ways, measured)
    print(
        f"\nMedians of {arguments.runs} runs of {arguments.rounds} rounds, the "
        f"ways in turn: {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, TensorFlow {tf.__version__}, Keras "
        f"{keras.__version__}."
    )


def time_round(way, rounds):
    """Returns milliseconds of a round, and those of collecting in it."""
    collecting, start = way.collecting, time.perf_counter()
    way.run(rounds)
    whole = time.perf_counter() - start
    collecting = way.collecting - collecting
    return 1e3 * whole / rounds, 1e3 * collecting / rounds


def print_table(ways, measured):
    """Prints the medians as Markdown."""
    print("| way | ms per round | collecting | updates | one update |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for way, times in zip(ways, measured, strict=True):
        whole, collecting = (
            statistics.median(column) for column in zip(*times, strict=True)
        )
        rest = statistics.median(a - b for a, b in times)
        print(
            f"| {way.name} | {whole:.1f} | {collecting:.1f} | {rest:.1f} | "
            f"{rest / UPDATES:.2f} |"
        )


if __name__ == "__main__":
    main()
