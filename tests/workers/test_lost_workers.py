"""Workers are lost at every moment; these need no process for it."""

import contextlib
import functools

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.envs import WorkerError
from keras_rl2.workers.worker_pool import MOST_LOSSES
from support.datasets import episodes_of
from support.datasets import state_of
from support.memory_envs import RememberTheCue
from support.watched_workers import NUM_ENVS
from support.watched_workers import Watch
from support.watched_workers import made
from support.worker_processes import held_by
from support.workers_here import WorkersHere
from support.workers_here import lose


def test_environments_that_replace_others_do_not_repeat_them():
    """A training with the same losses repeats bit for bit."""

    def first_lengths():
        agent, data = made(workers=WorkersHere(2))
        data.bind(agent)
        shown = []
        for _ in range(3):
            lose(data, 1)
            # Its own environments.
            shown.append(np.split(data.collect().ended, 2, axis=1)[1])
        return shown

    first, again, third = first_lengths()
    assert not (first == again).all()
    assert not (again == third).all()
    np.testing.assert_array_equal(first_lengths(), [first, again, third])


def test_the_first_rollout_is_the_same_with_a_loss():
    rewards = []
    for lost in (False, True):
        agent, data = made(workers=WorkersHere(2))
        data.bind(agent)
        if lost:
            lose(data, 1)
        rewards.append(data.collect().reward)
    np.testing.assert_array_equal(*rewards)


def test_whole_episodes_are_played_again():
    agent, data = made(workers=WorkersHere(2), kind=rl.REINFORCE, horizon=20)
    data.bind(agent)
    for _ in range(2):
        trajectory = data.collect()
        assert trajectory.terminated.sum() == NUM_ENVS
        lose(data, 0)
    first, again = trajectory, data.collect()
    assert again.terminated.sum() == NUM_ENVS
    lengths = episodes_of(data)["episode_lengths"]
    assert len(lengths) == 3 * NUM_ENVS
    assert [*lengths][-NUM_ENVS:] == sorted(again.valid.sum(axis=0))
    assert not (first.observation[0, :2] == again.observation[0, :2]).all()


def test_scaled_rewards_do_not_add_up_over_a_gap():
    agent, data = made(workers=WorkersHere(2), scale_rewards=True, horizon=3)
    data.bind(agent)
    data.refresh()
    lose(data, 1)
    data.refresh()
    returns = np.zeros(NUM_ENVS)
    for reward in (1.0, 2.0, 3.0):
        returns = agent.gamma * returns + reward
    expected = returns.copy()
    for reward in (4.0, 5.0, 6.0):
        expected = agent.gamma * expected + reward
    scaled = state_of(data)["scaler"]["returns"]
    np.testing.assert_allclose(scaled[2:], returns[2:], rtol=1e-6)
    playing = episodes_of(data)["current_length"][:2] == 6
    assert playing.any()
    np.testing.assert_allclose(
        scaled[:2][playing], expected[:2][playing], rtol=1e-6
    )


def test_the_memory_of_a_lost_worker_begins_at_its_initial_state():
    data = rl.RolloutDataset(
        functools.partial(RememberTheCue, steps=9),
        num_envs=NUM_ENVS,
        horizon=4,
        batch_size=None,
        seed=0,
        workers=WorkersHere(2),
    )
    agent = rl.PPO.for_env(
        data.env, hidden=(8,), memory=keras.layers.GRUCell(3), seed=0
    )
    data.bind(agent)
    data.collect()
    lose(data, 0)
    trajectory = data.collect()
    assert trajectory.begins[0].tolist() == [1, 1, 0, 0]
    assert (trajectory.state[0][0, :2] == 0).all()
    assert (trajectory.state[0][0, 2:] != 0).any()


def test_a_loss_while_the_state_is_taken_is_survived():
    agent, data = made(workers=WorkersHere(2))
    data.bind(agent)
    data.collect()
    lose(data, 1, "get_state")
    assert data.get_state()["simulation"] is None
    watch = Watch(data, agent)
    agent.fit(data, epochs=2, verbose=0)
    watch.assert_statistics()


@pytest.mark.parametrize(
    ("error", "left"), [(KeyboardInterrupt, 0), (TypeError, 2)]
)
def test_a_rollout_is_requested_of_all_workers_or_none(error, left):
    """Ctrl-C, say, between two workers leaves none a rollout ahead."""

    def fails(*_):
        raise error

    agent, data = made(workers=WorkersHere(2))
    watch = Watch(data, agent)
    agent.fit(data, epochs=1, verbose=0)
    link = [*held_by(data.env)][1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(link, "send", fails)
        with pytest.raises(error):
            agent.fit(data, epochs=1, verbose=0)
    assert len(held_by(data.env)) == left
    agent.fit(data, epochs=1, verbose=0)
    assert len(held_by(data.env)) == 2
    assert (watch.rollouts, watch.gaps) == (2, NUM_ENVS)
    watch.assert_statistics()


def test_environments_of_workers_are_not_stepped():
    agent, data = made(workers=WorkersHere(2))
    with pytest.raises(ValueError, match="those that workers hold"):
        agent.evaluate(data.env, episodes=1)


def test_a_worker_that_cannot_be_replaced_raises():
    workers = WorkersHere(2)
    agent, data = made(workers=workers)
    data.bind(agent)
    workers.transport.most = 0
    lose(data, 0)
    with pytest.raises(WorkerError, match=r"worker 0.*there is no more"):
        data.collect()
    assert workers.transport.closed
    with pytest.raises(ValueError, match="workers that are open"):
        agent.fit(data, epochs=1, verbose=0)


def test_one_that_does_not_answer_in_time_is_replaced(caplog):
    # Time is looked at only where nobody has answered.
    workers = WorkersHere(2, timeout=1e-6)
    agent, data = made(workers=workers)
    data.bind(agent)
    watch = Watch(data, agent)
    data.refresh()
    transport, nobody = workers.transport, [[]]
    wait = transport.wait

    def answered(links, seconds):
        return nobody.pop() if nobody else wait(links, seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transport, "wait", answered)
        data.refresh()
    assert "did not answer 'collect' within 1e-06 s" in caplog.text
    assert data.env.pool.losses == len(held_by(data.env)) == 2
    data.refresh()
    watch.assert_statistics()


def test_a_worker_that_is_lost_repeatedly_raises():
    workers = WorkersHere(2)
    agent, data = made(workers=workers)
    lose(data, 1)
    workers.transport.lost_before = "collect"
    with pytest.raises(WorkerError, match=f"{MOST_LOSSES + 1} times"):
        agent.fit(data, epochs=1, verbose=0)
    assert data.env.pool.losses == MOST_LOSSES + 1
    assert workers.transport.closed
    assert agent.env_steps == 0


def test_new_episodes_begin_where_a_rollout_was_dropped():
    """Its steps are none that were taken."""
    workers = WorkersHere(2)
    agent, data = made(workers=workers)
    data.bind(agent)
    data.collect()
    before = [data.env.steps]
    for _ in range(2):
        with breaking_off(workers.transport, RuntimeError):
            data.collect()
        trajectory = data.collect()
        assert (trajectory.observation[0][:, 2] == 0).all()
        before.append(data.env.steps)
    assert np.diff(before).tolist() == [data.horizon] * 2


@contextlib.contextmanager
def breaking_off(transport, error):
    """Expects an error, which is raised once a rollout is under way."""

    def breaks_off(*_):
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transport, "wait", breaks_off)
        with pytest.raises(error):
            yield
