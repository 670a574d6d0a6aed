"""Datasets without an environment."""

import gymnasium
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.any_space_env import AnySpaceEnv
from support.episodes import continuous
from support.episodes import one_by_one
from support.episodes import record

TWO_NUMBERS = gymnasium.spaces.Box(-1e3, 1e3, (2,), np.float32)


def dqn(action_space=None, gamma=0.9, **kwargs):
    """Returns an agent of `record`."""
    network = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    agent = rl.DQN(
        network,
        gamma=gamma,
        observation_space=TWO_NUMBERS,
        action_space=action_space or gymnasium.spaces.Discrete(2),
        seed=0,
        **kwargs,
    )
    agent.compile(keras.optimizers.SGD(0.01), run_eagerly=True)
    return agent


def bound(source, agent=None, **kwargs):
    """Returns a dataset that has been given its agent."""
    offline = rl.OfflineDataset(source, **kwargs)
    offline.bind(dqn() if agent is None else agent)
    return offline


def drawn(offline, minibatches=40):
    """Returns the transitions that were drawn, by their first number."""
    found = {}
    for _ in range(minibatches):
        batch = offline.sample(20)
        for i, observation in enumerate(batch["observation"]):
            found[int(observation[0])] = (
                batch["action"][i],
                batch["reward"][i],
                batch["discount"][i],
                batch["next_observation"][i],
            )
    return found


@pytest.mark.parametrize("n_step", [1, 3])
def test_transitions_are_those_of_the_definition(n_step):
    data = record()
    offline = bound(data, n_step=n_step)
    expected = one_by_one(data, n_step, gamma=0.9)
    found = drawn(offline)
    assert sorted(found) == sorted(expected)
    for t, (action, reward, discount, following) in found.items():
        assert action == expected[t][0]
        assert reward == pytest.approx(expected[t][1], rel=1e-5)
        assert discount == pytest.approx(expected[t][2], rel=1e-6)
        if discount > 0:
            assert following.tolist() == expected[t][3].tolist()


def test_without_next_observations_the_last_of_a_truncated_episode_is_none():
    data = record()
    del data["next_observations"]
    found = drawn(bound(data))
    # Steps 9 and 19 are followed by nobody knows what.
    assert sorted(found) == [t for t in range(20) if t not in (9, 19)]
    assert found[8][2] == pytest.approx(0.9)
    assert found[8][3].tolist() == [9.0, -9.0]
    assert found[3][2] == 0.0


def test_a_gap_in_a_record_truncates_the_episode():
    data = record(ends={})
    data["next_observations"][4] = 55.0
    offline = bound(data, n_step=3)
    assert offline.episodes == 2
    found = drawn(offline)
    assert found[4][3].tolist() == [55.0, 55.0]
    assert found[3][2] == pytest.approx(0.9**2)


def test_each_transition_is_drawn_about_as_often():
    offline = bound(record())
    first = np.concatenate(
        [offline.sample(100)["observation"][:, 0] for _ in range(200)]
    )
    counts = np.bincount(first.astype(int))
    # 1000 of each in expectation; one in a million is further off than 5 of
    # the binomial's deviations.
    assert np.abs(counts - 1000).max() < 170


def test_a_seed_repeats_the_draws():
    one, two = (bound(record(), seed=3).sample(50) for _ in range(2))
    other = bound(record(), seed=4).sample(50)
    np.testing.assert_array_equal(one["observation"], two["observation"])
    assert (one["observation"] != other["observation"]).any()


def test_state_goes_on_where_it_was():
    offline = bound(record())
    state = offline.get_state()
    expected = offline.sample(20)["observation"]
    offline.set_state(state)
    np.testing.assert_array_equal(offline.sample(20)["observation"], expected)


def test_actions_become_the_policys_own():
    data = record()
    data["actions"] = data["actions"] + 5
    agent = dqn(gymnasium.spaces.Discrete(2, start=5))
    batch = bound(data, agent).sample(100)
    assert set(batch["action"].tolist()) == {0, 1}
    data = continuous()
    batch = bound(data, rl.SAC.for_env("Pendulum-v1", seed=0)).sample(100)
    assert batch["action"].shape == (100, 1)
    assert 0.5 < np.abs(batch["action"]).max() <= 1.0


def test_the_repr_counts_episodes_and_transitions():
    offline = rl.OfflineDataset(
        record(), action_space=gymnasium.spaces.Discrete(2)
    )
    assert "5 episodes, 20 transitions" in repr(offline)
    assert (offline.episodes, offline.transitions) == (5, 20)
    assert offline.recorded.lengths.max() == 7


def test_an_agent_learns_from_it():
    offline = rl.OfflineDataset(record(), 16, updates_per_epoch=5)
    agent = dqn()
    before = agent.get_weights()[0].copy()
    history = agent.fit(offline, epochs=2, verbose=0).history
    assert (agent.get_weights()[0] != before).any()
    assert int(agent.updates) == 10
    assert history["env_steps"] == [0, 0]
    assert agent.env_steps == 0


def test_values_beyond_the_data_warn_once(recwarn):
    data = record() | {"rewards": np.full(20, 0.25)}
    agent = dqn()
    offline = rl.OfflineDataset(data, 16, updates_per_epoch=1)
    assert offline.largest_return() == np.inf
    for bias, said in ((0.1, 0), (99.0, 1)):
        kernel, _ = agent.q_network.get_weights()
        agent.q_network.set_weights([0 * kernel, np.array([bias, bias])])
        agent.fit(offline, epochs=2, verbose=0)
        found = [each for each in recwarn if "q_value" in str(each.message)]
        assert len(found) == said
    assert found[0].filename == __file__
    assert 0.25 < offline.largest_return() < 0.25 / (1 - agent.gamma)


def test_a_changed_gamma_counts():
    offline = rl.OfflineDataset(record(), 16, updates_per_epoch=1)
    agent = dqn()
    agent.fit(offline, epochs=1, verbose=0)
    agent.gamma = 0.5
    agent.compile(run_eagerly=True)
    agent.fit(offline, epochs=1, verbose=0)
    assert set(offline.sample(64)["discount"]) == {0.0, 0.5}


def test_an_epoch_is_a_number_of_updates():
    offline = rl.OfflineDataset(record())
    assert offline.steps_per_epoch == 1000
    assert rl.OfflineDataset(record(), updates_per_epoch=7).steps_per_epoch == 7


def test_offline_training_refuses_total_steps():
    with pytest.raises(ValueError, match=r"Expected `epochs` .*total_steps=9"):
        dqn().fit(rl.OfflineDataset(record()), total_steps=9)


def test_online_agents_are_refused_with_the_dataset_to_use():
    agent = rl.PPO.for_env("CartPole-v1", seed=0)
    with pytest.raises(ValueError, match=r"keras_rl2.RolloutDataset.*PPO"):
        agent.fit(rl.OfflineDataset(record()))
    agent = rl.DQN.for_env(
        "CartPole-v1", memory=keras.layers.GRUCell(4), seed=0
    )
    data = continuous(observations=4)
    data["actions"] = (data["actions"][:, 0] > 0).astype(int)
    with pytest.raises(ValueError, match=r"is not recurrent.*a recurrent DQN"):
        agent.fit(rl.OfflineDataset(data))


def test_statistics_of_observations_are_those_of_the_data():
    data = continuous()
    data["observations"] = data["observations"] * 3.0 + 7.0
    agent = rl.SAC.for_env(
        "Pendulum-v1", hidden=(8,), normalize_observations=True, seed=0
    )
    bound(data, agent)
    layer = next(
        each
        for each in agent.actor.layers
        if isinstance(each, rl.layers.ObservationNormalization)
    )
    # Step 39, the last of a truncated episode, is left out.
    kept = np.delete(data["observations"], 39, axis=0)
    normal = np.asarray(layer(kept.astype("float32")))
    np.testing.assert_allclose(normal.mean(axis=0), 0.0, atol=1e-4)
    np.testing.assert_allclose(normal.std(axis=0), 1.0, atol=1e-2)


def test_invalid_arrays_are_refused():
    space = gymnasium.spaces.Discrete(2)
    for change, text in [
        ({"rewards": None}, "rewards, terminations, .*Received: actions"),
        ({"rewards": np.ones(19)}, r"one length.*rewards \(19,\)"),
        ({"reward": np.ones(20)}, "Received: actions, .*reward, "),
        ({"actions": np.full(20, 2)}, r"within Discrete\(2\).*Received: 2 in "),
        ({"actions": np.array(["a"] * 20)}, "arrays of numbers"),
        ({"rewards": np.ones((20, 1))}, "one number per step"),
        ({"observations": np.ones((20, 3))}, "of the shapes of observations"),
    ]:
        data = record() | change
        data = {k: v for k, v in data.items() if v is not None}
        with pytest.raises(ValueError, match=text):
            rl.OfflineDataset(data, action_space=space)
    for key in ("observations", "rewards"):
        data = record()
        data[key][12] = np.nan
        text = f"finite {key}.*episode [234], step"
        with pytest.raises(ValueError, match=text):
            rl.OfflineDataset(data)


def test_other_objects_and_missing_paths_are_refused():
    with pytest.raises(ValueError, match=r"Expected a dict of arrays.*: 5"):
        rl.OfflineDataset(5)
    with pytest.raises(ValueError, match="which does not exist"):
        rl.OfflineDataset("/nowhere/at/all")


def test_sampling_before_binding_is_refused():
    with pytest.raises(ValueError, match=r"bound to an agent.*no agent"):
        rl.OfflineDataset(record()).sample(3)


def decay(first, last):
    """Returns a schedule that ends after 500 environment steps."""
    return keras.optimizers.schedules.PolynomialDecay(first, 500, last)


@pytest.mark.parametrize(
    ("make", "env", "last"),
    [
        (rl.DQN, "CartPole-v1", {"epsilon": 0.05}),
        (rl.CQL, "CartPole-v1", {"epsilon": 0.05}),
        (rl.TD3, "Pendulum-v1", {"exploration_scale": 0.1}),
        (rl.SAC, "Pendulum-v1", {"exploration_scale": 0.1}),
    ],
)
def test_recorded_data_ends_schedules_of_exploration(make, env, last, tmp_path):
    settings = {"hidden": (8,), "seed": 0}
    if "exploration_scale" in last:
        noise = rl.exploration.GaussianNoise(decay(0.9, 0.1))
        settings["exploration"] = noise
    agent, fresh = (make.for_env(env, **settings) for _ in range(2))
    agent.compile(run_eagerly=True)
    offline = rl.record("random", env, 100, seed=0).recorded
    offline = rl.OfflineDataset(offline, batch_size=8, updates_per_epoch=2)
    agent.fit(offline, verbose=0)
    assert agent.exploration_logs() == pytest.approx(last)
    [*_, part] = agent.policy.noise.parts
    assert part.get("epsilon", part.get("scale")) == pytest.approx(
        *last.values()
    )
    last = agent.exploration_logs()
    # So it stays, on the disk, in a checkpoint and in environments.
    agent.save(tmp_path / "agent.keras")
    assert rl.load(tmp_path / "agent.keras").exploration_logs() == last
    assert fresh.exploration_logs() != pytest.approx(last)
    fresh.compile(run_eagerly=True)
    fresh.build_optimizer()
    fresh.set_state(agent.get_state())
    assert fresh.exploration_logs() == last
    replay = rl.ReplayDataset(env, warm_up=8, batch_size=8, seed=0)
    history = agent.fit(replay, total_steps=80, verbose=0).history
    [key] = last
    assert history[key] == pytest.approx([last[key]])


def test_axes_of_trackers_never_fall():
    agent = dqn()
    steps = []
    told = rl.callbacks.Tracker(lambda values, step: steps.append(step))
    offline = rl.OfflineDataset(record(), 8, updates_per_epoch=3)
    replay = rl.ReplayDataset(
        AnySpaceEnv(TWO_NUMBERS, gymnasium.spaces.Discrete(2)),
        steps_per_round=4,
        updates_per_round=1,
        batch_size=4,
        rounds_per_epoch=1,
        warm_up=0,
        seed=0,
    )
    for dataset in (offline, replay, offline):
        agent.fit(dataset, epochs=2, callbacks=[told], verbose=0)
    assert steps == [3, 6, 10, 14, 17, 20]
