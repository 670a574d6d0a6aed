"""Calls of the public functions with an argument that cannot be meant."""

import functools
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import keras_rl2 as rl
from keras_rl2.spaces.array_spec import ArraySpec
from support import bad_arguments as args
from support import bad_exports
from support import bad_values as bad
from support.agents import EVERY_AGENT
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_replay
from support.agents import make_rollouts
from support.plain_networks import plain_networks


class _Things:
    """What bad calls are made on, made when first one needs it."""

    @functools.cached_property
    def env(self) -> Any:
        return make_env()

    @functools.cached_property
    def agent(self) -> Any:
        return make_eager_agent(EVERY_AGENT["PPO"], self.env)

    @functools.cached_property
    def sac(self) -> Any:
        return make_eager_agent(EVERY_AGENT["SAC"], make_env("act_box"))

    @functools.cached_property
    def rollouts(self) -> Any:
        return make_rollouts(self.env)

    @functools.cached_property
    def replay(self) -> Any:
        return make_replay(self.env)

    @functools.cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "observations": np.zeros((8, 3), np.float32),
            "actions": np.zeros(8, np.int64),
            "rewards": np.zeros(8),
            "terminations": np.arange(8) % 4 == 3,
            "truncations": np.zeros(8, bool),
        }

    @functools.cached_property
    def offline(self) -> Any:
        return rl.OfflineDataset(self.arrays, batch_size=4)

    @functools.cached_property
    def episodes(self) -> Any:
        return rl.EvaluationDataset(self.env, 1)

    @functools.cached_property
    def preset(self) -> Any:
        return rl.presets.find("PPO", "CartPole-v1")

    @functools.cached_property
    def training(self) -> Any:
        return rl.Training(self.preset, self.agent, self.rollouts)

    @functools.cached_property
    def trial(self) -> Any:
        return types.SimpleNamespace(
            report=print, should_prune=bool, number=0, set_user_attr=print
        )

    @functools.cached_property
    def exported(self) -> Path:
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name, "policy.tflite")
        self.agent.export(path, format="litert")
        return path

    @functools.cached_property
    def policy(self) -> Any:
        return rl.PolicyFile(self.exported)

    @functools.cached_property
    def q_network(self) -> Any:
        return rl.networks.mlp((4,), 2, hidden=(8, 7), activation="relu")

    @functools.cached_property
    def runs(self) -> Any:
        return [(self.agent, self.rollouts)]

    @functools.cache  # noqa: B019
    def networks(self, name: str) -> dict[str, Any]:
        return plain_networks(EVERY_AGENT[name])


things = _Things()


def _make_agent(name: str) -> Callable[..., Any]:
    """Returns the constructor of an agent, with its networks.

    They are made when it is called: each process collects these calls, and
    one makes them.
    """

    def call(**wrong: Any) -> Any:
        networks = things.networks(name)
        return EVERY_AGENT[name].make(**{**networks, **wrong})

    return call


def _with(function: Callable[[], Any], **good: Any) -> Callable[..., Any]:
    """Returns what calls a function with good arguments but for the bad one.

    Args:
        function: Callable. Returns the function; nothing is made before it is
            called.
        **good: Arguments, or the names of `things`, as `"=agent"`.
    """

    def call(**wrong: Any) -> Any:
        arguments = {
            key: getattr(things, value[1:])
            if isinstance(value, str) and value.startswith("=")
            else value
            for key, value in good.items()
        }
        return function()(**{**arguments, **wrong})

    return call


_SAVED = Path(__file__).resolve().parents[1] / "migrate"
_REPLAYED = {
    "capacity": 16,
    "num_envs": 2,
    "observation": ArraySpec((3,), np.dtype("float32")),
    "action_shape": (),
    "action_dtype": "int64",
}
_GOOD = {
    "Checkpoint": {"directory": "nowhere"},
    "Evaluation": {"episodes": "=episodes"},
    "OptunaPruning": {"trial": "=trial"},
    "RecordVideo": {"env": "CartPole-v1", "directory": "nowhere"},
    "RolloutRefresh": {"rollouts": "=rollouts"},
    "TensorBoard": {"log_dir": "nowhere"},
    "Tracker": {"log": print},
    "mlp": {"input_shape": (3,), "units": 2},
    "nature_cnn": {"input_shape": (36, 36, 1), "units": 2},
    "impala_cnn": {"input_shape": (36, 36, 1), "units": 2},
    "RewardScaler": {"gamma": 0.9, "num_envs": 2},
    "as_vector_env": {"env": "CartPole-v1"},
    "make_env": {"env_id": "CartPole-v1"},
    "find": {"algorithm": "PPO", "environment": "CartPole-v1"},
    "default": {"algorithm": "PPO", "environment": "CartPole-v1"},
    "Preset": {"algorithm": "PPO", "environment": "CartPole-v1"},
}


def _of_room(room: str, table: Any) -> dict[str, Any]:
    """Returns calls of the functions of a room."""
    return {
        name: (
            _with(
                lambda name=name: getattr(getattr(rl, room), name),
                **_GOOD.get(name, {}),
            ),
            wrong,
        )
        for name, wrong in table.items()
    }


def _of_files() -> dict[str, Any]:
    """Returns calls of what takes an agent elsewhere, or brings it."""
    export = functools.partial(_with, lambda: things.agent.export)
    to_litert = {"filepath": "nowhere.tflite", "format": "litert"}
    return {
        "export": (export(filepath="nowhere"), bad_exports.EXPORT),
        "export of litert": (
            export(**to_litert),
            bad_exports.EXPORT_LITERT,
        ),
        "export of int8": (
            export(**to_litert, quantize="int8", representative="=env"),
            bad_exports.EXPORT_INT8,
        ),
        "check_export": (
            _with(
                lambda: things.agent.check_export,
                filepath="=exported",
                env="=env",
                episodes=1,
            ),
            bad_exports.CHECK_EXPORT,
        ),
        "read_manifest": (
            _with(lambda: rl.read_manifest),
            {"path": bad.PATH},
        ),
        "PolicyFile": (
            _with(lambda: rl.PolicyFile, path="=exported"),
            bad_exports.POLICY_FILE,
        ),
        "PolicyFile.act": (
            _with(lambda: things.policy.act, observation=np.zeros(3)),
            bad_exports.ACT_OF_FILE,
        ),
        "PolicyFile.initial_state": (
            _with(lambda: things.policy.initial_state),
            {"batch_size": bad.COUNT},
        ),
        "from_sb3": (
            _with(lambda: rl.migrate.from_sb3, path=_SAVED / "sb3/dqn.zip"),
            bad_exports.FROM_SB3,
        ),
        "from_keras_rl": (
            _with(
                lambda: rl.migrate.from_keras_rl,
                path=_SAVED / "keras_rl/mlp.h5",
                network="=q_network",
            ),
            bad_exports.FROM_KERAS_RL,
        ),
        "fit_seeds": (
            _with(
                lambda: rl.tuning.fit_seeds,
                trial="=trial",
                runs="=runs",
                total_steps=64,
                episodes="=episodes",
            ),
            bad_exports.FIT_SEEDS,
        ),
        "SearchSpace": (
            _with(
                lambda: rl.presets.SearchSpace,
                algorithm="PPO",
                ranges={"agent.gamma": [0.9, 0.99]},
            ),
            bad_exports.SEARCH_SPACE,
        ),
    }


def _calls() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Returns by a name what is called, and what it is not to be given."""
    fit = _with(lambda: things.agent.fit, x="=rollouts", verbose=0)
    return {
        **{
            name: (_make_agent(name), args.AGENTS[name]) for name in args.AGENTS
        },
        "for_env": (_with(lambda: rl.PPO.for_env, env="=env"), args.FOR_ENV),
        "compile": (_with(lambda: things.sac.compile), args.COMPILE),
        "fit": (fit, args.FIT),
        "evaluate": (
            _with(lambda: things.agent.evaluate, x="=env"),
            args.EVALUATE,
        ),
        "act": (
            _with(lambda: things.agent.act, observation=np.zeros(3)),
            args.ACT,
        ),
        "RolloutDataset": (
            _with(lambda: rl.RolloutDataset, env="=env"),
            args.ROLLOUTS,
        ),
        "ReplayDataset": (
            _with(lambda: rl.ReplayDataset, env="=env"),
            args.REPLAY,
        ),
        "ReplayDataset prioritized": (
            _with(lambda: rl.ReplayDataset, env="=env", prioritized=True),
            args.PRIORITIES,
        ),
        "EvaluationDataset": (
            _with(lambda: rl.EvaluationDataset, env="=env"),
            {key: args.EVALUATE[key] for key in ("episodes", "deterministic")}
            | args.OF_ENVS,
        ),
        "OfflineDataset": (
            _with(lambda: rl.OfflineDataset, source="=arrays"),
            args.OFFLINE,
        ),
        "MixedDataset": (
            _with(
                lambda: rl.MixedDataset, offline="=offline", replay="=replay"
            ),
            {
                "ratio": bad.FRACTION,
                "offline": (None, "x"),
                "replay": (None, "x"),
            },
        ),
        "OfflineEvaluation": (
            _with(lambda: rl.agents.OfflineEvaluation, offline="=offline"),
            {
                "offline": (None, 3),
                "updates": bad.NOT_NEGATIVE,
                "deterministic": bad.FLAG,
                "seed": bad.SEED,
            },
        ),
        "record": (
            _with(lambda: rl.record, policy="=agent", env="=env", steps=4),
            args.RECORD,
        ),
        "LocalWorkers": (_with(lambda: rl.LocalWorkers, count=2), args.WORKERS),
        "RayWorkers": (
            _with(lambda: rl.RayWorkers, count=2),
            {**args.WORKERS, "num_cpus_per_worker": (-1, bad.NAN, "1", True)},
        ),
        "ReplayBuffer": (
            _with(lambda: rl.data.ReplayBuffer, **_REPLAYED),
            args.BUFFER,
        ),
        "PrioritizedReplayBuffer": (
            _with(lambda: rl.data.PrioritizedReplayBuffer, **_REPLAYED),
            {**args.PRIORITIES, "epsilon": bad.SCALE},
        ),
        "SequenceReplayBuffer": (
            _with(
                lambda: rl.data.SequenceReplayBuffer,
                **_REPLAYED,
                state=(),
                sequence_length=4,
                burn_in=0,
                stride=4,
            ),
            args.SEQUENCES,
        ),
        "SumTree": (_with(lambda: rl.data.SumTree), {"capacity": bad.COUNT}),
        **_of_files(),
        **_of_room("callbacks", args.CALLBACKS),
        **_of_room("networks", args.NETWORKS),
        **_of_room("envs", args.ENVIRONMENTS),
        **_of_room("exploration", args.EXPLORATION),
        **_of_room("presets", args.PRESETS),
        "WindowAttentionCell": (
            _with(lambda: rl.networks.WindowAttentionCell, units=8),
            {
                "units": bad.COUNT,
                "window": bad.COUNT,
                "heads": (*bad.COUNT, 3),
                "seed": bad.SEED,
            },
        ),
        "PPO.from_preset": (
            _with(lambda: rl.PPO.from_preset, preset="CartPole-v1"),
            {
                **args.TRAINING,
                "preset": ("NoSuch-v0", None, 3),
            },
        ),
        "Training.from_preset": (
            _with(lambda: rl.Training.from_preset, preset="=preset"),
            {**args.TRAINING, "data": (3,)},
        ),
        "Training.run": (
            _with(lambda: things.training.run),
            {
                "total_steps": bad.COUNT,
                "verbose": ("x", 3),
                "callbacks": (3, [3]),
            },
        ),
        "load": (_with(lambda: rl.load, path="nowhere.keras"), args.LOAD),
    }


CALLS = [
    (name, call, argument, value)
    for name, (call, arguments) in _calls().items()
    for argument, values in arguments.items()
    for value in values
]
"""What is called, by what name, with which argument and value."""
