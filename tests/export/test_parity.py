"""An exported policy acts as its agent does, greedily and given noise."""

import numpy as np
import pytest

import keras_rl2 as rl
from support.agents import EVERY_AGENT
from support.agents import KINDS
from support.agents import make_agent
from support.agents import make_env
from support.export_cases import compare
from support.export_cases import env_of
from support.export_cases import observations_of
from support.exported import export

# Each kind, each format and each option at least once.
CASES = [
    ("PPO", "tf_saved_model", "several actions", False),
    ("PPO", "onnx", "memory", True),
    ("SAC", "tf_saved_model", "trees", True),
    ("TD3", "onnx", "normalized", True),
    ("DQN", "tf_saved_model", "masks", True),
    ("DQN", "onnx", "plain", False),
    ("DQN", "litert", "pictures", True),
]
MORE_CASES = [
    ("PPO", "litert", "masks", False),
    ("SAC", "litert", "normalized", True),
    ("TD3", "tf_saved_model", "plain", False),
    ("TD3", "litert", "trees", True),
    ("PPO", "litert", "several actions", True),
    ("PPO", "litert", "memory", False),
    ("SAC", "onnx", "masks", False),
    ("SAC", "litert", "pictures", True),
    ("TD3", "onnx", "trees", True),
    ("DQN", "tf_saved_model", "memory", False),
    ("DQN", "onnx", "normalized", True),
]


def assert_alike(agent, path):
    policy = rl.PolicyFile(path, trusted=True)
    difference, disagreements = compare(agent, policy)
    assert difference < 1e-4
    assert disagreements == 0.0


@pytest.mark.parametrize(
    ("name", "form", "option", "deterministic"),
    [
        *CASES,
        *(pytest.param(*each, marks=pytest.mark.slow) for each in MORE_CASES),
    ],
)
def test_export_acts_as_its_agent(
    name, form, option, deterministic, agents, tmp_path
):
    agent = agents(option, name)
    path = export(agent, tmp_path, form, deterministic=deterministic)
    assert_alike(agent, path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [each for each in EVERY_AGENT if each not in KINDS]
)
def test_an_export_of_every_agent_acts_equally(name, agents, tmp_path):
    agent = agents("plain", name)
    assert_alike(agent, export(agent, tmp_path, "litert"))


def test_noise_of_the_agents_own_seed_gives_its_own_samples(tmp_path):
    """The samples are those of `act`, with the seed of the constructor."""
    case = KINDS["PPO"]
    agent = make_agent(case, env_of("plain", case), seed=7)
    path = export(agent, tmp_path, "litert", deterministic=False)
    policy = rl.PolicyFile(path)
    batch = observations_of(agent)
    noise, _ = agent.noise.draw(np.random.default_rng(7), (len(batch),))
    assert policy.act(batch, noise=noise).tolist() == agent.act(batch).tolist()


DISTRIBUTIONS = {
    "discrete": ("PPO", "act_discrete"),
    "multi_binary": ("PPO", "act_multi_binary"),
    "box": ("PPO", "act_box"),
    "squashed": ("SAC", "act_box"),
    "epsilon": ("DQN", "act_discrete"),
}


@pytest.mark.parametrize(
    "kind",
    [
        "discrete",
        "epsilon",
        pytest.param("squashed", marks=pytest.mark.slow),
        pytest.param("multi_binary", marks=pytest.mark.slow),
        pytest.param("box", marks=pytest.mark.slow),
    ],
)
def test_noise_as_the_manifest_names_it_gives_the_distribution(kind, tmp_path):
    """The test draws the noise by the manifest, not with the agent."""
    name, pair = DISTRIBUTIONS[kind]
    case = KINDS[name]
    settings = {"epsilon": 0.3} if name == "DQN" else {}
    agent = make_agent(case, make_env(pair), **settings)
    path = export(agent, tmp_path, "litert", deterministic=False)
    policy = rl.PolicyFile(path)
    count = 20_000
    (part,) = policy.manifest["noise"]
    noise = drawn(part, np.random.default_rng(0), count)
    one = observations_of(agent, 1)
    batch = np.repeat(one, count, axis=0)
    found = np.asarray(policy.act(batch, noise=noise), np.float64)
    # Five standard errors: once in a million without a fault.
    if name == "DQN":
        greedy = agent.act(one, deterministic=True)[0]
        share = np.mean(found != greedy)
        expected = 0.3 * 2 / 3
        error = np.sqrt(expected * (1 - expected) / count)
        assert share == pytest.approx(expected, abs=5 * error)
        return
    policy_of_one = agent.distribution(one)
    if kind == "discrete":
        values = np.arange(3)
        expected = np.exp(
            [policy_of_one.log_prob(np.array([v], "int32"))[0] for v in values]
        )
        shares = np.mean(found[:, None] == values, axis=0)
        error = np.sqrt(expected * (1 - expected) / count)
        assert (np.abs(shares - expected) < 5 * error).all()
        return
    samples = agent.sample_action(
        batch, agent.noise.draw(np.random.default_rng(1), (count,))[0]
    )
    samples = np.asarray(agent.policy.head.to_environment(samples), np.float64)
    error = np.sqrt(2 * samples.var(axis=0) / count) + 1e-9
    assert (np.abs(found.mean(axis=0) - samples.mean(axis=0)) < 5 * error).all()
    np.testing.assert_allclose(found.std(0), samples.std(0), rtol=0.05)


def drawn(part, generator, count):
    """Draws noise as docs/export.md says, by NumPy alone."""
    shape = count, part["size"]
    if part["kind"] == "gumbel":
        noise = generator.gumbel(size=shape)
    elif part["kind"] == "logistic":
        noise = generator.logistic(size=shape)
    elif part["kind"] == "normal":
        noise = generator.normal(size=shape)
    else:
        assert part["kind"] == "epsilon_greedy"
        explores = generator.random(count) < part["epsilon"]
        forced = generator.integers(part["size"], size=count)
        noise = np.zeros(shape)
        noise[explores, forced[explores]] = 1e30
    return noise.astype("float32")


def test_onnx_names_its_batch_axis_without_warnings(tmp_path, recwarn):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("tf2onnx")
    agent = rl.PPO.for_env("CartPole-v1", hidden=(4,), seed=0)
    agent.export(tmp_path / "policy.onnx", format="onnx")
    graph = onnx.load(tmp_path / "policy.onnx").graph
    for each in (*graph.input, *graph.output):
        assert each.type.tensor_type.shape.dim[0].dim_param == "batch"
    assert not [w for w in recwarn if w.category is FutureWarning]
