"""Agents from files of Stable-Baselines3."""

import contextlib
import os
import re
import textwrap
import warnings
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import gymnasium
import keras
import numpy as np

from keras_rl2 import agents
from keras_rl2.agents import Agent
from keras_rl2.basics.arguments import check_path
from keras_rl2.basics.arguments import check_seed
from keras_rl2.basics.arguments import refuse_unknown
from keras_rl2.envs.adapt import as_vector_env
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.migrate.sb3_file import SB3File
from keras_rl2.migrate.sb3_networks import SB3Networks

_CLASS = re.compile(r"<class '([\w.]+)\.(\w+)'>")
_THEIRS = "stable_baselines3."
_EXTRACTORS = ("FlattenExtractor", "NatureCNN")
# Classes of PyTorch; Keras has them in lower case.
_ACTIVATIONS = (
    *("ELU", "GELU", "LeakyReLU", "Mish", "ReLU", "ReLU6"),
    *("SELU", "Sigmoid", "SiLU", "Softplus", "Tanh"),
)
# Supported arguments of policies; others would change the networks.
_KNOWN = (
    *("activation_fn", "clip_mean", "features_extractor_class"),
    *("features_extractor_kwargs", "full_std", "log_std_init", "n_critics"),
    *("net_arch", "normalize_images", "optimizer_class", "optimizer_kwargs"),
    *("ortho_init", "share_features_extractor", "squash_output"),
    *("use_expln", "use_sde", ":type:", ":serialized:"),
)


def from_sb3(
    path: str | os.PathLike[str],
    env: GivenEnv,
    *,
    normalization: Mapping[str, Any] | None = None,
    seed: int | None = None,
    **settings: Any,
) -> Agent:
    """Makes an agent with the networks of a Stable-Baselines3 file.

    Reads the zip file of PPO, A2C, DQN, SAC or TD3 with an `MlpPolicy` or
    `CnnPolicy`, of versions 2.x. Neither Stable-Baselines3 nor PyTorch need be
    installed, and no pickle is loaded. The agent takes the same actions as the
    original, and can be trained further, saved and exported as any agent, by
    its own optimizer with the learning rate of the file. A warning names
    settings that are only in a pickle, such as a learning rate that is a
    function.

    Args:
        path: str or path. The zip file.
        env: An environment, vector environment or id string that the agent is
            for. Its images may have their channels first or last.
        normalization: Mapping or None. Statistics of a `VecNormalize`, which is
            saved in another file: `mean` and `variance`, arrays of the
            observation's shape, and optionally `count`, `clip` and `epsilon`.
            Defaults to `None`.
        seed: int or None. Seeds updates and `act`. Defaults to `None`.
        **settings: Arguments of the agent's constructor, which override the
            settings of the file.

    Returns:
        `keras_rl2.Agent`, compiled, of the algorithm of the file.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is damaged or of another kind, or has
            unsupported parts.
        TypeError: If the algorithm does not have an argument.

    Example:

    >>> import keras_rl2 as rl
    >>> agent = rl.migrate.from_sb3("ppo_cartpole.zip", "CartPole-v1")
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: 'ppo_cartpole.zip'
    """
    check_path(path=path)
    check_seed(seed)
    adapter = as_vector_env(env)
    spaces = {
        "observation_space": adapter.observation_space,
        "action_space": adapter.action_space,
    }
    with _blamed_on(path):
        file = SB3File(path)
    kind: type[Agent] = getattr(agents, file.algorithm)
    refuse_unknown(kind.__name__, settings, kind.argument_names())
    with _blamed_on(path):
        options = _policy_options(file)
        networks = _networks(file, options, spaces["observation_space"])
        networks.normalization = normalization
        names = kind.argument_names()
        saved = {k: v for k, v in file.settings().items() if k in names}
        arguments = {**saved, **settings, **spaces, "seed": seed}
        shared = options.get("share_features_extractor") is not False
        agent: Agent = _agent(kind, networks, arguments, shared)
        networks.refuse_unused()
        _compile(agent, file)
    unread = [name for name in file.unread() if name not in settings]
    if unread:
        warnings.warn(
            f"{path}: {', '.join(unread)} of the file are in a pickle, which "
            "is not loaded: the agent has its own; `agent.compile` and "
            "arguments of `from_sb3` change that.",
            stacklevel=2,
        )
    return agent


@contextlib.contextmanager
def _blamed_on(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns errors into one line with the file and the expected kind."""
    try:
        yield
    except FileNotFoundError:
        raise
    except Exception as error:
        # The type of the error depends on the fault of the file.
        reason = textwrap.shorten(str(error) or type(error).__name__, 300)
        raise ValueError(
            "Expected a model of Stable-Baselines3 with an MlpPolicy or "
            f"CnnPolicy for the environment. Received: {path}: {reason}"
        ) from error


def _agent(
    kind: Any, networks: SB3Networks, arguments: Mapping[str, Any], shared: bool
) -> Any:
    """Makes the agent, with target networks as in the file."""
    if issubclass(kind, agents.PPO | agents.A2C):
        both = networks.actor_critic(shared)
        agent = kind(*both, action_units="environment", **arguments)
        if agent.log_std is not None:
            agent.log_std.assign(networks.array("log_std"))
        return agent
    if issubclass(kind, agents.DQN):
        network, target = (
            networks.perceptron(name, "q_net", "q_network")
            for name in ("q_net", "q_net_target")
        )
        agent = kind(network, **arguments)
        agent.target_network.set_weights(target.get_weights())
        return agent
    if issubclass(kind, agents.SAC):
        actor = networks.gaussian_actor()
    else:
        actor = networks.perceptron("actor", "mu", "actor")
    size = int(np.prod(arguments["action_space"].shape))
    critics = networks.critics("critic", size)
    agent = kind(actor, critics, **arguments)
    targets = networks.critics("critic_target", size)
    for model, target in zip(agent.target_critics, targets, strict=True):
        model.set_weights(target.get_weights())
    if issubclass(kind, agents.TD3):
        target = networks.perceptron("actor_target", "mu", "actor")
        agent.target_actor.set_weights(target.get_weights())
    return agent


def _compile(agent: Agent, file: SB3File) -> None:
    """Sets the learning rate, and how far the training has come."""
    optimizer = keras.optimizers.Adam(**agent.default_adam)
    if learning_rate := file.number("learning_rate"):
        optimizer.learning_rate = learning_rate
    agent.compile(optimizer)
    agent.env_steps = max(int(file.number("num_timesteps") or 0), 0)
    if isinstance(agent, agents.OffPolicyAgent):
        # At 0 updates, targets would be made equal to their networks.
        agent.updates.assign(max(int(file.number("_n_updates") or 0), 1))


def _policy_options(file: SB3File) -> Mapping[str, Any]:
    """Returns the arguments of the policy, checking that all are supported."""
    module = file.data["policy_class"]["__module__"]
    if not module.startswith(_THEIRS):
        raise ValueError(f"a policy class of {module}")
    options = dict(file.data["policy_kwargs"])
    for name in options:
        if name not in _KNOWN:
            raise ValueError(f"a policy with the argument {name!r}")
    if options.get("use_sde") or file.data.get("use_sde"):
        raise ValueError("state-dependent exploration (use_sde=True)")
    extractor = options.get("features_extractor_class")
    if extractor and _class_name(extractor, _THEIRS) not in _EXTRACTORS:
        raise ValueError(f"a features extractor {extractor}")
    return options


def _networks(
    file: SB3File, options: Mapping[str, Any], space: gymnasium.Space[Any]
) -> SB3Networks:
    """Returns the builder of the networks."""
    activation = "Tanh" if file.algorithm in ("PPO", "A2C") else "ReLU"
    if "activation_fn" in options:
        printed = options["activation_fn"]
        activation = _class_name(printed, "torch.nn.modules.")
        if activation not in _ACTIVATIONS:
            raise ValueError(f"an activation {printed}")
    picture = (
        isinstance(space, gymnasium.spaces.Box)
        and space.dtype == np.uint8
        and len(space.shape) == 3
        and bool((space.low == 0).all() and (space.high == 255).all())
    )
    scaled = picture and options.get("normalize_images") is not False
    # Stable-Baselines3 saves the space of images with its channels first.
    *size, channels = space.shape or (0,)
    saved = file.data["observation_space"]["_shape"]
    turned = picture and saved == [channels, *size]
    return SB3Networks(file.weights, activation.lower(), space, turned, scaled)


def _class_name(printed: object, module: str) -> str:
    """Returns the name of a class of a module, or nothing."""
    found = _CLASS.fullmatch(str(printed))
    return found[2] if found and found[1].startswith(module) else ""
