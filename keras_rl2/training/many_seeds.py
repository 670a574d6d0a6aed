"""Training of several agents that share one compiled round."""

import concurrent.futures
import os
import threading
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from typing import NamedTuple
from typing import cast

import keras
import numpy as np

from keras_rl2.basics.arguments import check_has
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.arguments import present
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.training.shared_programs import SharedPrograms

Logs = dict[str, list[float]]


class TrainedSeeds(NamedTuple):
    """The result of `train_seeds`.

    Attributes:
        seeds: list of int, K of them.
        agents: list of the K trained agents, in the order of the seeds.
        history: dict of `[K, epochs]` float64 arrays: each key of the logs of
            `fit`, one row for each seed. Epochs that a seed did not reach are
            NaN.
    """

    seeds: list[int]
    agents: list[Any]
    history: dict[str, np.ndarray]


def train_seeds(
    make_agent: Callable[[int], Any],
    make_dataset: Callable[[int], Any],
    seeds: Iterable[int],
    *,
    epochs: int | None = None,
    total_steps: int | None = None,
    make_callbacks: (
        Callable[[int], list[keras.callbacks.Callback]] | None
    ) = None,
    at_once: int | None = None,
) -> TrainedSeeds:
    """Trains an agent for each seed, as `fit` of each of them would.

    A round is traced and compiled once, for the first agent, and the others
    take the program with their own variables: on a `GraphVectorEnv`, an agent
    starts in a tenth of a second in place of five. Several agents train at
    once, each in a thread of its own. Weights and logs are those of a `fit` of
    each agent alone.

    Agents share a program where they differ only in their seeds, in names, and
    in a constant learning rate, so that a sweep of learning rates is one
    program too. Agents of this library that differ in their `shared_numbers`,
    for example `gamma` and `clip_ratio` of `PPO`, share a second program, which
    reads these from variables; their weights equal those of a `fit` alone up to
    rounding. An agent with another network, say, gets a program of its own,
    and is trained all the same. Whatever an agent of your own class depends on
    has to be in its `get_config`, as for `save`.

    Args:
        make_agent: Callable. Returns a new agent for a seed. It is called in
            this thread, in the order of the seeds.
        make_dataset: Callable. Returns new training data for a seed, with
            environments of its own. It is closed after the training.
        seeds: Iterable of int. Seeds, or numbers of other differences between
            the agents. Each once.
        epochs: int or None. See `fit`. Defaults to `None`.
        total_steps: int or None. See `fit`. Defaults to `None`.
        make_callbacks: Callable or None. Returns the callbacks for a seed.
            Defaults to `None`.
        at_once: int or None. Number of agents that train at the same time;
            None for one on each processor core. Defaults to `None`.

    Returns:
        `TrainedSeeds`.

    Raises:
        ValueError: If there is no seed, or one twice.

    An error in the training of a seed stops all others after their present
    epoch, and is raised with a note that names the seed.

    Example:

    >>> import keras_rl2 as rl
    >>> trained = rl.train_seeds(
    ...     lambda seed: rl.A2C.for_env("CartPole-v1", seed=seed),
    ...     lambda seed: rl.RolloutDataset(
    ...         rl.envs.GraphVectorEnv("CartPole-v1", num_envs=4), seed=seed),
    ...     seeds=range(3), total_steps=200)
    >>> trained.history["episode_return"].shape
    (3, 1)
    """
    check_positive(
        **present(epochs=epochs, total_steps=total_steps, at_once=at_once)
    )
    numbers = _checked(seeds)
    lanes = min(at_once or os.cpu_count() or 1, len(numbers))
    stopping = threading.Event()
    programs, policy = SharedPrograms(), keras.config.dtype_policy()

    def train(seed: int, agent: Any, dataset: RoundDataset) -> Logs:
        callbacks = make_callbacks(seed) if make_callbacks else []
        # Keras keeps the policy of each thread apart.
        keras.config.set_dtype_policy(policy)
        try:
            with programs.used():
                history = agent.fit(
                    dataset,
                    epochs=epochs,
                    total_steps=total_steps,
                    callbacks=[*callbacks, _StopTogether(stopping)],
                    verbose=0,
                )
        except Exception as error:
            error.add_note(f"In the training of seed {seed}.")
            raise
        finally:
            dataset.close()
        return cast(Logs, history.history)

    agents: list[Any] = []
    trainings = _trainings(numbers, make_agent, make_dataset, agents)
    logs = _in_threads(train, trainings, lanes, stopping)
    return TrainedSeeds(numbers, agents, _with_seed_axis(logs))


def _trainings(
    seeds: list[int],
    make_agent: Callable[[int], Any],
    make_dataset: Callable[[int], Any],
    agents: list[Any],
) -> Iterator[tuple[int, Any, RoundDataset]]:
    """Yields each seed, its agent, which is added to a list, and dataset."""
    for seed in seeds:
        agent = make_agent(seed)
        check_has("an agent", "fit", **{f"make_agent({seed})": agent})
        dataset = make_dataset(seed)
        check_has(
            "a dataset of keras_rl2",
            *("collect", "close"),
            **{f"make_dataset({seed})": dataset},
        )
        agents.append(agent)
        yield seed, agent, dataset


def _checked(seeds: Iterable[int]) -> list[int]:
    """Returns seeds as a list; raises unless they are distinct integers."""
    try:
        numbers = [int(each) for each in seeds]
    except (TypeError, ValueError):
        numbers = []
    if not numbers or len({*numbers}) < len(numbers):
        raise ValueError(
            "Expected `seeds` to be one or more integers, each once. "
            f"Received: seeds={seeds!r}"
        )
    return numbers


def _in_threads(
    train: Callable[[int, Any, RoundDataset], Logs],
    arguments: Iterator[tuple[int, Any, RoundDataset]],
    lanes: int,
    stopping: threading.Event,
) -> list[Logs]:
    """Trains agents at the same time, up to the first error in one of them."""
    # One is made while others train.
    free = threading.Semaphore(lanes + 1)
    trainings: list[concurrent.futures.Future[Logs]] = []
    datasets: list[RoundDataset] = []

    def failed() -> bool:
        return any(each.done() and each.exception() for each in trainings)

    with concurrent.futures.ThreadPoolExecutor(lanes) as threads:
        try:
            while free.acquire() and not failed():
                of_seed = next(arguments, None)
                if of_seed is None:
                    break
                datasets.append(of_seed[-1])
                trainings.append(threads.submit(train, *of_seed))
                trainings[-1].add_done_callback(lambda _: free.release())
            done, _ = concurrent.futures.wait(
                trainings, return_when=concurrent.futures.FIRST_EXCEPTION
            )
            # Those that have failed raise here, before others are waited for.
            for each in done:
                each.result()
            return [each.result() for each in trainings]
        except BaseException:
            stopping.set()
            for each, dataset in zip(trainings, datasets, strict=True):
                if each.cancel():
                    dataset.close()
            raise


class _StopTogether(keras.callbacks.Callback):
    """Stops after the present epoch, once an event is set."""

    def __init__(self, event: threading.Event) -> None:
        super().__init__()
        self._event = event

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Stops the agent if the event is set."""
        if self._event.is_set():
            self.model.stop_training = True


def _with_seed_axis(
    logs: list[Logs],
) -> dict[str, np.ndarray]:
    """Returns the logs of K trainings as arrays `[K, epochs]`."""
    epochs = max(len(each) for log in logs for each in log.values())
    history = {}
    for name in {name: None for log in logs for name in log}:
        history[name] = np.full((len(logs), epochs), np.nan)
        for row, log in zip(history[name], logs, strict=True):
            row[: len(log.get(name, ()))] = log.get(name, ())
    return history
