"""Whole rounds of replay in the graph: rollout, minibatches, updates."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.graph import noise
from keras_rl2.graph.graph_rollout import GraphRollout
from keras_rl2.graph.graph_rollout import RoundsInGraph
from keras_rl2.graph.graph_rollout import ended_episodes
from keras_rl2.graph.graph_rollout import overrides
from keras_rl2.spaces.supported import is_masked
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import with_leaves


class ReplayRounds(RoundsInGraph):
    """Makes the rounds of an off-policy agent within its train function.

    The replay buffer stays outside of the graph. The transitions of all
    minibatches are drawn before the call, since their numbers depend on how
    many steps there are, and not on what happens in them: a minibatch contains
    what the buffer holds, and the graph fills in the steps that it takes
    itself.

    The noise of ε-greedy actions is drawn in the graph: in Python, it takes a
    tenth of a short round. Noise of other kinds, which may be correlated over
    time, is drawn before the call.

    Args:
        agent: `ReplayAgent`. Acts and learns.
        dataset: `ReplayDataset` over a `GraphVectorEnv`.
    """

    def __init__(self, agent: Any, dataset: Any) -> None:
        super().__init__(agent, dataset)
        parts = agent.policy.noise.parts
        drawn = all(each["kind"] == "epsilon_greedy" for each in parts)
        self._drawn_parts = parts if drawn else None
        self._updates = dataset.updates_per_round
        self._batch_size = dataset.batch_size

    @staticmethod
    def can_make(agent: Any, dataset: Any) -> bool:
        """Returns whether rounds of an agent can be made in the graph.

        Of others, only the rollout is.

        Returns:
            bool. False if transitions are of several steps, sequences, drawn
            by priorities, or changed by transforms; if actions are masked; if
            observations are normalized by the agent; or if a subclass changes
            what Python does in a round.
        """
        return (
            dataset.n_step == 1
            and not dataset.prioritized
            and not dataset.transform
            and not agent.policy.initial_state(1)
            and not is_masked(agent.observation_space)
            and not agent.normalizing.changing
            and not overrides(agent, "observe", "begin_round")
        )

    def __call__(
        self,
        inputs: Mapping[str, Any],
        carried: Mapping[str, Any],
        from_trajectory: bool,
    ) -> tuple[dict[str, Any], dict[str, Tensor], dict[str, Any]]:
        """Makes a round, in the graph.

        Args:
            inputs: Mapping of tensors; see `begin`.
            carried: Mapping of tensors; see `begin`.
            from_trajectory: bool. Must be False.

        Returns:
            The round, see `round_dataset.minibatch`, with `usable`, a scalar
            bool: whether all numbers are finite, so that the updates may be
            made. Then the report, see `receive`, and what is passed on.
        """
        assert not from_trajectory
        drawn = inputs["noise"]
        if self._drawn_parts is not None:
            shape = (self._horizon, self._env.num_envs)
            drawn = noise.draw_noise(
                self._drawn_parts, drawn, inputs["seed"], shape
            )
        episodes, rollout, report = self._roll_out(carried["totals"], drawn)
        steps = map_leaves(
            lambda steps, each: _written(steps, each, carried["step"]),
            carried["steps"],
            self._transitions(rollout),
        )
        filled_in = map_leaves(
            lambda steps, drawn: _filled_in(drawn, steps, inputs["further"]),
            steps,
            {key: inputs["batches"][key] for key in steps},
        )
        arrays = leaves((*rollout[:6], episodes.observation))
        report |= {f"array_{n}": each for n, each in enumerate(arrays)}
        one_round = {
            "batches": {**inputs["batches"], **filled_in},
            "usable": tf.reduce_all(report["bad"] < 0),
        }
        passed_on = {
            "totals": report["totals"],
            "step": carried["step"] + self._horizon,
            "steps": steps,
        }
        return one_round, report, passed_on

    def _transitions(self, rollout: GraphRollout) -> dict[str, Any]:
        """Returns the steps of a rollout as transitions `[T, B, ...]`."""
        goes_on = 1.0 - ops.cast(rollout.terminated, "float32")
        return {
            "observation": rollout.observation,
            "action": ops.cast(
                rollout.action, self._agent.policy.head.action_dtype
            ),
            "reward": rollout.reward,
            "discount": self._agent.gamma * goes_on,
            "next_observation": rollout.next_observation,
        }

    def begin(self, rounds: int) -> dict[str, Any]:
        """Returns the arguments of a call that makes the next rounds.

        Returns:
            dict of `inputs`, see `_noise`, `_minibatches`; and of `carried`:
            `totals`, returns and lengths of the episodes in progress, `[2, B]`
            float64; `steps`, dict of `[K * T, B, ...]`, the transitions that
            are made; and `step`, how many of them there are.
        """
        dataset = self._dataset
        dataset.fill(dataset.steps_before_first_round)
        dataset.source.actor.sync()
        self._leave_environments()
        return {
            "inputs": {
                **self._noise(rounds, dataset.source),
                **self._drawn_minibatches(rounds, dataset.buffer),
            },
            "carried": {
                "totals": dataset.source.collector.episodes.in_progress,
                "step": np.array(0, np.int32),
                "steps": self._no_steps(rounds, dataset.buffer),
            },
        }

    def _noise(self, rounds: int, source: Any) -> dict[str, np.ndarray]:
        """Returns the inputs of the noise of the next rounds.

        Returns:
            dict of `noise` `[K, T, B, ...]`, or of a `seed` for each round and
            of the numbers `noise` that change between them.
        """
        agent, generator = self._agent, source.noise
        if self._drawn_parts is not None:
            return self._noise_inputs(rounds, generator)
        shape = (self._horizon, self._env.num_envs)

        def draw() -> np.ndarray:
            drawn, source.noise_state = agent.policy.noise.draw(
                generator, shape, source.noise_state
            )
            return np.asarray(drawn)

        return {"noise": np.array(self._of_each_round(rounds, draw))}

    def _drawn_minibatches(self, rounds: int, buffer: Any) -> dict[str, Any]:
        """Returns the minibatches of the next rounds.

        Returns:
            dict of `batches`, dict of `[K, U, M, ...]`, see
            `ReplayBuffer.sample`; and of `further` `[K, U, M]` int32, see
            `ReplayBuffer.sample_ahead`.
        """
        updates, size = self._updates, self._batch_size
        steps = self._horizon * self._env.num_envs
        drawn, further = buffer.sample_ahead(
            updates * size, [steps * (k + 1) for k in range(rounds)]
        )
        drawn["weight"] = np.ones(len(further), np.float32)
        drawn = {"batches": drawn, "further": further.astype(np.int32)}
        reshaped: dict[str, Any] = map_leaves(
            lambda each: each.reshape(rounds, updates, size, *each.shape[1:]),
            drawn,
        )
        return reshaped

    def _no_steps(self, rounds: int, buffer: Any) -> dict[str, Any]:
        """Returns the transitions of rounds before any is made."""
        leading = (rounds * self._horizon, self._env.num_envs)
        spec = {k: each for k, each in buffer.spec.items() if k != "weight"}
        steps: dict[str, Any] = map_leaves(
            lambda each: np.zeros((*leading, *each.shape), each.dtype), spec
        )
        return steps

    def receive(self, reports: dict[str, np.ndarray]) -> None:
        """Hands over the steps of rounds, once the graph has made them."""
        bad = reports["bad"]
        (bad_rounds,) = np.nonzero((bad >= 0).any(axis=1))
        rounds = bad_rounds[0] if bad_rounds.size else len(bad)
        if rounds:
            ended = [
                ended_episodes({key: each[k] for key, each in reports.items()})
                for k in range(rounds)
            ]
            self._take_back(
                np.concatenate(ended, axis=1), reports["totals"][rounds - 1]
            )
            self._dataset.take_rounds(self._trajectory(reports, rounds))
        if rounds < len(bad):
            self._refuse_not_finite(bad[rounds])

    def _trajectory(
        self, reports: dict[str, np.ndarray], rounds: int
    ) -> Trajectory:
        """Returns the steps of the first rounds as one trajectory."""
        spec = self._agent.policy.observation_spec
        head = self._agent.policy.head
        form = (spec, spec, None, None, None, None, spec)
        arrays = [
            reports[f"array_{n}"][:rounds] for n in range(len(leaves(form)))
        ]
        *steps, after = with_leaves(form, arrays)
        # [K, T, B, ...] -> [K * T, B, ...]
        observation, following, *others = map_leaves(
            lambda each: each.reshape(-1, *each.shape[2:]), tuple(steps)
        )
        action, reward, terminated, truncated = others
        terminated, truncated = terminated > 0, truncated > 0
        (final_index,) = np.nonzero((terminated | truncated).reshape(-1))

        def acted_on(spec: Any, steps: np.ndarray, after: np.ndarray) -> Any:
            return np.concatenate([steps, after[-1:]]).astype(spec.dtype)

        def final(spec: Any, steps: np.ndarray) -> np.ndarray:
            rows: np.ndarray = steps.reshape(-1, *steps.shape[2:])[final_index]
            return rows.astype(spec.dtype)

        return Trajectory(
            observation=map_leaves(acted_on, spec, observation, after),
            action=action.astype(head.action_dtype),
            reward=reward.astype(np.float32),
            terminated=terminated,
            truncated=truncated,
            valid=np.ones_like(terminated),
            final_observation=map_leaves(final, spec, following),
            final_index=final_index.astype(np.int32),
        )

    def settings(self) -> tuple[Any, ...]:
        """Returns the numbers and functions that the graph is made of."""
        return (
            self._env.kind,
            self._horizon,
            self._updates,
            self._batch_size,
        )


def _written(steps: Tensor, rollout: Tensor, step: Tensor) -> Tensor:
    """Writes a rollout `[T, B, ...]` to the steps `[K * T, B, ...]`."""
    start = tf.pad(step[None], ((0, len(steps.shape) - 1),))
    return ops.slice_update(steps, start, rollout)


def _filled_in(drawn: Tensor, steps: Tensor, further: Tensor) -> Tensor:
    """Fills in transitions that are among further steps.

    Args:
        drawn: `[U, M, ...]`. Arrays of minibatches.
        steps: `[N, B, ...]`. The same arrays of further steps.
        further: `[U, M]` int32. Numbers of steps, -1 for what is drawn.

    Returns:
        `[U, M, ...]`.
    """
    rows = tf.reshape(steps, (-1, *steps.shape[2:]))
    rows = tf.gather(rows, tf.maximum(further, 0))
    more = (1,) * (len(drawn.shape) - 2)
    is_further = tf.reshape(further >= 0, (*further.shape, *more))
    return tf.where(is_further, rows, drawn)
