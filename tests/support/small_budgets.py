"""Trainings of the pages, cut short.

Pages train as one would, for a million steps; what is tested is that each line
does what the page says, not what is learned. So `fit` takes two rounds or two
hundred steps, or two epochs, of a few rounds or updates, where the page asks
for more, and evaluations and recordings are as short.
"""

import functools
import inspect

import keras_rl2 as rl
from keras_rl2.data import OfflineDataset
from keras_rl2.data import ReplayDataset
from keras_rl2.data import RoundDataset
from keras_rl2.offline.offline_evaluation import OfflineEvaluation
from keras_rl2.training import fitting

STEPS = 200
EPOCHS = 2
ROUNDS = 4
RECORDED = 1000
EPISODES = 2
UPDATES = 20


def shrink(monkeypatch):
    """Cuts short what trains, plays and records.

    Args:
        monkeypatch: pytest's.
    """
    monkeypatch.setattr(fitting, "fit", _short_fit(fitting.fit))
    monkeypatch.setattr(rl, "record", _short_record(rl.record))
    for kind, limits in (
        (rl.EvaluationDataset, {"episodes": EPISODES}),
        (OfflineEvaluation, {"updates": UPDATES}),
        (ReplayDataset, {"warm_up": 100, "rounds_per_epoch": ROUNDS}),
        (OfflineDataset, {"updates_per_epoch": UPDATES}),
    ):
        made = _limited(kind.__init__, limits)
        monkeypatch.setattr(kind, "__init__", made)


def _limited(function, limits):
    """Returns a function that takes no more than this of some arguments."""

    signature = inspect.signature(function)

    @functools.wraps(function)
    def limited(*args, **kwargs):
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        for name, most in limits.items():
            asked = given.arguments[name]
            given.arguments[name] = most if asked is None else min(asked, most)
        return function(*given.args, **given.kwargs)

    return limited


def _short_fit(fit):
    @functools.wraps(fit)
    def short(agent, keras_fit, x, **kwargs):
        if kwargs.get("total_steps") is not None and isinstance(
            x, RoundDataset
        ):
            # What a round is, the agent knows where nobody said it.
            x.bind(agent)
            most = max(STEPS, 2 * x.fewest_steps_per_round)
            most += getattr(x, "warm_up", 0)
            kwargs["total_steps"] = min(kwargs["total_steps"], most)
        if kwargs.get("epochs") is not None:
            last = kwargs.get("initial_epoch", 0) + EPOCHS
            kwargs["epochs"] = min(kwargs["epochs"], last)
        return fit(agent, keras_fit, x, **kwargs)

    return short


def _short_record(record):
    @functools.wraps(record)
    def short(policy, env, steps, *args, **kwargs):
        return record(policy, env, min(steps, RECORDED), *args, **kwargs)

    return short
