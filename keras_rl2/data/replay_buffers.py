"""Which replay buffer an agent needs, and what its sequences are like."""

from collections.abc import Callable
from typing import Any
from typing import NamedTuple
from typing import SupportsFloat

from keras_rl2.policies.agent_protocols import ReplayAgent
from keras_rl2.replay.prioritized_replay_buffer import PrioritizedReplayBuffer
from keras_rl2.replay.replay_buffer import ReplayBuffer
from keras_rl2.replay.sequence_replay_buffer import SequenceReplayBuffer
from keras_rl2.spaces.array_spec import ArraySpec

# Of sequences, where nothing else is asked.
_LENGTH = 32
_BURN_IN = 8


class Priorities(NamedTuple):
    """How transitions are preferred; see `PrioritizedReplayBuffer`."""

    alpha: float
    beta: float | Callable[[int], SupportsFloat]


class SequenceSizes(NamedTuple):
    """What sequences of an agent that remembers are like.

    Attributes:
        sequence_length: int. Transitions of a sequence.
        burn_in: int. Steps before them.
        stride: int. Steps from one start to the next.
    """

    sequence_length: int
    burn_in: int
    stride: int


def sequence_sizes(
    agent: ReplayAgent,
    horizon: int,
    sequence_length: int | None,
    burn_in: int | None,
) -> SequenceSizes | None:
    """Settles what sequences are like.

    Args:
        agent: `ReplayAgent`, bound to its spaces.
        horizon: int. Steps of a round in each environment, a multiple of the
            stride.
        sequence_length: int or None. Transitions of a sequence; None for 32.
        burn_in: int or None. Steps before them; None for 8.

    Returns:
        `SequenceSizes`; None for an agent that remembers nothing.

    Raises:
        ValueError: If it remembers nothing and sequences are asked for.
    """
    if not agent.initial_state(1):
        if sequence_length is not None or burn_in is not None:
            raise ValueError(
                "Expected `sequence_length=None` and `burn_in=None` for an "
                "agent that remembers nothing. Received: "
                f"sequence_length={sequence_length}, burn_in={burn_in}"
            )
        return None
    length = _LENGTH if sequence_length is None else sequence_length
    # About two starts in the length of a sequence, as published.
    stride = max(
        each
        for each in range(1, max(length // 2, 1) + 1)
        if horizon % each == 0
    )
    return SequenceSizes(
        length, _BURN_IN if burn_in is None else burn_in, stride
    )


def make_replay_buffer(
    agent: ReplayAgent,
    capacity: int,
    num_envs: int,
    n_step: int,
    seed: int,
    priorities: Priorities | None,
    sizes: SequenceSizes | None,
) -> ReplayBuffer:
    """Makes the buffer for an agent's transitions.

    Args:
        agent: `ReplayAgent`, bound to its spaces.
        capacity: int. Transitions that are held.
        num_envs: int. Environments.
        n_step: int. Rewards of a transition.
        seed: int. Of the draws.
        priorities: `Priorities`, or None to draw uniformly.
        sizes: `SequenceSizes`, or None to draw single transitions.

    Returns:
        `ReplayBuffer`.

    Raises:
        ValueError: If sequences are to have priorities, or `capacity` is too
            small.
    """
    head = agent.policy_head
    kind: type[ReplayBuffer] = ReplayBuffer
    settings: dict[str, Any] = {}
    if sizes is not None:
        kind = SequenceReplayBuffer
        settings = sizes._asdict()
        settings["state"] = state_spec(agent)
    if priorities is not None:
        if sizes is not None:
            raise ValueError(
                "Expected `prioritized=False` for an agent that remembers: "
                "sequences are drawn uniformly. Received: prioritized=True"
            )
        kind = PrioritizedReplayBuffer
        settings = priorities._asdict()
    return kind(
        capacity,
        num_envs,
        agent.observation_spec,
        tuple(head.action_shape),
        head.action_dtype,
        n_step=n_step,
        gamma=agent.gamma,
        seed=seed,
        **settings,
    )


def state_spec(agent: ReplayAgent) -> tuple[ArraySpec, ...]:
    """Returns what an agent remembers of one environment."""
    return tuple(
        ArraySpec(each.shape[1:], each.dtype.name)
        for each in agent.initial_state(1)
    )


def check_fits(buffer: ReplayBuffer, agent: ReplayAgent) -> None:
    """Refuses an agent that cannot learn from what is stored.

    Args:
        buffer: `ReplayBuffer`. Of another agent so far.
        agent: `ReplayAgent`, bound to its spaces.

    Raises:
        ValueError: If it discounts otherwise, or remembers other things.
    """
    if buffer.gamma != agent.gamma:
        raise ValueError(
            "Expected an agent with the discount factor that stored "
            f"returns were summed with, gamma={buffer.gamma}. "
            f"Received: gamma={agent.gamma}"
        )
    kept = buffer.spec.get("state", ())
    if kept != state_spec(agent):
        raise ValueError(
            f"Expected an agent that remembers what is stored, {kept}. "
            f"Received: {state_spec(agent)}"
        )
