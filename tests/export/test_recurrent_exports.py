"""Exported policies that remember give a state, and act as `act` does."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl
from support.structured_envs import MaskedEnv

CELLS = {
    "lstm": lambda: keras.layers.LSTMCell(6),
    "gru": lambda: keras.layers.GRUCell(5),
    "attention": lambda: rl.networks.WindowAttentionCell(4, window=3, heads=2),
}
AGENTS = {
    "PPO": rl.PPO,
    "A2C": rl.A2C,
    "REINFORCE": rl.REINFORCE,
    "DQN": rl.DQN,
}
ENVS = {"vector": lambda: "CartPole-v1", "masked": MaskedEnv}
STEPS = 5
# In files of the other agents `tests/exported` looks at an LSTM of vectors.
CASES = [
    (name, cell, env)
    for name in AGENTS
    for cell in CELLS
    for env in ENVS
    if name == "PPO" or (cell, env) != ("lstm", "vector")
]


@pytest.fixture(scope="module")
def acting():
    """Agents with what they see, do and remember, made once."""
    made = {}

    def get(name, cell, env):
        if (name, cell, env) not in made:
            agent = AGENTS[name].for_env(
                ENVS[env](), memory=CELLS[cell](), seed=0
            )
            (network,) = agent.acting_networks
            # New policies are nearly indifferent: make them sure.
            network.set_weights([2.0 * w for w in network.get_weights()])
            made[name, cell, env] = agent, play(agent, env)
        return made[name, cell, env]

    return get


def play(agent, env):
    """Returns observations, greedy actions and states, one after the other."""
    state, played = agent.initial_state(1), []
    if env == "masked":
        player = MaskedEnv(lengths=(STEPS + 1,))
        observation, _ = player.reset(seed=0)
    for step in range(STEPS):
        if env == "vector":
            generator = np.random.default_rng(step)
            observation = generator.normal(size=4).astype("float32")
        batch = keras.tree.map_structure(
            lambda leaf: np.asarray(leaf)[None], observation
        )
        action, state = agent.act(batch, state, deterministic=True)
        played.append((batch, action, state))
        if env == "masked":
            observation, *_ = player.step(int(action[0]))
    return played


def saved_model(agent, folder):
    agent.export(folder / "policy")
    signature = tf.saved_model.load(str(folder / "policy")).signatures
    serve = signature["serving_default"]

    def run(given):
        outputs = serve(
            **{key: tf.constant(each) for key, each in given.items()}
        )
        return {key: each.numpy() for key, each in outputs.items()}

    return run, set(serve.structured_input_signature[1])


def onnx(agent, folder):
    pytest.importorskip("tf2onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    agent.export(folder / "policy.onnx", format="onnx")
    session = onnxruntime.InferenceSession(folder / "policy.onnx")
    names = [each.name for each in session.get_outputs()]

    def run(given):
        return dict(zip(names, session.run(None, given), strict=True))

    return run, {each.name for each in session.get_inputs()}


def litert(agent, folder):
    from ai_edge_litert.interpreter import Interpreter

    agent.export(folder / "policy.tflite", format="litert")
    interpreter = Interpreter(model_path=str(folder / "policy.tflite"))
    runner = interpreter.get_signature_runner("serving_default")
    return lambda given: runner(**given), set(runner.get_input_details())


@pytest.mark.spread(export=[saved_model, onnx], name=["PPO", "DQN"])
@pytest.mark.parametrize(("name", "cell", "env"), CASES)
@pytest.mark.parametrize("export", [saved_model, onnx, litert])
def test_a_file_acts_and_remembers_alike(
    export, name, cell, env, acting, tmp_path
):
    agent, played = acting(name, cell, env)
    run, wanted = export(agent, tmp_path)
    state = agent.initial_state(1)
    for observation, action, after in played:
        given = {f"state_{k}": each for k, each in enumerate(state)}
        if isinstance(observation, dict):
            given |= {f"observation_{k}": v for k, v in observation.items()}
        else:
            given["observation"] = observation
        # What a policy does not need may not be there.
        assert wanted <= set(given)
        outputs = run({key: given[key] for key in wanted})
        assert outputs["action"].tolist() == action.tolist()
        state = [outputs[f"next_state_{k}"] for k in range(len(after))]
        for ours, theirs in zip(after, state, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
