"""No agent takes a forbidden action, in any of its methods.

`MaskedEnv` raises at a forbidden action, which fails the test. The assertions
beside that check that forbidden actions were possible.
"""

import functools

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import keras_rl2 as rl
from keras_rl2.envs import as_vector_env
from support.agents import EVERY_AGENT
from support.agents import make_eager_agent
from support.agents import slow
from support.agents import weights_of
from support.errors import raises
from support.structured_envs import MASKED_ACTIONS
from support.structured_envs import MaskedEnv
from support.structured_envs import batch_of
from support.structured_envs import choices_of
from support.structured_envs import flags_of
from support.structured_envs import masked_batch
from support.structured_envs import row
from support.structured_envs import vector
from support.vector_envs import MODES

#: Agents that take masks, with arguments of their own.
TAKERS = {
    "PPO": ("PPO", {}),
    "A2C": ("A2C", {}),
    "REINFORCE": ("REINFORCE", {}),
    "DQN": ("DQN", {}),
    "DQN double": ("DQN", {"double": True}),
    "DQN dueling": ("DQN", {"dueling": True}),
    "DQN C51": ("DQN", {"distributional": "categorical", "atoms": 5}),
    "DQN QR": ("DQN", {"distributional": "quantile", "atoms": 5}),
    "SAC": ("SAC", {}),
    "DiscreteCQL": ("DiscreteCQL", {}),
    "IQL": ("IQL", {}),
    "BehaviorCloning": ("BehaviorCloning", {}),
}


def take(name, env, make=make_eager_agent, **settings):
    """Makes an agent that takes masks, and its case."""
    kind, own = TAKERS[name]
    case = EVERY_AGENT[kind]
    return make(case, env, **{**own, **settings}), case


def assert_allowed(space, batch, actions):
    """Asserts that no action of a batch is forbidden."""
    count = len(batch["action_mask"])
    for index in range(count):
        flags = flags_of(space, actions[index])
        assert (flags <= batch["action_mask"][index]).all()


# Training.


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("PPO", AutoresetMode.NEXT_STEP),
        *slow(
            ("DQN", AutoresetMode.SAME_STEP),
            ("SAC", AutoresetMode.DISABLED),
            *(
                (name, MODES[i % 3])
                for i, name in enumerate(TAKERS)
                if name not in ("PPO", "DQN", "SAC")
            ),
        ),
    ],
)
def test_training_takes_no_forbidden_action(name, mode):
    env = vector(MaskedEnv, mode, num_envs=3)
    agent, case = take(name, env)
    arguments = {} if case.on_policy else {"warm_up": 48, "n_step": 2}
    dataset = case.make_dataset(env, **case.one_update, **arguments)
    before = weights_of(agent)
    agent.fit(dataset, epochs=2, verbose=0)
    taken = [pair for each in env.env.envs for pair in each.taken]
    # Whole episodes may be short ones: two of each environment.
    fewest = 6 if agent.whole_episodes else 20
    assert len(taken) >= agent.env_steps >= fewest
    assert any(mask.sum() == 1 for mask, _ in taken)
    for old, new in zip(before, agent.get_weights(), strict=True):
        assert np.isfinite(new).all()
        assert (old != new).any() or old.size == 1
    results = agent.evaluate(MaskedEnv(), episodes=3, seed=0)
    assert results["episode_length"] == pytest.approx((4 + 1 + 6) / 3)


@pytest.mark.parametrize(
    "mode",
    [
        AutoresetMode.NEXT_STEP,
        *slow(AutoresetMode.SAME_STEP, AutoresetMode.DISABLED),
    ],
)
def test_environments_that_wait_for_others_take_allowed_actions(mode):
    """Whole episodes of different lengths: one environment waits for another.

    Steps of the waiting environment are discarded. They take place in an
    environment that has been reset and that allows other actions again.
    """

    def make(index):
        return MaskedEnv(lengths=((1, 9)[index],))

    kind = gymnasium.vector.SyncVectorEnv
    env = as_vector_env(
        kind(
            [functools.partial(make, i) for i in range(2)], autoreset_mode=mode
        )
    )
    agent, case = take("REINFORCE", env)
    rollouts = case.make_dataset(env, horizon=12, batch_size=8)
    rollouts.bind(agent)
    for _ in range(4):
        rollouts.collect()
    waiting, running = (len(each.taken) for each in env.env.envs)
    assert running == 4 * 9
    assert waiting >= running // 2
    assert agent.env_steps == 4 * (1 + 9)


# Acting.


@pytest.mark.parametrize("name", ["SAC", *slow(*sorted({*TAKERS} - {"SAC"}))])
def test_act_takes_no_forbidden_action(name):
    env = vector(MaskedEnv)
    agent, _ = take(name, env)
    batch = masked_batch()
    for deterministic in (False, True):
        actions = agent.act(batch, deterministic=deterministic)
        assert_allowed(env.action_space, batch, actions)
        for index in range(5):
            one = agent.act(row(batch, index), deterministic=deterministic)
            assert batch["action_mask"][index, one - 1] == 1
    # Greedy ones are the best of those allowed.
    scores = np.where(batch["action_mask"] > 0, agent(batch), -np.inf)
    actions = agent.act(batch, deterministic=True)
    np.testing.assert_array_equal(actions - 1, scores.argmax(axis=1))
    # Not what it would do if it could.
    free = agent(batch).numpy().argmax(axis=1)
    assert (actions - 1 != free).mean() > 0.3


def test_log_probs_and_entropies_are_over_allowed_actions():
    agent, _ = take("SAC", vector(MaskedEnv))
    batch = masked_batch(count=50)
    actions, log_prob = agent.act(batch, return_log_prob=True)
    logits, mask = agent(batch).numpy(), batch["action_mask"]
    normal = np.log((np.exp(logits) * mask).sum(axis=1))
    expected = np.take_along_axis(logits, actions[:, None] - 1, 1)[:, 0]
    np.testing.assert_allclose(log_prob, expected - normal, atol=1e-5)
    only = mask.sum(axis=1) == 1
    assert only.any()
    np.testing.assert_allclose(log_prob[only], 0.0, atol=1e-6)
    probs = np.exp(logits - normal[:, None]) * mask
    entropy = agent.distribution(batch).entropy()
    expected = normal - (probs * logits).sum(axis=1)
    np.testing.assert_allclose(entropy, expected, atol=1e-5)


@pytest.mark.parametrize("warm_up", [True, *slow(False)])
def test_random_actions_are_even_among_those_allowed(warm_up):
    """Warming up, and exploring with ε = 1."""
    mask = [1, 0, 1, 1, 0]
    env = vector(functools.partial(MaskedEnv, mask=mask), num_envs=4)
    agent, case = take("DQN", env, epsilon=1.0)
    sizes = {"steps_per_round": 2000, "capacity": 8000, "batch_size": 4}
    replay = case.make_dataset(env, **sizes)
    replay.bind(agent)
    if warm_up:
        replay.fill(4000)
    else:
        for _ in range(2):
            replay.collect()
    flags = np.array([f for each in env.env.envs for _, f in each.taken])
    count = len(flags)
    assert count > 2500
    expected = np.where(mask, 1 / 3, 0.0)
    # Four standard deviations.
    np.testing.assert_allclose(
        flags.mean(axis=0), expected, atol=4 * np.sqrt(2 / 9 / count)
    )
    assert flags[:, [1, 4]].sum() == 0


@pytest.mark.parametrize("name", ["multi_discrete", *slow("multi_binary")])
def test_several_choices_and_switches(name):
    space = MASKED_ACTIONS[name]
    env = vector(functools.partial(MaskedEnv, space), num_envs=2)
    agent, case = take("PPO", env)
    agent.fit(case.make_dataset(env, **case.one_update), verbose=0)
    batch = masked_batch(space, count=50)
    for deterministic in (False, True):
        actions = agent.act(batch, deterministic=deterministic)
        assert_allowed(space, batch, actions)
    # Something of everything that is allowed is done.
    flags = [flags_of(space, each) for each in agent.act(batch)]
    assert (np.sum(flags, axis=0) > 0).all()


# Learning.


def linear_q(values):
    """A network that gives the same values whatever it is shown."""
    inputs = keras.Input((3,), name="position")
    layer = keras.layers.Dense(len(values), kernel_initializer="zeros")
    network = keras.Model(inputs, layer(inputs))
    layer.set_weights([layer.get_weights()[0], np.array(values, "float32")])
    return network


def transition(next_mask, discount=0.5):
    """One transition, of action 0 and reward 1."""
    position = np.zeros((1, 3), "float32")
    following = np.array([next_mask], np.int8)
    return {
        "observation": {
            "position": position,
            "action_mask": np.ones_like(following),
        },
        "action": np.zeros(1, "int32"),
        "reward": np.ones(1, "float32"),
        "discount": np.full(1, discount, "float32"),
        "next_observation": {"position": position, "action_mask": following},
        "weight": np.ones(1, "float32"),
    }


def bind(agent, actions=3):
    env = MaskedEnv(spaces.Discrete(actions))
    agent.bind(env.observation_space, env.action_space)
    agent.compile(run_eagerly=True)
    return agent


@pytest.mark.parametrize(
    ("double", "targets"),
    [
        (False, {(1, 1, 1): 3.5, (1, 0, 1): 2.5, (1, 0, 0): 1.5}),
        (True, {(1, 1, 1): 2.5, (1, 1, 0): 3.5, (1, 0, 0): 1.5}),
    ],
)
def test_the_target_of_dqn_is_the_best_allowed_action(double, targets):
    # Q' = (1, 5, 3) values, γ = 1/2; Q = (0, 1, 2) chooses if it is double.
    # The end of a game allows nothing and is worth nothing.
    agent = bind(rl.DQN(linear_q([0, 1, 2]), double=double, loss="mse"))
    agent.target_network.set_weights(linear_q([1, 5, 3]).get_weights())
    for mask, target in {**targets, (0, 0, 0): 1.0}.items():
        batch = transition(mask, discount=0.5 * any(mask))
        terms = agent.objectives()["q"].terms(
            tf.nest.map_structure(tf.constant, batch)
        )
        # Q(s, a) is 0.
        message = f"{mask}, double={double}"
        assert terms["td_error"].numpy() == pytest.approx([target]), message
        loss = float(terms["loss"])
        assert loss == pytest.approx(0.5 * target**2), message


@pytest.mark.parametrize(
    ("distributional", "double"),
    [
        ("categorical", False),
        ("quantile", True),
        *slow(("categorical", True), ("quantile", False)),
    ],
)
def test_targets_of_distributions_are_over_allowed_actions(
    distributional, double
):
    """Two atoms each, at 0 and 10: the third action is best, the first worst.

    It is as if the actions that are forbidden were not there at all.
    """
    settings = {
        "distributional": distributional,
        "atoms": 2,
        "support": (0.0, 10.0),
        "double": double,
    }
    values = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    losses = {}
    for name, kept, mask in (
        ("masked", [0, 1, 2, 3, 4, 5], [1, 1, 0]),
        ("without", [0, 1, 2, 3], [1, 1]),
        ("free", [0, 1, 2, 3, 4, 5], [1, 1, 1]),
    ):
        agent = rl.DQN(linear_q([values[i] for i in kept]), **settings)
        bind(agent, len(mask))
        batch = tf.nest.map_structure(tf.constant, transition(mask))
        losses[name] = float(agent.objectives()["q"].terms(batch)["loss"])
    assert losses["masked"] == pytest.approx(losses["without"], rel=1e-5)
    if distributional == "quantile":
        assert losses["masked"] != pytest.approx(losses["free"], rel=1e-3)


def test_values_of_sac_are_over_allowed_actions():
    """V = Σ π (min Q - α log π) over two of three actions."""
    critics = [linear_q([1, 5, 3]), linear_q([2, 9, 2])]
    agent = bind(rl.SAC(linear_q([0, 7, np.log(3)]), critics, temperature=0.5))
    observation = transition([1, 0, 1])["next_observation"]
    value, entropy = agent.soft_value(agent.critics, observation, 0)
    # π = (1/4, 0, 3/4), min Q = (1, 5, 2).
    surprise = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    np.testing.assert_allclose(entropy, [surprise], rtol=1e-5)
    np.testing.assert_allclose(value, [1.75 + 0.5 * surprise], rtol=1e-5)
    np.testing.assert_allclose(
        agent._target_entropy(observation), [0.89 * np.log(2)], rtol=1e-5
    )


# Refusals.


def test_actions_that_cannot_be_forbidden_are_refused():
    class Numbers(MaskedEnv):
        def __init__(self):
            super().__init__()
            self.action_space = spaces.Box(-1.0, 1.0, (5,), np.float32)

    for make in (rl.PPO, rl.SAC, rl.TD3):
        with raises("each of the 0 options of the action space", "Box"):
            make.for_env(Numbers())
    for make, kind in (
        (rl.TD3, "discrete"),
        (rl.DQN, "multi_discrete"),
        (rl.SAC, "multi_binary"),
    ):
        space = MASKED_ACTIONS[kind]
        with raises(
            f"an action space that {make.__name__} can act in",
            type(space).__name__,
        ):
            make.for_env(MaskedEnv(space))


class WithMask(MaskedEnv):
    """Declares and gives masks of another space.

    Args:
        space: Of the masks.
    """

    def __init__(self, space):
        super().__init__()
        self.observation_space["action_mask"] = space
        self._dtype = space.dtype

    def _observation(self, over):
        observation = super()._observation(over)
        mask = observation["action_mask"].astype(self._dtype)
        return {**observation, "action_mask": mask}


def test_a_mask_of_another_length():
    for space in (
        spaces.Box(0, 1, (4,), np.int8),
        spaces.Box(0, 1, (6,), np.int8),
        spaces.Box(0, 1, (1, 5), np.int8),
        spaces.Discrete(5),
        spaces.Tuple([spaces.MultiBinary(5)]),
    ):
        kind = type(space).__name__
        with raises("a flag for each of the 5 options", kind):
            rl.PPO.for_env(WithMask(space))
    # Of an agent of own networks, too.
    agent = rl.DQN(linear_q([0.0] * 5))
    agent.compile(run_eagerly=True)
    env = WithMask(spaces.MultiBinary(7))
    with raises("each of the 5 options", r"MultiBinary\(7\)"):
        agent.fit(EVERY_AGENT["DQN"].make_dataset(env))
    assert agent.env_steps == 0


class Stuck(MaskedEnv):
    """Allows nothing at all from the third step of an episode on."""

    def _observation(self, over):
        observation = super()._observation(over)
        if self._step == 2 and self._lengths[0] > 2:
            observation["action_mask"][:] = 0
        return observation


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("PPO", AutoresetMode.NEXT_STEP),
        *slow(
            ("DQN", AutoresetMode.DISABLED),
            ("REINFORCE", AutoresetMode.SAME_STEP),
        ),
    ],
)
def test_where_nothing_is_allowed(name, mode):
    kind = gymnasium.vector.SyncVectorEnv
    makers = [
        functools.partial(MaskedEnv, lengths=(2,)),
        functools.partial(Stuck, lengths=(8,)),
    ]
    env = as_vector_env(kind(makers, autoreset_mode=mode))
    agent, case = take(name, env)
    before = weights_of(agent)
    # The first one ends with the same step, and nothing is wrong with that.
    with raises(
        "an action mask that allows at least one action",
        r"\[0, 0, 0, 0, 0\] from environment 1 of (Masked|Stuck|Sync)\w* "
        "at step 2",
    ):
        agent.fit(case.make_dataset(env), verbose=0)
    for old, new in zip(before, agent.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_where_nothing_is_allowed_outside_of_rounds():
    """Warm-up, evaluation and `act` refuse a mask without an allowed action."""
    agent, case = take("DQN", vector(Stuck))
    replay = case.make_dataset(vector(Stuck), warm_up=32)
    with raises("allows at least one action", "environment 0 of .* at step 2"):
        agent.fit(replay, verbose=0)
    agent, _ = take("PPO", MaskedEnv())
    with raises(
        "allows at least one action", "environment 0 of Stuck at step 2"
    ):
        agent.evaluate(Stuck(lengths=(8,)), episodes=1)
    batch = masked_batch(count=3)
    batch["action_mask"][1] = 0
    with raises("allows at least one action", "environment 1 of .*act"):
        agent.act(batch)
    with raises("allows at least one action", r"\[0, 0, 0, 0, 0\]"):
        agent.act(row(batch, 1))
    agent.act(row(batch, 2))


def test_one_choice_of_several_without_anything_allowed():
    space = MASKED_ACTIONS["multi_discrete"]
    agent, _ = take("PPO", MaskedEnv(space))
    batch = masked_batch(space, count=3)
    assert choices_of(space) == [3, 2, 4]
    batch["action_mask"][2, 3:5] = 0
    with raises("allows at least one action", "environment 2"):
        agent.act(batch)
    # Switches may all be forbidden: off is what is left.
    space = MASKED_ACTIONS["multi_binary"]
    agent, _ = take("PPO", MaskedEnv(space))
    batch = masked_batch(space, count=3)
    batch["action_mask"][:] = 0
    for deterministic in (False, True):
        assert not agent.act(batch, deterministic=deterministic).any()


@pytest.mark.parametrize(
    "space",
    [
        spaces.MultiBinary(5),
        *slow(
            spaces.Box(0.0, 1.0, (5,), np.float32),
            spaces.Box(0, 1, (5,), np.bool_),
            spaces.MultiDiscrete([2] * 5),
        ),
    ],
    ids=str,
)
def test_masks_are_flags_of_any_dtype(space):
    env = vector(functools.partial(WithMask, space))
    agent, case = take("PPO", env)
    rollouts = case.make_dataset(env)
    rollouts.bind(agent)
    rollouts.collect()
    batch = batch_of(env.observation_space, 4)
    batch["action_mask"][:] = np.array([[0, 1, 0, 0, 0]])
    assert agent.act(batch).tolist() == [2] * 4
    assert agent.policy.litert()(row(batch, 0)) == 2
