"""BehaviorCloning: its update by hand, and the uses of its actor."""

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

import keras_rl2 as rl
from keras_rl2.distributions import policy_head
from support.agents import ACTION_SPACES
from support.agents import AnySpaceEnv
from support.agents import make_env
from support.agents import make_replay
from support.deterministic import UNIT
from support.deterministic import linear_actor
from support.deterministic import linear_network
from support.errors import raises

VECTOR = spaces.Box(-1.0, 1.0, (3,), np.float32)
HYBRID = spaces.Dict(
    {"gear": spaces.Discrete(3), "wheel": spaces.Box(-1.0, 1.0, (2,))}
)


def test_update_of_choices_by_hand():
    agent = rl.BehaviorCloning(
        linear_network([0.0, 0.0], [0.0, 0.0]),
        observation_space=UNIT,
        action_space=spaces.Discrete(2),
    )
    agent.compile(keras.optimizers.SGD(1.0), run_eagerly=True)
    logs = agent.train_step(
        {
            "observation": tf.constant([[1.0], [1.0], [1.0], [1.0]]),
            "action": tf.constant([1, 1, 1, 0]),
        }
    )
    assert float(logs["loss"]) == pytest.approx(np.log(2.0))
    assert float(logs["log_prob"]) == pytest.approx(-np.log(2.0))
    assert float(logs["entropy"]) == pytest.approx(np.log(2.0))
    # The gradient of logits is the probability minus the share in the data.
    for weights in agent.actor.get_weights():
        np.testing.assert_allclose(weights.ravel(), [-0.25, 0.25], rtol=1e-6)


def test_update_of_numbers_by_hand():
    agent = rl.BehaviorCloning(
        linear_actor(0.0, 1.0), observation_space=UNIT, action_space=UNIT
    )
    agent.compile(keras.optimizers.SGD(0.5), run_eagerly=True)
    agent.train_step(
        {
            "observation": tf.constant([[0.0], [0.0]]),
            "action": tf.constant([[0.5], [-1.0]]),
            "weight": tf.constant([1.0, 0.0]),
        }
    )
    # log π = -½ (a - μ)² / σ² - log σ, of the first of two alone.
    _, bias = agent.actor.get_weights()
    np.testing.assert_allclose(bias, [1.0 - 0.5 * 0.5 * 0.5], rtol=1e-6)
    np.testing.assert_allclose(
        agent.log_std.numpy(), [0.5 * 0.5 * (0.25 - 1.0)], rtol=1e-6
    )


def test_a_deterministic_teacher_leaves_a_finite_policy():
    agent = rl.BehaviorCloning(
        linear_actor(0.0, 0.5), observation_space=UNIT, action_space=UNIT
    )
    agent.compile(keras.optimizers.SGD(1.0), run_eagerly=True)
    batch = {
        "observation": tf.zeros((4, 1)),
        "action": tf.fill((4, 1), 0.5),
    }
    for _ in range(10):
        agent.train_step(batch)
    policy = agent.distribution(batch["observation"])
    np.testing.assert_allclose(policy.log_std, [[-5.0]])
    assert np.isfinite(policy.log_prob(batch["action"])).all()


def teacher(space, observation, seed=0):
    """Actions of a policy that is linear in the observation, and greedy."""
    head = policy_head(space)
    units = head.parameter_sizes[0]
    kernel = np.random.default_rng(seed).normal(size=(3, units))
    parameters = tf.constant(observation @ kernel, "float32")
    log_std = tf.zeros(head.log_std_size) if head.log_std_size else None
    return head(parameters, log_std).mode()


@pytest.mark.parametrize(
    "name",
    [
        "hybrid",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ACTION_SPACES),
    ],
)
def test_behavior_cloning_learns_every_kind_of_action(name):
    space = {**ACTION_SPACES, "hybrid": HYBRID}[name]
    observation = np.random.default_rng(0).uniform(-1, 1, (512, 3))
    observation = observation.astype("float32")
    action = np.array(teacher(space, observation))
    agent = rl.BehaviorCloning.for_env(
        AnySpaceEnv(VECTOR, space), hidden=(32,), seed=0
    )
    agent.compile(keras.optimizers.Adam(1e-2), jit_compile=False)
    batch = {"observation": observation, "action": action}
    for _ in range(150):
        agent.train_on_batch(batch)
    greedy = np.array(agent.greedy_action(observation))
    if np.issubdtype(action.dtype, np.integer):
        assert (greedy == action).mean() > 0.95
    else:
        assert np.abs(greedy - action).mean() < 0.15


@pytest.mark.parametrize(
    "env_id",
    ["Pendulum-v1", pytest.param("CartPole-v1", marks=pytest.mark.slow)],
)
def test_its_actor_starts_ppo(env_id):
    cloned = rl.BehaviorCloning.for_env(env_id, hidden=(8,), seed=0)
    env = gymnasium.make(env_id)
    width = env.observation_space.shape[0]
    critic = keras.Sequential([keras.Input((width,)), keras.layers.Dense(1)])
    agent = rl.PPO(
        cloned.actor,
        critic,
        observation_space=env.observation_space,
        action_space=env.action_space,
        seed=0,
    )
    if cloned.log_std is not None:
        cloned.log_std.assign([-1.0])
        agent.log_std.assign(cloned.log_std)
    observation = np.random.default_rng(0).normal(size=(5, width))
    np.testing.assert_array_equal(
        agent.act(observation, deterministic=True),
        cloned.act(observation, deterministic=True),
    )
    np.testing.assert_allclose(
        agent.distribution(observation).entropy(),
        cloned.distribution(observation).entropy(),
    )


def test_standard_deviations_of_the_network():
    actor = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    agent = rl.BehaviorCloning(
        actor, observation_space=VECTOR, action_space=UNIT
    )
    assert agent.log_std is None
    agent.compile(run_eagerly=True)
    agent.fit(make_replay(make_env("act_box")), verbose=0)
    assert len(agent.trainable_variables) == 2


def test_invalid_arguments_and_networks_are_refused():
    env = make_env()
    for name in ("tau", "target_every"):
        with pytest.raises(TypeError, match=name):
            rl.BehaviorCloning.for_env(env, **{name: 1})
    with raises("initial_log_std", "-9"):
        rl.BehaviorCloning.for_env(env, initial_log_std=-9.0)
    with raises("one `optimizer`", "`critic_optimizer`"):
        rl.BehaviorCloning.for_env(env).compile("adam", critic_optimizer="sgd")
    actor = keras.Sequential([keras.Input((3,)), keras.layers.Dense(5)])
    with raises("the actor's output to have 3 units", "5"):
        rl.BehaviorCloning(
            actor, observation_space=VECTOR, action_space=spaces.Discrete(3)
        )
