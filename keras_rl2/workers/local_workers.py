"""Worker processes of a dataset on this machine."""

from keras_rl2.workers.local_transport import LocalTransport
from keras_rl2.workers.transport import Transport
from keras_rl2.workers.workers import Workers


class LocalWorkers(Workers):
    """Steps a dataset's environments in processes of this machine.

    They pay if a step of the environment takes 100 microseconds and more. Each
    process holds its environments and a copy of the policy, so that there is
    one message to it and one back for a whole rollout, not for each step;
    arrays are passed in shared memory. Rollouts are equal, bit for bit, to
    those of one process with the same environments, as far as each of these has
    a random state of its own.

    The environments of the dataset are specified by an id, or by a function
    that makes one. The script is not imported again, and needs no
    `if __name__ == "__main__"`.

    Args:
        count: int. Number of workers: as many as there are cores, or more if
            the environments wait, e.g. for a network.
        envs_per_worker: int or None. Environments of each; None for
            `num_envs` of the dataset, shared out evenly. Defaults to `None`.
        min_workers: int. Number of processes below which an error is raised. A
            lost process is replaced; if that fails, the remaining ones take
            over its environments. Defaults to `1`.
        timeout: float or None. Seconds that a worker may take for its share
            of a rollout, after which it is replaced. Defaults to `None`: no
            limit.
        start_timeout: float. Seconds that the processes may take to start and
            to make their environments. Defaults to `60.0`.

    Raises:
        ValueError: If a number is out of bounds.

    Example:

    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("Acrobot-v1", num_envs=4, horizon=32,
    ...                              workers=LocalWorkers(2), seed=0)
    >>> agent = rl.PPO.for_env(rollouts.env, seed=0)
    >>> history = agent.fit(rollouts, epochs=1, verbose=0)
    >>> history.history["env_steps"]
    [128]
    >>> rollouts.close()
    """

    def _transport(self) -> Transport:
        """Makes the transport that runs the processes."""
        return LocalTransport()
