"""Trainings that somebody else sets up, without graphs."""

import contextlib

import pytest

import keras_rl2 as rl


@contextlib.contextmanager
def eagerly():
    """Has all agents train eagerly, as `compile(run_eagerly=True)` has one.

    To trace a graph takes longer than a few updates do.
    """
    always = property(lambda agent: True, lambda agent, value: None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rl.Agent, "run_eagerly", always, raising=False)
        yield
