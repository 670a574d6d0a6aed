"""An error of an environment in a worker is raised here, in full."""

import functools

import pytest

import keras_rl2 as rl
from support import worker_envs
from support.probe_envs import NonFiniteEnv
from support.watched_workers import NUM_ENVS
from support.watched_workers import Watch
from support.watched_workers import made
from support.worker_envs import Always
from support.worker_envs import NumberedEnv
from support.worker_envs import Once
from support.worker_envs import WorkerEnvCrash
from support.worker_processes import living
from support.worker_processes import processes_of
from support.workers_here import WorkersHere


def own_error():
    """Makes a class that no worker can import; and raises one of it."""

    class OwnError(Exception):
        pass

    def raises_own():
        raise OwnError("own")

    return raises_own, OwnError


OWN = own_error()

#: Functions that raise, and in which step; then what is raised here: type and
#: text. Each is in the next rollout of 32 steps, of one of two workers.
ERRORS = {
    "importable": (worker_envs.raises, 5, WorkerEnvCrash, "crash"),
    "own": (OWN[0], 40, OWN[1], "own"),
    "not to be sent": (
        worker_envs.raises_what_cannot_be_sent,
        45,
        RuntimeError,
        "TwoArgumentsError: cannot be sent",
    ),
}


def test_errors_keep_their_type_and_training_continues(closing, tmp_path):
    fails = [
        Once(tmp_path / name, how, step)
        for name, (how, step, *_) in ERRORS.items()
    ]

    def fail(env):
        for each in fails:
            each(env)

    agent, data = closing(functools.partial(NumberedEnv, fail))
    for how, step, kind, text in ERRORS.values():
        with pytest.raises(kind, match=text) as caught:
            agent.fit(data, epochs=1, verbose=0)
        assert type(caught.value) is kind
        assert str(caught.value) == text
        notes = " ".join(caught.value.__notes__)
        assert f"In step {step} of environment" in notes
        assert "In worker" in notes
        assert f"in {how.__name__}" in notes
    # It is one of the environments, and no fault of the worker.
    assert len(processes_of(data)) == len(living(data)) == 2
    watch = Watch(data, agent)
    agent.fit(data, epochs=1, verbose=0)
    assert watch.rollouts == 1
    watch.assert_statistics()


def test_errors_name_the_worker_and_the_environment():
    failing = NumberedEnv.made + 3

    def make():
        # The environments are made in order.
        failing_now = NumberedEnv.made == failing
        fail = Always(worker_envs.raises, step=4) if failing_now else None
        return NumberedEnv(fail)

    agent, data = made(make, WorkersHere(2))
    data.bind(agent)
    with pytest.raises(WorkerEnvCrash) as caught:
        data.collect()
    first, second, *_ = caught.value.__notes__
    assert first == "In step 4 of environment 1 of NumberedEnv."
    assert second == (
        "In worker 1, whose environment 0 is environment 2 of all."
    )


def test_errors_of_making_keep_their_type():
    def make():
        raise WorkerEnvCrash("cannot be made")

    with pytest.raises(WorkerEnvCrash, match="cannot be made") as caught:
        made(make, rl.LocalWorkers(1))
    notes = " ".join(caught.value.__notes__)
    assert "as it was made" in notes


def test_non_finite_observations_are_named_with_their_worker():
    agent, data = made(functools.partial(NonFiniteEnv, at=7), WorkersHere(2))
    with pytest.raises(ValueError, match="finite observation") as caught:
        agent.fit(data, epochs=1, verbose=0)
    assert "at step 7" in str(caught.value)
    assert "In worker 0" in " ".join(caught.value.__notes__)


@pytest.mark.parametrize(
    ("dataset", "arguments"),
    [
        (rl.RolloutDataset, {"horizon": 4, "batch_size": 4 * NUM_ENVS + 1}),
        (rl.ReplayDataset, {"steps_per_round": NUM_ENVS + 1}),
    ],
)
def test_workers_of_settings_that_do_not_fit_are_ended(dataset, arguments):
    workers = WorkersHere(2)
    arguments |= {"num_envs": NUM_ENVS, "workers": workers}
    with pytest.raises(ValueError, match="Received: "):
        dataset(NumberedEnv, **arguments)
    assert workers.transport.closed
