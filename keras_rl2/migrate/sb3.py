"""Agents from files of Stable-Baselines3."""

import os
import re
import warnings
from collections.abc import Callable
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
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.migrate import sb3_networks
from keras_rl2.migrate.refusals import blamed_on
from keras_rl2.migrate.sb3_file import SB3File
from keras_rl2.migrate.sb3_file import read_space
from keras_rl2.migrate.sb3_networks import Seen
from keras_rl2.migrate.sb3_settings import optimizer_of
from keras_rl2.migrate.sb3_settings import settings_of
from keras_rl2.migrate.torch_layers import ACTIVATIONS
from keras_rl2.migrate.torch_layers import TorchLayers

_CLASS = re.compile(r"<class '([\w.]+)\.(\w+)'>")
_THEIRS = "stable_baselines3."
_EXTRACTORS = ("FlattenExtractor", "NatureCNN")
# Supported arguments of policies; others would change the networks.
_KNOWN = frozenset(
    {
        "activation_fn",
        "clip_mean",
        "features_extractor_class",
        "features_extractor_kwargs",
        "full_std",
        "log_std_init",
        "n_critics",
        "net_arch",
        "normalize_images",
        "optimizer_class",
        "optimizer_kwargs",
        "ortho_init",
        "share_features_extractor",
        "squash_output",
        "use_expln",
        "use_sde",
    }
)
# The statistics of `VecNormalize` for each observed number.
_STATISTICS = ("mean", "variance")
_EXPECTED = "a model of Stable-Baselines3 with an MlpPolicy or CnnPolicy"


def from_sb3(
    path: str | os.PathLike[str],
    env: GivenEnv | None = None,
    *,
    normalization: Mapping[str, Any] | None = None,
    seed: int | None = None,
    **settings: Any,
) -> Agent:
    """Makes an agent with the networks of a Stable-Baselines3 file.

    Reads the zip file of PPO, A2C, DQN, SAC, TD3 or DDPG with an `MlpPolicy`
    or `CnnPolicy`. PyTorch is needed to read the weights, as plain data: no
    code in the file is run. Stable-Baselines3 need not be installed. The agent
    takes the same actions as the original, and can be trained further, saved
    and exported as any agent. The optimizer is that of the file, with its
    learning rate or linear schedule, and starts without its state; a replay
    buffer is in another file. A warning names settings that are only in a
    pickle, e.g. a schedule that is a function.

    Images that Stable-Baselines3 has transposed to channels first are expected
    as in the file, unless `env` has another shape.

    Args:
        path: str or path. The zip file; its extension, `.zip`, may be omitted.
        env: An environment, vector environment or id string that the agent is
            for; None for the spaces that the file describes. Defaults to
            `None`.
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
        ImportError: If PyTorch is not installed: `pip install
            "keras-rl2-fit[sb3]"`.
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
    _check_normalization(normalization)
    path = _with_ending(path)
    notes: list[str] = []
    with blamed_on(path, _EXPECTED):
        file = SB3File(path)
        options = _policy_options(file)
        layers = TorchLayers(file.weights, _activation(file, options))
    kind = _kind(file, layers)
    kind.refuse_arguments(settings)
    adapter = None if env is None else as_vector_env(env)
    with blamed_on(path, _EXPECTED):
        seen, action_space = _spaces(file, adapter, options, normalization)
        arguments = {
            **settings_of(
                file, set(kind.argument_names()) - set(settings), notes
            ),
            **settings,
            "observation_space": seen.space,
            "action_space": action_space,
            "seed": seed,
        }
        agent = _AGENTS[kind](kind, layers, seen, arguments)
        layers.refuse_rest()
        own = agent.default_optimizer
        optimizers = [optimizer_of(file, options, own(), notes)]
        if isinstance(agent, agents.TD3) and agent.policy_delay > 1:
            # The schedule of the critics; the actor's counts fewer updates.
            optimizers[0].name = "critic"
            delay = agent.policy_delay
            actor = optimizer_of(file, options, own(), [], delay)
            optimizers.insert(0, actor)
        agent.compile(*optimizers)
        agent.env_steps = max(int(file.number("num_timesteps") or 0), 0)
        if isinstance(agent, agents.OffPolicyAgent):
            # Before the first update targets are made equal to their networks.
            made = max(int(file.number("_n_updates") or 0), 1)
            agent.updates.assign(made)
    if notes:
        warnings.warn(
            f"{path}: not taken over: {'; '.join(notes)}. The agent begins "
            f"with {_in_words(optimizers[-1])}; `agent.compile` and arguments "
            "of `from_sb3` change that.",
            stacklevel=2,
        )
    return agent


def _with_ending(path: str | os.PathLike[str]) -> str:
    """Returns the path of the file, with the extension of `save`."""
    path = os.fspath(path)
    with_ending = f"{path}.zip"
    if os.path.exists(path) or not os.path.exists(with_ending):
        return path
    return with_ending


def _in_words(optimizer: keras.optimizers.Optimizer) -> str:
    """Names an optimizer and its learning rate."""
    rate = float(optimizer.learning_rate)
    return f"{type(optimizer).__name__}, learning rate {rate:g}"


def _check_normalization(given: object) -> None:
    """Raises an error for malformed statistics, before the file is read."""
    if given is None:
        return
    if not isinstance(given, Mapping) or not set(_STATISTICS) <= set(given):
        raise ValueError(
            "Expected `normalization` to be a mapping with "
            f"{' and '.join(_STATISTICS)}. Received: normalization={given!r}"
        )
    allowed = (*_STATISTICS, "count", "clip", "epsilon")
    refuse_unknown("`normalization`", given, allowed)


def _kind(file: SB3File, layers: TorchLayers) -> type[Agent]:
    """Returns the class of the agent in a file."""
    if file.algorithm == "TD3" and not layers.has("critic.qf1"):
        return agents.DDPG
    return next(each for each in _AGENTS if each.__name__ == file.algorithm)


def _on_policy(
    kind: type[agents.PPO],
    layers: TorchLayers,
    seen: Seen,
    arguments: Mapping[str, Any],
) -> Agent:
    """Makes an agent of PPO or A2C."""
    agent: agents.PPO = kind(
        *sb3_networks.actor_critic(layers, seen),
        action_units="environment",
        **arguments,
    )
    if agent.log_std is not None:
        agent.log_std.assign(layers.array("log_std"))
    return agent


def _dqn(
    kind: type[agents.DQN],
    layers: TorchLayers,
    seen: Seen,
    arguments: Mapping[str, Any],
) -> Agent:
    """Makes an agent of DQN."""
    network = sb3_networks.q_network(layers, seen, "q_net")
    agent: agents.DQN = kind(network, **arguments)
    target = sb3_networks.q_network(layers, seen, "q_net_target")
    _copy(agent.target_network, target)
    return agent


def _sac(
    kind: type[agents.SAC],
    layers: TorchLayers,
    seen: Seen,
    arguments: Mapping[str, Any],
) -> Agent:
    """Makes an agent of SAC."""
    actor = sb3_networks.gaussian_actor(layers, seen)
    agent: agents.SAC = kind(
        actor, _critics(kind, layers, seen, arguments, "critic"), **arguments
    )
    targets = _critics(kind, layers, seen, arguments, "critic_target")
    for target, network in zip(agent.target_critics, targets, strict=True):
        _copy(target, network)
    return agent


def _td3(
    kind: type[agents.TD3],
    layers: TorchLayers,
    seen: Seen,
    arguments: Mapping[str, Any],
) -> Agent:
    """Makes an agent of TD3 or DDPG."""
    actor = sb3_networks.deterministic_actor(layers, seen, "actor")
    agent: agents.TD3 = kind(
        actor, _critics(kind, layers, seen, arguments, "critic"), **arguments
    )
    target = sb3_networks.deterministic_actor(layers, seen, "actor_target")
    _copy(agent.target_actor, target)
    targets = _critics(kind, layers, seen, arguments, "critic_target")
    for target, network in zip(agent.target_critics, targets, strict=True):
        _copy(target, network)
    return agent


_AGENTS: dict[type[Agent], Callable[..., Agent]] = {
    agents.PPO: _on_policy,
    agents.A2C: _on_policy,
    agents.DQN: _dqn,
    agents.SAC: _sac,
    agents.TD3: _td3,
    agents.DDPG: _td3,
}


def _critics(
    kind: type[agents.SAC] | type[agents.TD3],
    layers: TorchLayers,
    seen: Seen,
    arguments: Mapping[str, Any],
    prefix: str,
) -> list[keras.Model]:
    """Makes the critics, as many as the algorithm has."""
    size = int(np.prod(arguments["action_space"].shape or ()))
    made = sb3_networks.critics(layers, seen, prefix, size)
    if len(made) != kind.number_of_critics:
        raise ValueError(
            f"{len(made)} critics, where {kind.__name__} has "
            f"{kind.number_of_critics}"
        )
    return made


def _copy(into: keras.Model, network: keras.Model) -> None:
    """Copies the weights of a network of the same layers."""
    into.set_weights(network.get_weights())


def _policy_options(file: SB3File) -> Mapping[str, Any]:
    """Returns the arguments of the policy, checking that all are supported."""
    module = str(file.summary("policy_class").get("__module__"))
    if not module.startswith(_THEIRS):
        raise ValueError(f"a policy class of {module}")
    options = dict(file.summary("policy_kwargs"))
    options.pop(":type:", None)
    unknown = sorted(set(options) - _KNOWN)
    if unknown:
        raise ValueError(f"a policy with the argument {unknown[0]!r}")
    if file.flag("use_sde") or options.get("use_sde") is True:
        raise ValueError("state-dependent exploration (use_sde=True)")
    extractor = options.get("features_extractor_class")
    if extractor is not None:
        found = _CLASS.fullmatch(str(extractor))
        if (
            found is None
            or found[2] not in _EXTRACTORS
            or not found[1].startswith(_THEIRS)
        ):
            raise ValueError(f"a features extractor {extractor}")
    return options


def _activation(file: SB3File, options: Mapping[str, Any]) -> str:
    """Returns the Keras name of the activation of hidden layers."""
    if "activation_fn" not in options:
        return "tanh" if file.algorithm in ("PPO", "A2C") else "relu"
    given = str(options["activation_fn"])
    found = _CLASS.fullmatch(given)
    if (
        found is None
        or found[2] not in ACTIVATIONS
        or not found[1].startswith("torch.nn.modules.")
    ):
        raise ValueError(f"an activation {given}")
    return ACTIVATIONS[found[2]]


def _spaces(
    file: SB3File,
    env: VectorEnvAdapter | None,
    options: Mapping[str, Any],
    normalization: Mapping[str, Any] | None,
) -> tuple[Seen, gymnasium.Space[Any]]:
    """Returns the observations of the networks, and the action space."""
    observed = read_space(file.summary("observation_space"))
    acted = read_space(file.summary("action_space"))
    scaled = (
        _is_picture(observed) and options.get("normalize_images") is not False
    )
    if env is None:
        seen = Seen(observed, False, scaled, normalization)
        return seen, acted
    given = env.observation_space
    turned = _is_picture(observed) and _is_turned(observed, given)
    if not turned and not _fits(observed, given):
        raise ValueError(f"a policy for {observed}, not for {given}")
    if not _fits(acted, env.action_space):
        raise ValueError(f"a policy for {acted}, not {env.action_space}")
    return Seen(given, turned, scaled, normalization), env.action_space


def _fits(saved: gymnasium.Space[Any], given: gymnasium.Space[Any]) -> bool:
    """Returns whether networks for one space can be used in another."""
    if type(saved) is not type(given) or saved.shape != given.shape:
        return False
    return all(
        np.array_equal(getattr(saved, name, 0), getattr(given, name, 0))
        for name in ("n", "nvec")
    )


def _is_picture(space: gymnasium.Space[Any]) -> bool:
    """Returns whether Stable-Baselines3 treats a space as images."""
    return (
        isinstance(space, gymnasium.spaces.Box)
        and space.dtype == np.uint8
        and len(space.shape) == 3
        and bool((space.low == 0).all() and (space.high == 255).all())
    )


def _is_turned(
    saved: gymnasium.Space[Any], given: gymnasium.Space[Any]
) -> bool:
    """Returns whether channels saved first come last in the environment."""
    channels, height, width = saved.shape or ()
    return (
        given.dtype == saved.dtype
        and given.shape == (height, width, channels)
        and given.shape != saved.shape
    )
