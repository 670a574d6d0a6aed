"""What agents that learn from replay have in common."""

import copy
import functools

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium.vector import AutoresetMode

import keras_rl2 as rl
from keras_rl2.envs import as_vector_env
from support.agents import EITHER_KIND
from support.agents import OFF_POLICY
from support.agents import WITH_TARGETS
from support.agents import assert_equal_weights
from support.agents import differ
from support.agents import make_agent
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_replay
from support.agents import weights_of
from support.loops import on_batches
from support.loops import own_loop
from support.probe_envs import CountingEnv

over_agents = pytest.mark.parametrize("name", OFF_POLICY)
over_those_with_targets = pytest.mark.parametrize("name", WITH_TARGETS)
sync = rl.callbacks.TargetNetworkSync


@pytest.fixture
def case(name):
    return OFF_POLICY[name]


@pytest.fixture
def env(case):
    return make_env(case.pair)


@pytest.fixture
def agent(case, env):
    return make_eager_agent(case, env)


def split(agent):
    """Returns copies of the weights of targets, and of what they follow."""
    pairs = agent.target_pairs
    return tuple(
        [np.array(w) for pair in pairs for w in pair[which].get_weights()]
        for which in (0, 1)
    )


# Target networks.


def following_agent(case):
    return make_agent(case, make_env(case.pair), tau=0.25, target_every=2)


@pytest.fixture(scope="module")
def fitted():
    """Trains agents for two rounds by `fit`, each once."""

    @functools.cache
    def made(name):
        case = OFF_POLICY[name]
        agent = following_agent(case)
        agent.fit(make_replay(make_env(case.pair)), epochs=2, verbose=0)
        return agent

    return made


# That they give the same weights is said in `tests/seeds/test_step_by_step.py`.
@pytest.mark.slow
@pytest.mark.parametrize("way", [own_loop, on_batches])
@over_those_with_targets
def test_targets_follow_in_every_way_of_training(name, case, way, fitted):
    agent, other = fitted(name), following_agent(case)
    way(other, make_replay(make_env(case.pair)), rounds=2)
    targets, sources = split(agent)
    assert differ(targets, sources)
    # The same graph compiled in another way rounds in another way.
    pairs = zip(agent.get_weights(), other.get_weights(), strict=True)
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.rotate(name=EITHER_KIND)
@over_those_with_targets
def test_fit_moves_targets_by_what_the_agent_says(case, env):
    agent = make_eager_agent(case, env, tau=0.25, target_every=2)
    seen = []

    class Look(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            moves = agent.target_networks.present
            seen.append({(move.tau, move.every) for move in moves})

    replay = make_replay(env, updates_per_round=1)
    agent.fit(replay, callbacks=[Look()], verbose=0)
    # One that is given is the only one, and for this `fit`.
    agent.fit(replay, callbacks=[sync(tau=0.5), Look()], verbose=0)
    agent.fit(replay, callbacks=[Look()], verbose=0)
    assert seen == [{(0.25, 2)}, {(0.5, 1)}, {(0.25, 2)}]


@pytest.mark.rotate(name=EITHER_KIND)
@over_those_with_targets
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [({"tau": 1.0}, "sources"), ({"every": 1000}, "at first")],
)
def test_a_sync_that_is_given_is_what_counts(env, agent, arguments, expected):
    before, _ = split(agent)
    replay, callbacks = make_replay(env), [sync(**arguments)]
    agent.fit(replay, callbacks=callbacks, verbose=0)
    targets, sources = split(agent)
    assert differ(sources, before)
    assert_equal_weights(
        targets, {"sources": sources, "at first": before}[expected]
    )


# Going on.


def plain(tree):
    """Returns a tree with what generators are at in place of them."""
    if isinstance(tree, dict):
        return {key: plain(each) for key, each in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [plain(each) for each in tree]
    if isinstance(tree, np.random.Generator):
        return tree.bit_generator.state
    return tree


@pytest.mark.spread(prioritized=[True])
@pytest.mark.rotate(name=EITHER_KIND)
@over_agents
@pytest.mark.parametrize("prioritized", [False, True])
def test_two_fits_are_one(case, env, prioritized):
    results = []
    for epochs in ((2,), (1, 1)):
        env = make_env(case.pair)
        agent = make_eager_agent(case, env)
        replay = make_replay(env, prioritized=prioritized)
        for each in epochs:
            agent.fit(replay, epochs=each, verbose=0)
        assert agent.updates.numpy() == 4
        results.append((agent.get_weights(), replay.get_state()["buffer"]))
    assert_equal_weights(results[0][0], results[1][0])
    np.testing.assert_equal(results[0][1], results[1][1])


class CycleEnv(gymnasium.Env):
    """Without chance: where a seed and where it goes on is all the same.

    Episodes of 8 steps, as many as a round has: each begins a new one.
    """

    def __init__(self, action_space):
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (3,))
        self.action_space = action_space

    def reset(self, *, seed=None, options=None):
        self._step = 0
        return self._observation(), {}

    def step(self, action):
        self._step += 1
        reward = float(np.mean(action) * np.cos(self._step))
        ended = self._step == 8
        return self._observation(), reward, False, ended, {}

    def _observation(self):
        return np.sin(self._step * np.arange(1, 4)).astype(np.float32)


def cycle_env(case):
    return as_vector_env(
        gymnasium.vector.SyncVectorEnv(
            [lambda: CycleEnv(case.action_space)] * 2,
            autoreset_mode=AutoresetMode.SAME_STEP,
        )
    )


@pytest.mark.spread(prioritized=[True])
@pytest.mark.rotate(name=EITHER_KIND)
@over_agents
@pytest.mark.parametrize("prioritized", [False, True])
def test_saved_agent_and_replay_go_on_bit_for_bit(case, prioritized, tmp_path):
    def make_data(agent):
        settings = {"prioritized": prioritized, "n_step": 3}
        replay = make_replay(cycle_env(case), updates_per_round=1, **settings)
        replay.bind(agent)
        return replay

    agent = make_eager_agent(case, cycle_env(case))
    replay = make_data(agent)
    agent.fit(replay, epochs=2, verbose=0)
    agent.save(tmp_path / "agent.keras")
    state = copy.deepcopy(replay.get_state())
    agent.fit(replay, epochs=2, verbose=0)

    loaded = keras.models.load_model(tmp_path / "agent.keras")
    other = make_data(loaded)
    other.set_state(state)
    history = loaded.fit(other, epochs=2, verbose=0).history
    assert_equal_weights(loaded, agent)
    assert_equal_weights(
        [v.numpy() for v in loaded.optimizer.variables],
        [v.numpy() for v in agent.optimizer.variables],
    )
    # Environments among it: they have gone on where the others were.
    np.testing.assert_equal(plain(other.get_state()), plain(replay.get_state()))
    assert history["env_steps"] == [48, 64]


# Interruptions.


# One algorithm in all modes, of which it knows nothing, and the others in one.
in_each_mode = pytest.mark.parametrize(
    ("name", "mode"),
    [
        *(("DQN", mode) for mode in AutoresetMode),
        *((name, AutoresetMode.SAME_STEP) for name in ("SAC", "TD3", "DDPG")),
    ],
)


class InterruptedEnv(CountingEnv):
    """Raises Ctrl-C at one step, counted over all episodes."""

    def __init__(self, index, at, action_space):
        super().__init__(index)
        self.action_space = action_space
        self._left = at if index == 1 else 10**6

    def step(self, action):
        self._left -= 1
        if not self._left:
            raise KeyboardInterrupt
        return super().step(action)


def counting_env(case, mode, at=10**6):
    makers = [
        lambda i=i: InterruptedEnv(i, at, case.action_space) for i in range(2)
    ]
    return as_vector_env(
        gymnasium.vector.SyncVectorEnv(makers, autoreset_mode=mode)
    )


def assert_holds_what_happened(replay):
    """Asserts that each transition could be one of `CountingEnv`."""
    batch = replay.sample(512)
    index, episode, step, _ = batch["observation"].T
    following = batch["next_observation"]
    np.testing.assert_array_equal(following[:, 0], index)
    np.testing.assert_array_equal(following[:, 1], episode)
    np.testing.assert_array_equal(following[:, 2], step + 1)
    reward = 100 * index + 10 * episode + step + 1
    np.testing.assert_array_equal(batch["reward"], reward)
    # Of 3 and 5 steps; those of 1 step between them are cut off.
    kind = episode % 3
    ends = ((kind == 0) & (step == 2)) | ((kind == 2) & (step == 4))
    np.testing.assert_array_equal(batch["discount"] == 0, ends)


@pytest.mark.spread(name=["DQN"])
@in_each_mode
@pytest.mark.parametrize("at", [5, 13], ids=["warm_up", "later"])
def test_ctrl_c_leaves_the_dataset_usable(case, mode, at):
    env = counting_env(case, mode, at)
    agent = make_eager_agent(case, env)
    replay = make_replay(env, warm_up=8, updates_per_round=1)
    with pytest.raises(KeyboardInterrupt):
        agent.fit(replay, epochs=5, verbose=0)
    # Whole rounds. Resets are steps too, but not of the environment.
    held = replay.buffer.steps
    assert held == {5: 0, 13: 32 if env.masks_reset_rows else 16}[at]
    before = weights_of(agent)
    agent.fit(replay, epochs=2, verbose=0)
    assert differ(before, agent.get_weights())
    assert replay.buffer.steps == held + 2 * 16 + (16 if at == 5 else 0)
    assert_holds_what_happened(replay)


@pytest.mark.spread(name=["DQN"])
@in_each_mode
def test_evaluating_on_the_training_environment(case, mode):
    """The buffer cuts the episodes that were broken off."""
    env = counting_env(case, mode)
    agent = make_eager_agent(case, env)
    replay = make_replay(env)
    replay.bind(agent)
    for _ in range(3):
        replay.refresh()
        agent.evaluate(env, episodes=2)
    replay.refresh()
    assert_holds_what_happened(replay)
    # None is lost, and none waits for a step that never comes.
    assert len(replay.buffer) == agent.env_steps


# Ways to execute.


@pytest.mark.slow
@pytest.mark.parametrize("name", ["DQN", "SAC"])
def test_ways_to_execute_give_the_same(case, name):
    """Draws are those of a seed and a count, however updates are made."""
    results = {}
    for way, arguments in {
        "eager": {"run_eagerly": True},
        "one_by_one": {"steps_per_execution": 1},
        "whole_round": {},
    }.items():
        env = make_env(case.pair)
        arguments = {"optimizer": keras.optimizers.SGD(0.1), **arguments}
        agent = make_agent(case, env, compile_arguments=arguments)
        replay = make_replay(env, prioritized=True)
        agent.fit(replay, epochs=3, verbose=0)
        priorities = replay.get_state()["buffer"]["priority"]
        results[way] = [*agent.get_weights(), priorities]
    for way, weights in results.items():
        for one, other in zip(weights, results["eager"], strict=True):
            np.testing.assert_allclose(
                one, other, rtol=1e-4, atol=1e-6, err_msg=way
            )


@over_agents
@pytest.mark.slow
def test_batches_of_the_users_own(case, agent, env):
    """Transitions from elsewhere, the last batch smaller than the others."""
    replay = make_replay(env)
    replay.bind(agent)
    replay.fill(32)
    batch = replay.sample(20)
    del batch["index"]
    dataset = tf.data.Dataset.from_tensor_slices(batch).batch(8)
    agent.compile(run_eagerly=False, jit_compile=False)
    history = agent.fit(dataset, epochs=2, verbose=0).history
    assert agent.updates.numpy() == 6
    assert np.isfinite(history["loss"]).all()


@pytest.mark.parametrize("stream", [-1, 8])
def test_an_update_has_eight_streams_of_random_numbers(stream):
    agent = make_eager_agent(OFF_POLICY["DQN"], make_env())
    with pytest.raises(ValueError, match=f"0 to 7. Received: stream={stream}"):
        agent.draw_normal((2,), stream)
