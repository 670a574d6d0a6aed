"""Exported files give the actions of `act` where Keras-RL2 is not installed.

They are run by TensorFlow, ONNX Runtime and LiteRT themselves, by the names of
the signature. See `test_parity` for the same by `PolicyFile`.
"""

import pickle
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from keras_rl2.policies.policy_function import input_specs
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.spaces.trees import with_leaves
from support.agents import KINDS
from support.export_cases import observations_of
from support.exported import export
from support.structured_envs import HYBRID_ACTIONS
from support.structured_envs import MASKED_ACTIONS
from support.structured_envs import OBSERVATIONS
from support.structured_envs import MaskedEnv
from support.structured_envs import StructuredEnv
from support.structured_envs import assert_trees_equal
from support.structured_envs import row

COUNT, STEPS = 30, 4
CLOSE = {"rtol": 1e-4, "atol": 1e-5}

ENVS = {
    "nested": lambda case: StructuredEnv(
        OBSERVATIONS["nested"], case.action_space
    ),
    "picture": lambda case: StructuredEnv(
        OBSERVATIONS["dict"], case.action_space
    ),
    "masked": lambda case: MaskedEnv(),
    "masked_choices": lambda case: MaskedEnv(MASKED_ACTIONS["multi_discrete"]),
    "masked_switches": lambda case: MaskedEnv(MASKED_ACTIONS["multi_binary"]),
    "hybrid_dict": lambda case: StructuredEnv(
        OBSERVATIONS["nested"], HYBRID_ACTIONS["dict"]
    ),
    "hybrid_tuple": lambda case: StructuredEnv(
        OBSERVATIONS["tuple"], HYBRID_ACTIONS["tuple"]
    ),
}
CELLS = {
    "none": lambda: None,
    "lstm": lambda: keras.layers.LSTMCell(6),
    "gru": lambda: keras.layers.GRUCell(5),
}


@pytest.fixture(scope="module")
def acting():
    """Agents by name, environment and memory, not to be changed."""
    made = {}

    def get(name, env, cell="none"):
        if (name, env, cell) not in made:
            case, memory = KINDS[name], CELLS[cell]()
            settings = {"memory": memory} if memory else {}
            agent = case.make.for_env(
                ENVS[env](case), hidden=(8,), seed=0, **settings
            )
            for network in agent.acting_networks:
                # New policies are nearly indifferent: make them sure.
                network.set_weights([2.0 * w for w in network.get_weights()])
            made[name, env, cell] = agent
        return made[name, env, cell]

    return get


def run_by_tensorflow(path):
    signature = tf.saved_model.load(str(path)).signatures["serving_default"]

    def run(given):
        given = {key: tf.constant(each) for key, each in given.items()}
        return {key: each.numpy() for key, each in signature(**given).items()}

    return run, set(signature.structured_input_signature[1])


def run_by_onnx(path):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(path)
    names = [each.name for each in session.get_outputs()]

    def run(given):
        return dict(zip(names, session.run(None, given), strict=True))

    return run, {each.name for each in session.get_inputs()}


def run_by_litert(path):
    runner = Interpreter(model_path=str(path)).get_signature_runner()
    return lambda given: runner(**given), set(runner.get_input_details())


RUNTIMES = {
    "tf_saved_model": run_by_tensorflow,
    "onnx": run_by_onnx,
    "litert": run_by_litert,
}


def as_act_has_it(agent, outputs):
    """Returns the outputs of a file in the form of `act`: trees and dtypes."""
    spec = action_spec(agent.action_space)
    if len(outputs) == 1:
        return np.asarray(*outputs.values()).astype(spec.dtype)
    names = [path.replace(".", "_") for path, _ in named_leaves(spec)]
    assert set(outputs) == set(names)
    tree = with_leaves(spec, [np.asarray(outputs[name]) for name in names])
    return map_leaves(lambda one, array: array.astype(one.dtype), spec, tree)


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("form", "name", "env", "cell"),
    [
        ("tf_saved_model", "PPO", "hybrid_dict", "lstm"),
        slow("onnx", "PPO", "masked", "gru"),
        slow("litert", "PPO", "hybrid_tuple", "gru"),
        slow("tf_saved_model", "TD3", "nested", "none"),
        slow("tf_saved_model", "PPO", "masked_switches", "gru"),
        slow("onnx", "SAC", "picture", "none"),
        slow("onnx", "PPO", "hybrid_tuple", "lstm"),
        slow("onnx", "PPO", "masked_choices", "lstm"),
        slow("litert", "DQN", "masked", "lstm"),
        slow("litert", "PPO", "hybrid_dict", "gru"),
    ],
)
def test_file_acts_and_remembers_as_its_agent(
    form, name, env, cell, acting, tmp_path
):
    agent = acting(name, env, cell)
    run, wanted = RUNTIMES[form](export(agent, tmp_path, form))
    names = [each.name for each in input_specs(agent.policy.observation_spec)]
    ours = theirs = agent.initial_state(COUNT)
    for step in range(STEPS):
        batch = observations_of(agent, COUNT, seed=step)
        found = agent.act(batch, ours or None, deterministic=True)
        action, ours = found if ours else (found, ours)
        given = dict(zip(names, leaves(batch), strict=True))
        given |= {f"state_{k}": each for k, each in enumerate(theirs)}
        # What a policy does not need may not be there.
        assert wanted <= set(given)
        outputs = run({key: given[key] for key in wanted})
        theirs = [outputs.pop(f"next_state_{k}") for k in range(len(ours))]
        assert_trees_equal(as_act_has_it(agent, outputs), action, **CLOSE)
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, **CLOSE)


def test_serve_takes_noise_after_all_observations(acting, tmp_path):
    agent = acting("DQN", "masked")
    agent.export(tmp_path / "policy", deterministic=False)
    policy = tf.saved_model.load(str(tmp_path / "policy"))
    noise, _ = agent.noise.draw(np.random.default_rng(0), (COUNT,))
    batch = observations_of(agent, COUNT)
    served = policy.serve(*map(tf.constant, leaves(batch)), noise).numpy()
    chosen = np.take_along_axis(batch["action_mask"], served[:, None] - 1, 1)
    assert chosen.min() == 1
    assert len(np.unique(served)) > 1


@pytest.mark.parametrize(
    ("name", "env"),
    [
        ("PPO", "hybrid_tuple"),
        slow("SAC", "picture"),
        slow("DQN", "masked"),
    ],
)
def test_litert_policy_acts_as_its_agent(name, env, acting):
    agent = acting(name, env)
    batch = observations_of(agent, COUNT)
    actions = agent.act(batch, deterministic=True)
    policy = pickle.loads(pickle.dumps(agent.policy.litert()))
    for index in range(COUNT):
        one = policy(row(batch, index))
        assert_trees_equal(one, row(actions, index), **CLOSE)
        for array, like in zip(leaves(one), leaves(actions), strict=True):
            assert array.dtype == like.dtype


_LOADING = """
import pickle, sys
policies = pickle.load(open(sys.argv[1], "rb"))
actions = [[policy(each) for each in rows] for policy, rows in policies]
pickle.dump(actions, open(sys.argv[2], "wb"))
assert "tensorflow" not in sys.modules
"""


@pytest.mark.slow
def test_litert_policy_needs_no_tensorflow(acting, tmp_path):
    given, expected = [], []
    for env in ("picture", "masked", "hybrid_dict"):
        agent = acting("PPO", env)
        batch = observations_of(agent, COUNT)
        actions = agent.act(batch, deterministic=True)
        rows = [row(batch, index) for index in range(COUNT)]
        given.append((agent.policy.litert(), rows))
        expected.append([row(actions, index) for index in range(COUNT)])
    paths = [tmp_path / "given", tmp_path / "found"]
    paths[0].write_bytes(pickle.dumps(given))
    subprocess.run([sys.executable, "-c", _LOADING, *paths], check=True)
    found = pickle.loads(paths[1].read_bytes())
    for ours, theirs in zip(expected, found, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert_trees_equal(other, one, **CLOSE)
