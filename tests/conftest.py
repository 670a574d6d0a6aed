"""What tests of several rooms ask for."""

import pytest

from keras_rl2.agents import fitting


@pytest.fixture
def without_xla(monkeypatch):
    """Compiling takes longer than all that some tests train."""
    monkeypatch.setattr(fitting, "_pays_to_compile", lambda *_: False)
