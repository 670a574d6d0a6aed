"""What notebooks show: a bar that is rewritten, and films."""

import os
import re
import sys
import types

import pytest

import keras_rl2 as rl
from keras_rl2.basics import notebook
from support.agents import EVERY_AGENT
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_rollouts


class Kernel:
    """Stands for IPython in a notebook; keeps what is displayed and when."""

    def __init__(self, monkeypatch, **shell):
        self.outputs = []
        self.updates = 0
        display = types.SimpleNamespace(display=self.display)
        made = types.SimpleNamespace(**shell)
        ipython = types.SimpleNamespace(
            get_ipython=lambda: made, display=display
        )
        monkeypatch.setitem(sys.modules, "IPython", ipython)

    def display(self, shown, *, raw, display_id):
        assert raw
        assert display_id is True
        self.outputs.append(shown)
        return types.SimpleNamespace(update=self.update)

    def update(self, shown, *, raw):
        assert raw
        self.updates += 1
        self.outputs[-1] = shown


@pytest.fixture
def fit():
    """Trains an agent with whatever `fit` is given."""
    env = make_env()
    agent = make_eager_agent(EVERY_AGENT["PPO"], env)
    rollouts = make_rollouts(env)
    return lambda **arguments: agent.fit(rollouts, **arguments)


def test_a_fit_is_one_output_of_a_notebook(monkeypatch, capsys, fit):
    kernel = Kernel(monkeypatch, kernel=object())
    line = "keras_rl2.callbacks.progress._NotebookLine.redraw_seconds"
    monkeypatch.setattr(line, 1e-9)
    fit(epochs=3)
    assert capsys.readouterr().out == ""
    [shown] = kernel.outputs
    assert shown["text/plain"] in shown["text/html"]
    assert re.match(r"\d+ steps in 0:\d\d ", shown["text/plain"])
    assert kernel.updates >= 3
    # The next one has an output of its own.
    fit(epochs=1)
    assert len(kernel.outputs) == 2


def test_a_stream_is_written_to_in_a_notebook_too(monkeypatch, capsys, fit):
    kernel = Kernel(monkeypatch, kernel=object())
    fit(callbacks=[rl.callbacks.Progress(stream=sys.stdout)])
    assert kernel.outputs == []
    assert "steps in" in capsys.readouterr().out


def test_ipython_in_a_terminal_is_no_notebook(monkeypatch, capsys, fit):
    kernel = Kernel(monkeypatch)
    fit()
    assert kernel.outputs == []
    assert "steps in" in capsys.readouterr().out
    monkeypatch.undo()
    assert not notebook.is_running()
    notebook.Display().show("text", "markup")


def test_the_bar_is_as_long_as_the_share_done():
    assert notebook.line("a < b", 0.25) == (
        '<progress value="0.250"></progress> <code>a &lt; b</code>'
    )


def test_a_film_is_held_by_the_page(tmp_path):
    for name, starts in (
        (
            "film.gif",
            '<img alt="[^"]*film.gif" src="data:image/gif;base64,RklM',
        ),
        ("film.mp4", '<video controls .*src="data:video/mp4;base64,RklM'),
    ):
        path = tmp_path / name
        path.write_bytes(b"FILM" * 10)
        assert re.match(starts, notebook.video(path))
        os.truncate(path, 2**24 + 1)
        assert notebook.video(path) == f"<code>{path}</code>"
