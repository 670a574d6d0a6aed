"""Agents that differ by seeds and numbers alone share a compiled round."""

import contextlib
import contextvars
import inspect
import json
import logging
import re
import threading
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any
from typing import NamedTuple

import keras
import tensorflow as tf

from keras_rl2.networks.model_layers import all_layers
from keras_rl2.training.agent_state import state_variables
from keras_rl2.updates.skipped_updates import parts_of

logger = logging.getLogger(__name__)


class Program(NamedTuple):
    """A traced round.

    Attributes:
        function: `tf.types.experimental.ConcreteFunction`. The round.
        described: dict. Names and shapes of its results.
        captured: list of tensors or None. Variables in the order in which the
            function takes them; None for those that it was traced with.
    """

    function: Any
    described: dict[str, Any]
    captured: list[Any] | None = None


class Likeness(NamedTuple):
    """The inputs that determine an agent's program, and its variables.

    Attributes:
        agent: `keras_rl2.Agent`.
        key: Equal for agents with the same program, but for their numbers.
        numbers: dict from str to float. Attributes of the agent that a program
            either contains, or reads from variables.
        variables: list of `tf.Variable`, in an order that is the same for all
            agents with an equal key.
    """

    agent: keras.Model
    key: tuple[Any, ...]
    numbers: dict[str, float]
    variables: list[tf.Variable]


class SharedPrograms:
    """Traces and compiles a round once for all agents that are alike.

    Agents are alike if they have the same class, the same `get_config` but for
    seeds and names, the same optimizer but for a constant learning rate, the
    same updates of target networks, and rounds of the same size. The program of
    the first of them then takes the variables of the others. Seeds of layers of
    your own count as differences, and agents with functions of your own, such
    as an activation, are not shared: a config has only the names of functions.
    What else an agent of your own class depends on must be in its `get_config`.

    Agents of this library that differ in their `shared_numbers`, too, share a
    second program, which reads these numbers from variables. The first one
    contains them, so that agents that differ in their seeds alone are trained
    bit for bit as they would be alone.

    Args:
        most: int or None. Programs that are kept, the last used; None for all.
            Defaults to `None`.

    Example:

    >>> import keras_rl2 as rl
    >>> programs = SharedPrograms()
    >>> with programs.used():
    ...     for seed in range(2):
    ...         agent = rl.A2C.for_env("CartPole-v1", seed=seed)
    ...         rollouts = rl.RolloutDataset("CartPole-v1", seed=seed)
    ...         history = agent.fit(rollouts, verbose=0)
    >>> programs.number
    1
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        # With the place of each captured variable among those of the agent.
        self._programs: dict[tuple[Any, ...], tuple[Program, list[int]]] = {}
        self._lock = threading.Lock()

    @property
    def number(self) -> int:
        """The number of programs."""
        return len(self._programs)

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Lets each `fit` of this thread use the programs.

        Yields:
            None. Threads that are started within do not use them.
        """
        token = PRESENT.set(self)
        try:
            yield
        finally:
            PRESENT.reset(token)

    def find(
        self,
        likeness: Likeness | None,
        form: tuple[Any, ...],
        trace: Callable[[], Program],
    ) -> Program:
        """Returns the program of an agent, traced if there is none like it."""
        if likeness is None:
            # Keras does not promise that two threads can trace at a time.
            with self._lock:
                return trace()
        agent, known = likeness.agent, (likeness.key, form)
        key = (*known, *likeness.numbers.values())
        numbers: dict[str, tf.Variable] = {}
        # Another thread may be tracing the same program.
        with self._lock:
            if key not in self._programs and any(
                each[:2] == known for each in self._programs
            ):
                key = known
                for name, number in likeness.numbers.items():
                    numbers[name] = tf.Variable(
                        number, trainable=False, dtype="float32"
                    )
            variables = [*likeness.variables, *numbers.values()]
            handles = [each.handle for each in variables]
            if key not in self._programs:
                before = _attributes(agent)
                # The losses read them from there.
                vars(agent).update(numbers)
                try:
                    program = trace()
                finally:
                    vars(agent).update(likeness.numbers)
                # Code of a user may set attributes while it is traced.
                unchanged = before == _attributes(agent)
                places = {id(each): i for i, each in enumerate(handles)}
                captured = program.function.captured_inputs
                if not unchanged or {*map(id, captured)} - places.keys():
                    logger.info("The program of a round cannot be shared")
                    return program
                order = [places[id(each)] for each in captured]
                self._programs[key] = program, order
                if self._most and len(self._programs) > self._most:
                    del self._programs[next(iter(self._programs))]
            # The last used are last.
            program, order = self._programs[key] = self._programs.pop(key)
        # Tracing has done it for the first agent alone.
        agent.target_networks.begin(agent.updates_made)
        # Also of the first agent: TensorFlow would round otherwise if it called
        # the function itself. The handle of a variable keeps its value alive.
        return program._replace(captured=[handles[place] for place in order])


#: The programs that are used in this thread; None without any.
PRESENT: contextvars.ContextVar[SharedPrograms | None] = contextvars.ContextVar(
    "shared_programs", default=None
)


#: The programs of each `fit` without others: of classes of Keras and of this
#: library alone, since a program would outlive changes to the code of a user.
COMMON = SharedPrograms(most=8)


def _attributes(agent: keras.Model) -> dict[str, int]:
    """Returns the identities of an agent's attributes, without Keras' own."""
    of_keras = vars(keras.Model())
    return {k: id(v) for k, v in vars(agent).items() if k not in of_keras}


def likeness(
    agent: keras.Model, kind: tuple[Any, ...], rounds: Any, of_library: bool
) -> Likeness | None:
    """Returns the inputs that determine the program of an agent's rounds.

    Args:
        agent: `keras_rl2.Agent`.
        kind: tuple. What else the function depends on.
        rounds: `RoundsInGraph` or None. Makes the rounds within the program.
        of_library: bool. Whether agents with code of a user have none.
    """
    if agent.devices.strategy is not None or (of_library and rounds):
        return None
    try:
        config = keras.saving.serialize_keras_object(agent)
        numbers = {}
        if of_library:
            _refuse_own_code(agent)
        else:
            numbers = _shared_numbers(agent, config.get("config", {}))
        # The optimizer says more, and `kind` what became of the rest.
        config.pop("compile_config", None)
        # The agent's own seed is in variables and in what it is given.
        config.get("config", {}).pop("seed", None)
        described = _without_names_and_seeds(
            [config, *_optimizer_configs(agent)], of_library
        )
        of_rounds = rounds.settings() if rounds else ()
    except (AttributeError, NotImplementedError, TypeError):
        logger.info("%r shares no program: its config is not whole", agent.name)
        return None
    variables = [each.value for each in state_variables(agent)]
    variables += agent.update_variables
    variables += rounds.variables() if rounds else ()
    sizes = (each.shape.num_elements() * each.dtype.size for each in variables)
    if of_library and sum(sizes) > _MOST_BYTES:
        logger.info("%r shares no program: it is large", agent.name)
        return None
    trained = {id(each.value) for each in agent.trainable_variables}
    places = {id(each): i for i, each in enumerate(state_variables(agent))}
    moves = [
        tuple(places.get(part, part) for part in settings)
        for settings in agent.target_networks.settings
    ]
    shapes = [
        (tuple(each.shape), each.dtype.name, id(each) in trained)
        for each in variables
    ]
    key = (
        *(type(agent), described, kind, of_rounds),
        *(tuple(shapes), tuple(moves), *_surroundings(agent)),
    )
    return Likeness(agent, key, numbers, variables)


def _surroundings(agent: keras.Model) -> tuple[Any, ...]:
    """Returns the settings of a process that a trace contains."""
    with tf.Graph().as_default() as graph:
        # `tf.debugging.enable_check_numerics` adds operations.
        tf.sqrt(1.0)
    settings = (keras.config.epsilon(), tf.config.optimizer.get_jit())
    return agent.devices.placed, len(graph.get_operations()), *settings


def _refuse_own_code(agent: keras.Model) -> None:
    """Raises a `TypeError` if a class or a method is a user's."""
    for each in (agent, *all_layers(agent), *parts_of(agent.optimizer)):
        replaced = [
            name
            for name in vars(each).keys() - _SET_BY_KERAS
            if inspect.isfunction(getattr(type(each), name, None))
        ]
        if replaced or not type(each).__module__.startswith(_LIBRARIES):
            raise TypeError(f"Own code of {each!r}: {replaced}")


def _shared_numbers(
    agent: keras.Model, config: dict[str, Any]
) -> dict[str, float]:
    """Takes numbers that programs may read from variables out of a config."""
    # Code of a user may ask whether a number is positive, say.
    of_library = type(agent).__module__.startswith("keras_rl2.")
    if not of_library or config.get("dtype") not in _WITH_FLOAT32:
        return {}
    numbers = {}
    for name in agent.shared_numbers:
        number = vars(agent).get(name)
        if isinstance(number, float) and number == config.get(name):
            numbers[name] = number
            del config[name]
    return numbers


def _optimizer_configs(agent: keras.Model) -> list[Any]:
    """Returns configs of all optimizers, without constant learning rates."""
    optimizer = agent.optimizer
    configs: list[Any] = [type(optimizer).__name__]
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        configs.append({**optimizer.get_config(), "inner_optimizer": None})
        optimizer = optimizer.inner_optimizer
    has_critic = agent.compile_arguments.critic_optimizer is not None
    joined = isinstance(optimizer, keras.optimizers.MultiOptimizer)
    if joined and not has_critic:
        raise TypeError("It is a function of a user that assigns variables")
    for part in parts_of(optimizer):
        # Keras tells by this attribute alone; a config does not say it.
        if getattr(part, "_exclude_from_weight_decay", None) is not None:
            raise TypeError("Variables are excluded from weight decay")
        config = keras.saving.serialize_keras_object(part)
        if isinstance(config["config"].get("learning_rate"), float):
            del config["config"]["learning_rate"]
        configs.append(config)
    return configs


# Policies whose losses are float32, as the variables of numbers are.
_WITH_FLOAT32 = ("float32", "mixed_float16", "mixed_bfloat16")
_LIBRARIES = ("keras.", "keras_rl2.")
# Of the variables of a program's first agent, which live as long as it.
_MOST_BYTES = 2**26
# Methods that Keras wraps, and a property that is a method of its base.
_SET_BY_KERAS = {"build", "quantize", "loss"}
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def _is_of_library(config: dict[str, Any]) -> bool:
    """Returns whether a config is that of an object of a library."""
    if "class_name" not in config:
        return True
    if config["class_name"].startswith("__"):
        # Keras' forms of tensors and arrays.
        return True
    home = config.get("module") or config.get("registered_name") or ""
    return re.split("[.>]", home)[0] in ("keras", "keras_rl2", "builtins")


def _without_names_and_seeds(config: Any, of_library: bool) -> str:
    """Returns a config as text, without names and seeds."""
    names: dict[str, str] = {}

    def anonymous(part: dict[str, Any]) -> dict[str, Any]:
        if part.get("class_name") in ("function", "__lambda__"):
            raise TypeError("A function's name does not say what it is")
        part.pop("shared_object_id", None)
        if not _is_of_library(part):
            if of_library:
                raise TypeError("It contains an object of a user")
        elif isinstance(part.get("config"), dict):
            # A layer of a library keeps the state of its seed in a variable.
            part["config"].pop("seed", None)
        if isinstance(part.get("name"), str):
            names.setdefault(json.dumps(part["name"]), f'"name {len(names)}"')
        return part

    plain = json.dumps(config, default=repr)
    text = json.dumps(json.loads(plain, object_hook=anonymous))
    return _STRING.sub(lambda found: names.get(found[0], found[0]), text)
