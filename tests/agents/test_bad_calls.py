"""Each argument that cannot be meant is refused by us, in one form."""

import importlib.util
import traceback
from pathlib import Path

import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2 import callbacks
from support.agents import EVERY_AGENT
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_rollouts
from support.agents import weights_of
from support.bad_calls import CALLS

OURS = {
    Path(rl.__file__).parent.resolve(),
    Path(callbacks.__file__).parent.resolve(),
}


def refusals(calls):
    """Returns what is wrong with how calls are refused, in a line each."""
    for name, call, argument, value in calls:
        label = f"{name}({argument}={value!r})"
        try:
            call(**{argument: value})
        except (TypeError, ValueError) as error:
            last = traceback.extract_tb(error.__traceback__)[-1].filename
            text = str(error)
            if not OURS & set(Path(last).resolve().parents):
                yield f"{label}: raised in {last}: {text}"
            elif "Expected" not in text or "Received" not in text:
                yield f"{label}: said {text}"
        except Exception as error:
            yield f"{label}: {type(error).__name__}: {error}"
        else:
            yield f"{label}: said nothing"


def test_they_are_many_and_different():
    labels = {
        (name, argument, repr(value)) for name, _, argument, value in CALLS
    }
    assert len(labels) == len(CALLS) > 1300
    assert len({name for name, *_ in CALLS}) >= 50


def test_what_cannot_be_meant_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # A file of Stable-Baselines3 is read by PyTorch.
    left_out = () if importlib.util.find_spec("torch") else ("from_sb3",)
    calls = [call for call in CALLS if call[0] not in left_out]
    assert list(refusals(calls)) == []
    # And leaves nothing behind.
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_changed_by_what_is_refused():
    agent = make_eager_agent(EVERY_AGENT["PPO"], make_env())
    rollouts = make_rollouts(make_env())
    before, optimizer = weights_of(agent), agent.optimizer
    for call in (
        lambda: agent.fit(rollouts, epochs=0),
        lambda: agent.fit(rollouts, verbose="x"),
        lambda: agent.fit(rollouts, callbacks=["x"]),
        lambda: agent.compile(jit_compile="yes"),
        lambda: agent.evaluate(make_env(), episodes=float("nan")),
    ):
        with pytest.raises(ValueError, match=r"Expected .*Received"):
            call()
    assert agent.env_steps == 0
    assert agent.optimizer is optimizer
    for one, other in zip(weights_of(agent), before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_numbers_of_numpy_are_as_good():
    env = make_env()
    agent = rl.PPO.for_env(
        env,
        hidden=np.array([8]),
        gamma=np.float32(0.9),
        clip_ratio=1,
        normalize_advantages=np.True_,
        seed=np.int64(3),
    )
    agent.compile(run_eagerly=np.True_, steps_per_execution=np.int64(1))
    rollouts = make_rollouts(env, horizon=np.int32(8), passes=np.uint8(1))
    history = agent.fit(rollouts, epochs=np.int64(1), verbose=False)
    assert history.epoch == [0]
    replay = rl.ReplayDataset(
        env, prioritized=True, beta=1, alpha=np.float64(0)
    )
    assert (replay.alpha, replay.beta) == (0, 1)
    agent.act(np.zeros(3), deterministic=np.True_)
    assert agent.evaluate(env, episodes=np.int64(1))["episode_length"] == 5
