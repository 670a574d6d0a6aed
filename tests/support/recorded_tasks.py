"""Recorded data for offline learning, and the returns after it.

Arrays are named as `OfflineDataset` takes them. A policy is anything that is
called with observations `[B, ...]` and gives actions, so that the libraries
that ours is compared with are asked in the same way; nothing here needs
TensorFlow until data is made.
"""

import gymnasium as gym
import numpy as np

KEYS = "observations", "actions", "rewards", "terminations", "truncations"


def medium_replay_of_pendulum():
    """All that a SAC has seen until it swings up; the first third is bad."""
    return replay_of_sac("Pendulum-v1", 20_000)


def medium_replay_of_balance():
    """All that a SAC has seen until it balances InvertedPendulum-v5."""
    return replay_of_sac("InvertedPendulum-v5", 20_000)


def replay_of_sac(env_id, steps):
    """Returns arrays of all steps of a SAC's training."""
    import keras

    import keras_rl2 as rl

    replay = rl.ReplayDataset(env_id, warm_up=1000, seed=0)
    agent = rl.SAC.for_env(env_id, hidden=(64, 64), seed=0)
    agent.compile(keras.optimizers.Adam(1e-3))
    agent.fit(replay, total_steps=steps, verbose=0)
    arrays = replay.buffer.record()
    action = agent.policy.head.to_environment(arrays["actions"])
    return arrays | {"actions": np.array(action)}


def mixed_cartpole():
    """Half a random policy's, half that of a PPO which is not done yet."""
    teacher = cartpole_teacher(50_000)
    halves = [
        played("CartPole-v1", teacher.act, 25_000, 0),
        played("CartPole-v1", None, 25_000, 1),
    ]
    return {key: np.concatenate([half[key] for half in halves]) for key in KEYS}


def expert_cartpole():
    """A PPO's that balances the pole."""
    expert = cartpole_teacher(150_000)
    return played(
        "CartPole-v1",
        lambda observation: expert.act(observation, deterministic=True),
        10_000,
        0,
    )


def cartpole_teacher(steps):
    """Returns a PPO after a part of its training."""
    import keras_rl2 as rl

    rollouts = rl.RolloutDataset("CartPole-v1", 128, num_envs=8, seed=0)
    agent = rl.PPO.for_env("CartPole-v1", seed=0)
    agent.fit(rollouts, total_steps=steps, verbose=0)
    return agent


def medium_hopper(steps=200_000):
    """Steps of a half-trained PPO in Hopper-v5."""
    import keras_rl2 as rl

    rollouts = rl.RolloutDataset(
        "Hopper-v5",
        256,
        num_envs=8,
        batch_size=256,
        scale_rewards=True,
        seed=0,
    )
    agent = rl.PPO.for_env("Hopper-v5", normalize_observations=True, seed=0)
    agent.fit(rollouts, total_steps=200_000, verbose=0)
    return played("Hopper-v5", agent.act, steps, 0)


def played(env_id, policy, steps, seed):
    """Returns arrays of the steps of a policy of single observations."""
    env = gym.make(env_id)
    env.action_space.seed(seed)
    observation, _ = env.reset(seed=seed)
    rows = []
    for step in range(steps):
        action = policy(observation) if policy else env.action_space.sample()
        following, reward, terminated, truncated, _ = env.step(action)
        truncated |= step == steps - 1 and not terminated
        rows.append((observation, action, reward, terminated, truncated))
        observation = following
        if terminated or truncated:
            observation, _ = env.reset()
    return dict(zip(KEYS, map(np.array, zip(*rows, strict=True)), strict=True))


def episode_returns(arrays):
    """Returns the return of each whole episode, in their order."""
    ends = np.flatnonzero(arrays["terminations"] | arrays["truncations"])
    sums = np.cumsum(arrays["rewards"], dtype=np.float64)[ends]
    return np.diff(np.append(0.0, sums))


def best_quarter(arrays):
    """Returns where the last quarter of Pendulum's episodes began, and their
    returns."""
    ends = np.flatnonzero(arrays["truncations"])
    starts = np.append(0, ends[:-1] + 1)
    whole = ends - starts == 199
    starts = starts[whole][-(np.count_nonzero(whole) // 4) :]
    returns = [arrays["rewards"][start : start + 200].sum() for start in starts]
    return arrays["observations"][starts], np.array(returns)


class BeginsAt(gym.Wrapper):
    """A pendulum that begins each episode where it is told."""

    def __init__(self, env, observation):
        super().__init__(env)
        self.first = observation

    def reset(self, **kwargs):
        _, info = self.env.reset(**kwargs)
        cosine, sine, speed = self.first
        self.unwrapped.state = np.array([np.arctan2(sine, cosine), speed])
        return self.first, info


def returns_from(policy, first):
    """Plays one episode of Pendulum-v1 from each observation."""
    env = gym.vector.SyncVectorEnv(
        [lambda o=o: BeginsAt(gym.make("Pendulum-v1"), o) for o in first]
    )
    return _first_episodes(policy, env, 0)


def returns_of(policy, env_id, episodes=20, seed=1000):
    """Plays one episode in each of as many environments."""
    env = gym.vector.SyncVectorEnv([lambda: gym.make(env_id)] * episodes)
    return _first_episodes(policy, env, seed)


def _first_episodes(policy, env, seed):
    """Returns the return of the first episode of each environment."""
    observation, _ = env.reset(seed=seed)
    total = np.zeros(env.num_envs)
    going = np.ones(env.num_envs, bool)
    while going.any():
        action = np.asarray(policy(observation))
        observation, reward, terminated, truncated, _ = env.step(
            action.reshape(env.action_space.shape)
        )
        total += reward * going
        going &= ~(terminated | truncated)
    return total


def score(env_id, arrays, policy):
    """Returns the return of a greedy policy, and that of the data."""
    if env_id == "Pendulum-v1":
        # From where the data's last episodes began: an angle decides much.
        first, behavior = best_quarter(arrays)
        returns = returns_from(policy, first)
    else:
        behavior = episode_returns(arrays)
        returns = returns_of(policy, env_id)
    return {
        "return": float(np.mean(returns)),
        "behavior": float(np.mean(behavior)),
    }
