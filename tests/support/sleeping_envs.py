"""Environments that wait, as a slow simulator does, without computing."""

import time

import gymnasium

SECONDS = 0.005


class Sleeping(gymnasium.Wrapper):
    """Waits in each step."""

    def step(self, action):
        time.sleep(SECONDS)
        return self.env.step(action)


def cartpole():
    """Makes a CartPole-v1 whose steps take 5 ms."""
    return Sleeping(gymnasium.make("CartPole-v1"))
