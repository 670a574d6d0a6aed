"""Each argument that cannot be meant is refused by us, in one form."""

import inspect
import operator
import traceback
import types
from pathlib import Path

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2 import callbacks
from support.agents import EVERY_AGENT
from support.agents import assert_equal_weights
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_replay
from support.agents import make_rollouts
from support.agents import weights_of
from support.plain_networks import plain_networks

# Values that cannot be meant, by what an argument asks for.

NAN, INF = float("nan"), float("inf")
COUNT = (0, -1, 2.5, "8", True, NAN)
FRACTION = (2, -0.1, 1.1, NAN, "0.5", True)
NUMBER = (NAN, INF, "1", True, [1.0])
WEIGHT = (-1.0, *NUMBER)
SCALE = (0.0, *WEIGHT)
CHOICE = ("x", 3, True)
NAME = (3, True)
PATH = (None, 3, True)
THING = (None, 3, "x")
NOISE = (-1.0, NAN, INF, "x", True)
SECONDS = (0, -1, NAN, "1", True)

FLAG = ("yes", "False", 2, NAN)
USUAL = {
    name: values
    for names, values in (
        (
            "num_envs horizon passes rounds_per_epoch episodes epochs capacity "
            "sequence_length steps_per_round total_steps updates_per_round "
            "n_step validation_freq target_every policy_delay num_samples "
            "max_skipped_updates count keep envs_per_worker "
            "every stride updates_per_epoch steps every_steps "
            "max_steps window frequency batch_size",
            COUNT,
        ),
        (
            "initial_epoch warm_up rounds_ahead burn_in max_lag histogram_freq "
            "updates",
            (-1, 2.5, "8", True),
        ),
        (
            "normalize_advantages double dueling learn_temperature run_eagerly "
            "warn auto_scale_loss deterministic laptop normalize_observations "
            "write_graph return_log_prob scale_rewards prioritized contextual "
            "write_hyper_parameters",
            FLAG,
        ),
        ("gamma gae_lambda beta ratio epsilon", FRACTION),
        (
            "value_clip_range target_kl entropy_coefficient value_coefficient "
            "clip_rho clip_c target_noise target_noise_clip "
            "alpha inverse_temperature tolerance output_gain clip_ratio",
            WEIGHT,
        ),
        ("temperature max_weight clip max_deviations", SCALE),
        ("timeout start_timeout seconds", SECONDS),
        (
            "distributional initialization format quantize reward "
            "aggregate workers log_settings",
            CHOICE,
        ),
        ("name source", NAME),
        ("directory path filepath log_dir", PATH),
        ("observation_space action_space", ("Box", 3)),
        ("actor critic q_network value_network network", ("mlp", 3)),
        ("state", ("x", 3)),
        ("theta exploration scale", NOISE),
        ("algorithm", ("PPPO", 3)),
        ("rollouts offline replay trial log", THING),
        ("seed", (-1, 0.5, "0", True)),
        ("env env_id", (None, 3, [1])),
        ("max_gradient_norm", (0.0, -1.0, NAN, "1", True)),
        ("tau", (0.0, 1.5, NAN, "x", True)),
        ("target_entropy", (*NUMBER, "auto")),
        ("initial_log_std", (*NUMBER, 100.0)),
        ("hidden filters", ("64", 64, (0,), (-1,), (1.5,), ("64",), (True,))),
        ("activation dtype", ("loud", 3, True)),
        ("observation", ("x", None, [["a", "b", "c"]], {"a": 1.0})),
        ("verbose", ("x", 3, -1)),
    )
    for name in names.split()
}
"""What cannot be meant by an argument of a name, wherever it is taken."""

# Calls by name: good arguments, and bad ones other than the usual. A string
# that begins with "=" stands for one of `things`.

VALUE_BASED = {
    "loss": CHOICE,
    "atoms": (0, -1, 2.5, "51", True),
    "support": (
        *((1.0, -1.0), (0.0, 0.0), (NAN, 1.0), (-1.0, INF)),
        *((1.0,), ("a", "b"), "ab", 5),
    ),
}
AGENTS = {
    "PPO": {"actor": ("mlp", None, 3), "gama": (0.9,)},
    "DQN": {"q_network": ("mlp", None, 3), **VALUE_BASED},
    "DiscreteCQL": VALUE_BASED,
    "SAC": {"critic": ("mlp", None, 3)},
    "IQL": {
        "value_network": ("mlp", None, 3),
        "expectile": (0.0, 1.0, NAN, "0.7", True),
    },
}
DATASET = {"batch_size": (*COUNT, "all")}
LITERT = {"filepath": "nowhere.tflite", "format": "litert"}
CARTPOLE = {"algorithm": "PPO", "environment": "CartPole-v1"}
OF_TRAINING = {"env": (3,), "preset": ("NoSuch-v0", None, 3)}

CALLS = {
    "PPO.for_env": (
        {"env": "=env"},
        {"dtype": ()},
    ),
    "=sac.compile": (
        {},
        {
            "optimizer": ("adm", 3, True, None, 0.1),
            "critic_optimizer": ("adm", 3, True),
            "steps_per_execution": (*COUNT, "all"),
            "jit_compile": ("yes", 3, NAN),
            "lr": (0.1,),
            "loss": ("mse",),
            "metrics": (["mse"],),
        },
    ),
    "=agent.fit": (
        {"x": "=rollouts", "verbose": 0},
        {
            "x": (None, 3, [1], "CartPole-v1"),
            "verbose": ("x", 3, -1, 0.5, None, NAN),
            "callbacks": ("x", 3, [3], ["x"], [keras.callbacks.History]),
            "validation_data": (3, [1]),
            "shuffle": ("x",),
            "epoch": (3,),
        },
    ),
    "=agent.evaluate": ({"x": "=env"}, {"x": (None, 3, [1]), "episode": (3,)}),
    "=agent.act": (
        {"observation": np.zeros(3)},
        {"deterministic": (), "return_log_prob": (), "state": ("x",)},
    ),
    "RolloutDataset": ({"env": "=env"}, DATASET),
    "ReplayDataset": ({"env": "=env"}, {**DATASET, "alpha": (), "beta": ()}),
    "EvaluationDataset": ({"env": "=env"}, {}),
    "OfflineDataset": (
        {"source": "=arrays"},
        {
            "source": (None, 3),
            "observation_space": (),
            "action_space": (),
        },
    ),
    "record": (
        {"policy": "=agent", "env": "=env", "steps": 4},
        {"policy": ("x", 3), "env": (None, 3), "path": (), "step": (3,)},
    ),
    "LocalWorkers": ({"count": 2}, {}),
    "RayWorkers": ({"count": 2}, {}),
    # Files.
    "load": ({"path": "nowhere.keras"}, {}),
    "=agent.export": (
        {"filepath": "nowhere"},
        {
            "format": (None, *CHOICE),
            "representative": NAME,
            "input_signature": ("x", 3),
            "verbose": ("x", 3),
            "fromat": ("onnx",),
            "deterministic": (),
        },
    ),
    "=agent.export to LiteRT": (
        LITERT,
        {
            "filepath": ("nowhere", "nowhere.onnx"),
            "verbose": (),
            "deterministic": (),
        },
    ),
    "=agent.export of int8": (
        {**LITERT, "quantize": "int8", "representative": np.zeros((9, 3))},
        {
            "representative": (None, 3, True, np.zeros(3), [["a"] * 3]),
            "verbose": (),
            "deterministic": (),
        },
    ),
    "=agent.check_export": (
        {"filepath": "=exported", "env": "=env", "episodes": 1},
        {"loss": WEIGHT, "deterministic": (True,), "episode": (3,)},
    ),
    "PolicyFile": (
        {"path": "=exported"},
        {"trusted": (None, "x", 3)},
    ),
    "=policy.act": (
        {"observation": np.zeros(3)},
        {
            "observation": ("x", None, [["a", "b", "c"]], np.zeros(2)),
            "state": (),
            "noise": (3, "x", np.zeros(3)),
        },
    ),
    # Trainings.
    "presets.SearchSpace": (
        {"algorithm": "PPO", "ranges": {"agent.gamma": [0.9, 0.99]}},
        {"ranges": tuple({"agent.gamma": each} for each in (0.9, [0.9]))},
    ),
    "presets.find": (CARTPOLE, {"environment": ("Cart", 3)}),
    "presets.default": (CARTPOLE, {"environment": (3,)}),
    "presets.Preset": (
        CARTPOLE,
        {
            "environment": ("", 3),
            "total_steps": USUAL["updates"],
            "agent": (3, {"gamma": "x"}, {"gamma": NAN}),
        },
    ),
    "PPO.from_preset": ({"preset": "CartPole-v1"}, OF_TRAINING),
    "Training.from_preset": (
        {"preset": "=preset"},
        {**OF_TRAINING, "preset": ("CartPole-v1", None, 3), "data": (3,)},
    ),
    "=training.run": ({}, {"verbose": ("x", 3), "callbacks": ("x", [3])}),
    # Callbacks.
    "callbacks.Checkpoint": (
        {"directory": "nowhere"},
        {"every_seconds": SECONDS[1:]},
    ),
    "callbacks.Diagnostics": ({}, {}),
    "callbacks.Evaluation": ({"episodes": "=episodes"}, {"episodes": THING}),
    "callbacks.OptunaPruning": ({"trial": "=trial"}, {}),
    "callbacks.RecordVideo": (
        {"env": "CartPole-v1", "directory": "nowhere"},
        {"env": (None, 3), "log_dir": NAME, "fps": (*SECONDS, INF)},
    ),
    "callbacks.RolloutRefresh": ({"rollouts": "=rollouts"}, {}),
    "callbacks.TargetNetworkSync": ({}, {"source": ()}),
    "callbacks.TensorBoard": ({"log_dir": "nowhere"}, {}),
    "callbacks.Tracker": ({"log": print}, {}),
    # Environments and noise.
    "envs.RewardScaler": ({"gamma": 0.9, "num_envs": 2}, {"epsilon": SCALE}),
    "envs.as_vector_env": ({"env": "CartPole-v1"}, {"env": (None, 3)}),
    "envs.make_env": ({"env_id": "CartPole-v1"}, {"env_id": (None, 3)}),
    # The usual alone.
    "read_manifest": ({}, {}),
    "=policy.initial_state": ({}, {}),
    "presets.read": ({}, {}),
    "callbacks.Progress": ({}, {}),
    "exploration.GaussianNoise": ({}, {}),
    "exploration.OrnsteinUhlenbeckNoise": (
        {},
        {"dt": (0.0, *NOISE[:3]), "theta": NOISE[:3]},
    ),
    "exploration.exploration_noise": ({}, {"x": NOISE}),
}


@pytest.fixture
def things(tmp_path):
    """The objects whose methods are called, with valid arguments."""
    env = make_env()
    agent = make_eager_agent(EVERY_AGENT["PPO"], env)
    exported = tmp_path / "policy.tflite"
    agent.export(exported, format="litert")
    arrays = {
        "observations": np.zeros((8, 3), np.float32),
        "actions": np.zeros(8, np.int64),
        "rewards": np.zeros(8),
        "terminations": np.arange(8) % 4 == 3,
        "truncations": np.zeros(8, bool),
    }
    rollouts, preset = make_rollouts(env), rl.presets.find(**CARTPOLE)
    return types.SimpleNamespace(
        env=env,
        agent=agent,
        sac=make_eager_agent(EVERY_AGENT["SAC"], make_env("act_box")),
        rollouts=rollouts,
        replay=make_replay(env),
        arrays=arrays,
        offline=rl.OfflineDataset(arrays, batch_size=4),
        episodes=rl.EvaluationDataset(env, 1),
        preset=preset,
        training=rl.Training(preset, agent, rollouts),
        trial=types.SimpleNamespace(
            report=print, should_prune=bool, number=0, set_user_attr=print
        ),
        exported=exported,
        policy=rl.PolicyFile(exported),
    )


def calls_of(things):
    """Yields names, functions, and arguments of which one is bad."""

    def good(value):
        named = isinstance(value, str) and value.startswith("=")
        return getattr(things, value[1:]) if named else value

    tried = set()
    for name, case in EVERY_AGENT.items():
        # What the bases take is tried in full with one agent.
        usual = {
            key: USUAL.get(key, ())[: 1 if key in tried else None]
            for key in case.make.argument_names()
        }
        tried.update(usual)
        if "critic" in usual and not case.on_policy:
            usual["critic"] = ("mlp", None, 3)
        wrong = {**usual, **AGENTS.get(name, {})}
        yield name, case.make, plain_networks(case), wrong
    for name, (arguments, others) in CALLS.items():
        path = name.split(" ")[0]
        root = things if path.startswith("=") else rl
        function = operator.attrgetter(path.removeprefix("="))(root)
        arguments = {key: good(value) for key, value in arguments.items()}
        taken = inspect.signature(function).parameters
        count = 1 if name in PASSING_ON else None
        wrong = {key: USUAL.get(key, ())[:count] for key in taken}
        yield name, function, arguments, {**wrong, **others}


PASSING_ON = {"PPO.for_env", "record"}
"""What passes most arguments on to what is tried in full."""

OURS = {
    Path(rl.__file__).parent.resolve(),
    Path(callbacks.__file__).parent.resolve(),
}


def complaint(call, arguments):
    """Returns the fault in the refusal of a call, or None."""
    try:
        call(**arguments)
    except (TypeError, ValueError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1].filename
        text = str(error)
        if not OURS & set(Path(last).resolve().parents):
            return f"raised in {last}: {text}"
        if "Expected" not in text or "Received" not in text:
            return f"said {text}"
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "said nothing"


def test_invalid_arguments_are_refused(things, tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    complaints, refused = [], 0
    for name, function, arguments, wrong in calls_of(things):
        for key, value in ((k, each) for k in wrong for each in wrong[k]):
            said = complaint(function, {**arguments, key: value})
            if said:
                complaints.append(f"{name}({key}={value!r}): {said}")
            refused += not said
    assert not complaints, "\n".join(complaints)
    assert refused > 1100
    # And leaves nothing behind.
    assert list(here.iterdir()) == []


def test_refused_calls_leave_the_agent_unchanged():
    agent = make_eager_agent(EVERY_AGENT["PPO"], make_env())
    rollouts = make_rollouts(make_env())
    before, optimizer = weights_of(agent), agent.optimizer
    for call in (
        lambda: agent.fit(rollouts, callbacks=["x"]),
        lambda: agent.compile(jit_compile="yes"),
        lambda: agent.evaluate(make_env(), episodes=NAN),
    ):
        with pytest.raises(ValueError, match=r"Expected .*Received"):
            call()
    assert agent.env_steps == 0
    assert agent.optimizer is optimizer
    assert_equal_weights(agent, before)


def test_numbers_of_numpy_are_as_good():
    env = make_env()
    agent = rl.PPO.for_env(
        env,
        hidden=np.array([8]),
        gamma=np.float32(0.9),
        clip_ratio=1,
        normalize_advantages=np.True_,
        seed=np.int64(3),
    )
    agent.compile(run_eagerly=np.True_, steps_per_execution=np.int64(1))
    rollouts = make_rollouts(env, horizon=np.int32(8), passes=np.uint8(1))
    history = agent.fit(rollouts, epochs=np.int64(1), verbose=False)
    assert history.epoch == [0]
    replay = rl.ReplayDataset(
        env, prioritized=True, beta=1, alpha=np.float64(0)
    )
    assert (replay.alpha, replay.beta) == (0, 1)
    agent.act(np.zeros(3), deterministic=np.True_)
    assert agent.evaluate(env, episodes=np.int64(1))["episode_length"] == 5
