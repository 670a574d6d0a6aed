"""Exported policies of trees and of masks give the actions of `act`."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from keras_rl2.policies.policy_function import input_specs
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.spaces.trees import with_leaves
from support.agents import EVERY_AGENT
from support.agents import make_agent
from support.structured_envs import HYBRID_ACTIONS
from support.structured_envs import MASKED_ACTIONS
from support.structured_envs import OBSERVATIONS
from support.structured_envs import MaskedEnv
from support.structured_envs import StructuredEnv
from support.structured_envs import assert_trees_equal
from support.structured_envs import batch_of
from support.structured_envs import masked_batch
from support.structured_envs import row

COUNT = 30

#: Environments by name, with the agents that can act in them.
ENVS = {
    "nested": (
        lambda case: StructuredEnv(OBSERVATIONS["nested"], case.action_space),
        tuple(EVERY_AGENT),
    ),
    "tuple": (
        lambda case: StructuredEnv(OBSERVATIONS["tuple"], case.action_space),
        tuple(EVERY_AGENT),
    ),
    "picture": (
        lambda case: StructuredEnv(OBSERVATIONS["dict"], case.action_space),
        tuple(EVERY_AGENT),
    ),
    "masked": (
        lambda case: MaskedEnv(),
        ("PPO", "A2C", "REINFORCE", "DQN", "SAC"),
    ),
    "masked_choices": (
        lambda case: MaskedEnv(MASKED_ACTIONS["multi_discrete"]),
        ("PPO", "A2C", "REINFORCE"),
    ),
    "masked_switches": (
        lambda case: MaskedEnv(MASKED_ACTIONS["multi_binary"]),
        ("PPO", "A2C", "REINFORCE"),
    ),
    "hybrid_dict": (
        lambda case: StructuredEnv(
            OBSERVATIONS["nested"], HYBRID_ACTIONS["dict"]
        ),
        ("PPO", "A2C", "REINFORCE"),
    ),
    "hybrid_tuple": (
        lambda case: StructuredEnv(
            OBSERVATIONS["tuple"], HYBRID_ACTIONS["tuple"]
        ),
        ("PPO", "A2C", "REINFORCE"),
    ),
}
KINDS = ["PPO", "DQN", "SAC"]
CASES = [(env, name) for env, (_, names) in ENVS.items() for name in names]
# As other programs read them. In files of all agents `tests/exported` looks at
# what these two do.
READ_BY_OTHERS = [
    (env, name)
    for env, name in CASES
    if name in KINDS or env not in ("nested", "masked")
]


@pytest.fixture(scope="module")
def acting():
    """Agents, observations and greedy actions, by environment and agent."""
    made = {}

    def get(env_name, name):
        if (env_name, name) not in made:
            make, _ = ENVS[env_name]
            agent = make_agent(EVERY_AGENT[name], make(EVERY_AGENT[name]))
            for network in agent.acting_networks:
                # New policies are nearly indifferent: make them sure.
                network.set_weights([2.0 * w for w in network.get_weights()])
            if agent.is_masked:
                batch = masked_batch(agent.action_space, COUNT)
            else:
                batch = batch_of(agent.observation_space, COUNT)
            batch = stored(agent, batch)
            actions = agent.act(batch, deterministic=True)
            made[env_name, name] = agent, batch, actions
        return made[env_name, name]

    return get


def stored(agent, batch):
    return map_leaves(
        lambda spec, array: array.astype(spec.dtype),
        agent.observation_spec,
        batch,
    )


def as_act_has_it(agent, served):
    """Returns what a file gave as `act` gives it: trees, and dtypes."""
    spec = action_spec(agent.action_space)
    if not isinstance(served, dict):
        return np.asarray(served).astype(spec.dtype)
    names = [path.replace(".", "_") for path, _ in named_leaves(spec)]
    assert set(served) == set(names)
    tree = with_leaves(spec, [np.asarray(served[name]) for name in names])
    return map_leaves(lambda one, array: array.astype(one.dtype), spec, tree)


@pytest.mark.spread(
    env=["nested", "masked", "hybrid_dict"], name=["DQN", "SAC"]
)
@pytest.mark.parametrize(("env", "name"), READ_BY_OTHERS)
def test_saved_model(env, name, acting, tmp_path):
    agent, batch, actions = acting(env, name)
    agent.export(tmp_path / "policy")
    policy = tf.saved_model.load(str(tmp_path / "policy"))
    served = policy.serve(*map(tf.constant, leaves(batch)))
    assert_trees_equal(
        as_act_has_it(agent, served), actions, rtol=1e-5, atol=1e-6
    )
    # Inputs are named, so that nobody has to know their order.
    signature = policy.signatures["serving_default"]
    names = [spec.name for spec in input_specs(agent.observation_spec)]
    _, keywords = signature.structured_input_signature
    assert set(keywords) == set(names)
    named = signature(
        **dict(zip(names, map(tf.constant, leaves(batch)), strict=True))
    )
    assert len(named) == len(leaves(actions))


@pytest.mark.spread(
    env=["picture", "tuple", "masked", "hybrid_tuple"], name=KINDS
)
@pytest.mark.parametrize(("env", "name"), CASES)
def test_litert_policy(env, name, acting):
    agent, batch, actions = acting(env, name)
    policy = pickle.loads(pickle.dumps(agent.litert_policy()))
    for index in range(COUNT):
        one = policy(row(batch, index))
        assert_trees_equal(one, row(actions, index), rtol=1e-4, atol=1e-5)
        for array, like in zip(leaves(one), leaves(actions), strict=True):
            assert array.dtype == like.dtype


@pytest.mark.spread(env=["nested", "masked"], name=["PPO"])
@pytest.mark.parametrize(("env", "name"), READ_BY_OTHERS)
def test_onnx(env, name, acting, tmp_path):
    pytest.importorskip("tf2onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    agent, batch, actions = acting(env, name)
    path = tmp_path / "policy.onnx"
    agent.export(path, format="onnx")
    session = onnxruntime.InferenceSession(path)
    names = [spec.name for spec in input_specs(agent.observation_spec)]
    given = dict(zip(names, leaves(batch), strict=True))
    # What a policy does not need may not be there.
    wanted = {each.name for each in session.get_inputs()}
    assert wanted <= set(given)
    served = session.run(None, {key: given[key] for key in wanted})
    outputs = [each.name for each in session.get_outputs()]
    if len(leaves(actions)) == 1:
        (found,) = served
        np.testing.assert_allclose(
            found, leaves(actions)[0], rtol=1e-4, atol=1e-5
        )
        return
    by_name = dict(zip(outputs, served, strict=True))
    assert_trees_equal(
        as_act_has_it(agent, by_name), actions, rtol=1e-4, atol=1e-5
    )


@pytest.mark.spread(env=["hybrid_dict"], name=["PPO"])
@pytest.mark.parametrize(("env", "name"), READ_BY_OTHERS)
def test_litert_file(env, name, acting, tmp_path):
    from ai_edge_litert.interpreter import Interpreter

    agent, batch, actions = acting(env, name)
    path = tmp_path / "policy.tflite"
    agent.export(path, format="litert")
    runner = Interpreter(model_path=str(path)).get_signature_runner(
        "serving_default"
    )
    names = [spec.name for spec in input_specs(agent.observation_spec)]
    given = dict(zip(names, leaves(batch), strict=True))
    wanted = set(runner.get_input_details())
    assert wanted <= set(given)
    served = runner(**{key: given[key] for key in wanted})
    if len(leaves(actions)) == 1:
        (found,) = served.values()
        np.testing.assert_allclose(
            found, leaves(actions)[0], rtol=1e-4, atol=1e-5
        )
        return
    assert_trees_equal(
        as_act_has_it(agent, served), actions, rtol=1e-4, atol=1e-5
    )


@pytest.mark.spread(name=["DQN"])
@pytest.mark.parametrize("name", ["PPO", "DQN"])
def test_noise_is_an_input_after_all_others(name, acting, tmp_path):
    agent, batch, _ = acting("masked", name)
    agent.export(tmp_path / "policy", deterministic=False)
    policy = tf.saved_model.load(str(tmp_path / "policy"))
    noise, _ = agent.draw_noise(np.random.default_rng(0), (COUNT,))
    served = policy.serve(*map(tf.constant, leaves(batch)), noise).numpy()
    mask = batch["action_mask"]
    chosen = np.take_along_axis(mask, served[:, None] - 1, 1)
    assert chosen.min() == 1
    assert len(np.unique(served)) > 1


_LOADING = """
import pickle, sys
policy, observations = pickle.load(open(sys.argv[1], "rb"))
actions = [policy(each) for each in observations]
pickle.dump(actions, open(sys.argv[2], "wb"))
assert "tensorflow" not in sys.modules
"""


@pytest.mark.slow
@pytest.mark.parametrize("env", ["picture", "masked", "hybrid_dict"])
def test_litert_policy_in_a_process_without_tensorflow(env, acting, tmp_path):
    agent, batch, actions = acting(env, "PPO")
    observations = [row(batch, index) for index in range(COUNT)]
    given = pickle.dumps((agent.litert_policy(), observations))
    (tmp_path / "given").write_bytes(given)
    paths = [str(tmp_path / "given"), str(tmp_path / "found")]
    subprocess.run([sys.executable, "-c", _LOADING, *paths], check=True)
    found = pickle.loads((tmp_path / "found").read_bytes())
    for index, one in enumerate(found):
        assert_trees_equal(one, row(actions, index), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("how", ["saved_model", "litert"])
def test_exported_play_takes_nothing_forbidden(how, acting, tmp_path):
    """`MaskedEnv` raises where it does."""
    agent, _, _ = acting("masked", "PPO")
    if how == "litert":
        policy = agent.litert_policy()
    else:
        agent.export(tmp_path / "policy")
        loaded = tf.saved_model.load(str(tmp_path / "policy"))

        def policy(observation):
            batch = [tf.constant(each)[None] for each in leaves(observation)]
            return int(loaded.serve(*batch)[0])

    env = MaskedEnv(lengths=(20,))
    for seed in range(5):
        observation, _ = env.reset(seed=seed)
        over = False
        while not over:
            observation, _, over, *_ = env.step(policy(observation))
    assert len(env.taken) == 100
