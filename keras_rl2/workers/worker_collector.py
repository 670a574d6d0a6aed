"""Collection of rollouts with workers."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_rl2.collecting.collector import Collector
from keras_rl2.collecting.collector import StepNoise
from keras_rl2.collecting.policy_actor import SentPolicy
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.saving import plain_data
from keras_rl2.spaces.action_format import ActionFormat
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.workers.worker import Collected
from keras_rl2.workers.worker_pool import Call
from keras_rl2.workers.workers import WorkerEnv
from keras_rl2.workers.workers import side_by_side


class WorkerCollector(Collector):
    """Collects rollouts with workers.

    A rollout is equal, bit for bit, to that of one process with the same
    environments: each step's noise is drawn here, for all of them.

    Args:
        env: `WorkerEnv`. The environments.
        horizon: int. Steps of one rollout, T.
        action: `ActionFormat` of the policy's own actions.

    Attributes:
        whole_episodes: bool. Whether a rollout is one episode of each
            environment.
    """

    def __init__(
        self, env: WorkerEnv, horizon: int, action: ActionFormat
    ) -> None:
        super().__init__(env, horizon, action)
        self.pool = env.pool
        self.shares = env.shares
        self.whole_episodes = False
        # The rollouts that are begun and not yet finished.
        self._rollouts: deque[list[Call] | Collected] = deque()
        self._planned: tuple[Any, ...] = ()
        self._reset: tuple[int | None] | None = None

    @property
    def needs_reset(self) -> bool:
        """Whether the next rollout begins new episodes."""
        return self.whole_episodes or super().needs_reset

    def reset(self, seed: int | None = None) -> None:
        """Begins new episodes with the next rollout; see `Collector`."""
        self.has_begun = True
        self._reset = (seed,)
        self._adapter.resets += 1
        self._resets_seen = self._adapter.resets
        self.episodes.begin()

    @property
    def under_way(self) -> int:
        """Number of rollouts begun and not yet finished."""
        return len(self._rollouts)

    def collect(self, actor: Any, noise: StepNoise) -> Trajectory:
        """Collects a rollout, and waits for it; see `Collector`."""
        self.begin(actor, noise)
        return self.finish()

    def begin(self, actor: Any, noise: StepNoise) -> None:
        """Asks all workers for their share of a rollout.

        Args:
            actor: `SentActor`, or a function that acts in its place.
            noise: See `collect`.
        """
        policy: SentPolicy | None = getattr(actor, "policy", None)
        self.plan(policy)
        acting = actor if policy is None else self.pool.share(actor.weights)
        arguments = [
            (acting, _share_of(noise, share), self._reset)
            for share in self.shares
        ]
        try:
            calls = self.pool.submit("collect", arguments)
        except BaseException as error:
            # Some workers would be a rollout ahead of the others.
            self.drop(error)
            self._resets_seen = -1
            raise
        self._reset = None
        self._rollouts.append(calls)

    def plan(self, policy: SentPolicy | None) -> None:
        """Sends workers their plan, with a policy, if it has changed."""
        plan = (
            self.horizon,
            self.whole_episodes,
            self.head,
            self.sequence_length,
            policy,
        )
        if not self._planned or (policy and plan != self._planned):
            self._planned = plan
            self.pool.plan(*plan)

    def finish(self) -> Trajectory:
        """Waits for the oldest rollout under way."""
        try:
            collected = self._gathered(self._rollouts[0])
        except BaseException as error:
            # Ctrl-C may break the rollout off, too.
            self.drop(error)
            raise
        self._rollouts.popleft()
        self.lost = collected.lost if collected.lost.any() else None
        if self.lost is not None:
            self.episodes.begin(self.lost)
        self._adapter.pending_reset = collected.pending_reset
        self._adapter.steps += self.horizon
        self.episodes.count(collected.trajectory)
        return collected.trajectory

    def _gathered(self, rollout: list[Call] | Collected) -> Collected:
        """Waits for a rollout of all workers, unless it is there."""
        if isinstance(rollout, Collected):
            return rollout
        parts = self.pool.gather(rollout)
        return Collected(
            _trajectory([each.trajectory for each in parts], self.shares),
            side_by_side([each.lost for each in parts]),
            side_by_side([each.pending_reset for each in parts]),
        )

    def drop(self, error: BaseException | None = None) -> None:
        """Discards rollouts that are under way, and their episodes."""
        if self._rollouts:
            self._resets_seen = -1
        self._rollouts.clear()
        # It may have come between asking and waiting, where the pool did not
        # see it.
        if error is not None:
            self.pool.break_off(error)

    def get_state(self) -> dict[str, Any]:
        """Returns the state that later rollouts depend on, as plain data."""
        collected = [self._gathered(each) for each in self._rollouts]
        self._rollouts = deque(collected)
        under_way = [
            {**vars(each), "trajectory": each.trajectory.arrays()}
            for each in collected
        ]
        return {
            **super().get_state(),
            "under_way": plain_data.copied(under_way),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores a state."""
        super().set_state(state)
        self.drop()
        for each in state.get("under_way", ()):
            trajectory = Trajectory(**each["trajectory"])
            rollout = Collected(**{**each, "trajectory": trajectory})
            self._rollouts.append(rollout)

    def simulation(self) -> dict[str, Any] | None:
        """Returns the state of the environments, as far as it can be saved."""
        states = self.pool.call_all("get_state")
        if any(state is None for state in states):
            return None
        reason = max(each["not_saved"] for each in states)
        adrift = self.needs_reset
        return {"workers": states, "adrift": adrift, "not_saved": reason}

    def can_go_on(self, simulation: dict[str, Any]) -> bool:
        """Returns whether it belongs to the same number of workers."""
        return len(simulation.get("workers", ())) == len(self.pool.shares)

    def go_on(
        self, simulation: dict[str, Any], observation: Tree[np.ndarray]
    ) -> None:
        """Continues in the environments where others were."""
        states = [(state,) for state in simulation["workers"]]
        calls = self.pool.submit("set_state", states)
        self.pool.gather(calls)
        self.has_begun = not simulation["not_saved"]
        if self.has_begun and not simulation["adrift"]:
            self._resets_seen = self._adapter.resets


def _share_of(noise: StepNoise, share: slice) -> StepNoise:
    """Returns the noise of one worker's environments."""
    if isinstance(noise, np.ndarray):
        return np.ascontiguousarray(noise[:, share])
    return [
        map_leaves(lambda each: np.ascontiguousarray(each[share]), step)
        for step in noise
    ]


def _trajectory(parts: list[Trajectory], shares: Sequence[slice]) -> Trajectory:
    """Concatenates trajectories, in new arrays."""
    joined: dict[str, Any] = {}
    for name in parts[0].arrays():
        if not name.startswith("final"):
            # [T, B of each worker, ...] -> [T, B, ...]
            joined[name] = side_by_side(
                [vars(part)[name] for part in parts], axis=1
            )
    # Indices of final observations in the whole rollout.
    indices = []
    for part, share in zip(parts, shares, strict=True):
        step, env = np.divmod(part.final_index, part.reward.shape[1])
        index = step * joined["reward"].shape[1] + env + share.start
        indices.append(index)
    index = np.concatenate(indices).astype(np.int32)
    order = np.argsort(index)
    for name in ("final_observation", "final_state"):
        # [E of each worker, ...] -> [E, ...]
        rows = side_by_side([vars(part)[name] for part in parts])
        joined[name] = map_leaves(lambda each: each[order], rows)
    return Trajectory(final_index=index[order], **joined)
