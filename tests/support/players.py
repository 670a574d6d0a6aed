"""Players whose episodes end apart, behind each interface of environments.

Player p is in the game for LENGTHS[p] steps, each with a reward of 1 + p. The
episode of player 1 is truncated, those of the others are terminated. An
observation is the player and the time since its first step. Rows that wait
show DEAD, unless another class decides.
"""

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import keras_rl2 as rl

LENGTHS = np.array([2, 5, 3])
TRUNCATED = np.array([False, True, False])
NAMES = ("p_0", "p_1", "p_2")
DEAD = -1.0
OBSERVATION = spaces.Box(-1.0, 9.0, (2,), np.float32)
ACTION = spaces.Discrete(2)


class Apart:
    """A game of PettingZoo's parallel interface.

    Players come after some steps of the game, `comes`.
    """

    possible_agents = NAMES
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    render_mode = None

    def __init__(self, comes=(0, 0, 1), include_mask=False):
        self.comes = np.array(comes)
        self.include_mask = include_mask
        self.seeds = []

    @property
    def unwrapped(self):
        return self

    def __str__(self):
        return "apart"

    def observation_space(self, player):
        return OBSERVATION

    def action_space(self, player):
        return ACTION

    def state(self):
        return np.array([self.time], np.float32)

    def observe(self, players):
        return {
            name: np.array([p, self.time - self.comes[p]], np.float32)
            for p, name in enumerate(NAMES)
            if name in players
        }

    def infos(self, players):
        mask = {"action_mask": np.array([1, self.time % 2], np.int8)}
        return {name: mask if self.include_mask else {} for name in players}

    def reset(self, seed=None, options=None):
        self.seeds.append(seed)
        self.time = 0
        self.agents = [NAMES[p] for p in range(3) if not self.comes[p]]
        return self.observe(self.agents), self.infos(self.agents)

    def step(self, actions):
        assert [*actions] == self.agents
        self.time += 1
        ended = self.time - self.comes >= LENGTHS
        acted, places = self.agents, [NAMES.index(n) for n in self.agents]
        come = [NAMES[p] for p in range(3) if self.comes[p] == self.time]
        self.agents = [NAMES[p] for p in places if not ended[p]] + come
        return (
            self.observe(acted + come),
            {NAMES[p]: 1.0 + p for p in places},
            {NAMES[p]: bool(ended[p] and not TRUNCATED[p]) for p in places},
            {NAMES[p]: bool(ended[p] and TRUNCATED[p]) for p in places},
            self.infos(acted + come),
        )

    def render(self):
        return np.full((4, 4, 3), 10 * self.time, np.uint8)

    def close(self):
        self.closed = True

    def get_state(self):
        return {"time": self.time, "agents": [*self.agents]}

    def set_state(self, state):
        self.time, self.agents = state["time"], [*state["agents"]]


class ApartEnv(rl.envs.VectorEnvAdapter):
    """The same players behind an adapter of a user's own.

    The next game begins within the step that ends the last episode, or in the
    step after it.
    """

    def __init__(self, resets_within):
        super().__init__(self, len(NAMES), OBSERVATION, ACTION)
        self.masks_reset_rows = not resets_within
        self.players = NAMES

    def observe(self):
        seen = np.stack([np.arange(3), self.time], axis=1).astype(np.float32)
        seen[self.waited] = DEAD
        return seen

    def reset_envs(self, seed):
        self.time = np.zeros(3, np.int64)
        self.pending_reset = self.waited = np.zeros(3, np.bool_)
        return self.observe()

    def step_envs(self, action):
        waited = self.waited = self.pending_reset
        self.time += ~waited
        ended = ~waited & (self.time == LENGTHS)
        reward = np.where(waited, 0.0, 1.0 + np.arange(3)).astype(np.float32)
        final = observation = self.observe()
        self.pending_reset = waited | ended
        if (waited if self.masks_reset_rows else self.pending_reset).all():
            observation = self.reset_envs(None)
        if self.masks_reset_rows or not ended.any():
            final = None
        return observation, reward, ended & ~TRUNCATED, ended & TRUNCATED, final

    def close(self):
        pass


class OneOfThem(gymnasium.Env):
    """One of the players as an environment of its own."""

    observation_space, action_space = OBSERVATION, ACTION

    def __init__(self, player):
        self.player = player

    def observe(self):
        return np.array([self.player, self.time], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.observe(), {}

    def step(self, action):
        self.time += 1
        ended = bool(self.time == LENGTHS[self.player])
        truncated = bool(TRUNCATED[self.player])
        ends = ended and not truncated, ended and truncated
        return self.observe(), 1.0 + self.player, *ends, {}


def vector_env(mode):
    """Gymnasium's vector environment, of rows that do not wait for others."""
    return gymnasium.vector.SyncVectorEnv(
        [lambda p=p: OneOfThem(p) for p in range(3)], autoreset_mode=mode
    )


def of_supersuit():
    """Games in SuperSuit's vectors; its wrapper hides who is out of them."""
    import supersuit

    class Parallel(Apart, __import__("pettingzoo").ParallelEnv):
        observation_spaces = dict.fromkeys(NAMES, OBSERVATION)
        action_spaces = dict.fromkeys(NAMES, ACTION)

    game = supersuit.black_death_v3(Parallel(comes=(0, 0, 0)))
    vector = supersuit.pettingzoo_env_to_vec_env_v1(game)
    return supersuit.concat_vec_envs_v1(vector, 2, num_cpus=0)


#: Functions that make the environments, by name.
INTERFACES = {
    "games": lambda: rl.envs.parallel(Apart, 2),
    "supersuit": of_supersuit,
    "own, next step": lambda: ApartEnv(resets_within=False),
    "own, same step": lambda: ApartEnv(resets_within=True),
    **{
        mode.value: lambda mode=mode: vector_env(mode)
        for mode in (
            AutoresetMode.NEXT_STEP,
            AutoresetMode.SAME_STEP,
            AutoresetMode.DISABLED,
        )
    },
}
