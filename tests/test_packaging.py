"""The layout: one top-level package, and `callbacks/` found both ways."""

import configparser
import inspect
from pathlib import Path

import pytest

import keras_rl2
from support.processes import printed_by

ROOT = Path(__file__).resolve().parents[1]


def _config():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    return config


def test_packages_are_those_on_disk():
    listed = _config()["options"]["packages"].split()
    on_disk = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in (ROOT / "keras_rl2").rglob("__init__.py")
    }
    on_disk.add("keras_rl2.callbacks")
    assert sorted(listed) == sorted(on_disk)


def test_callbacks_are_mapped_for_wheels():
    mapping = _config()["options"]["package_dir"].split("\n")
    assert "keras_rl2.callbacks = callbacks" in [m.strip() for m in mapping]
    assert (ROOT / "callbacks" / "__init__.py").is_file()


def test_callbacks_are_linked_for_checkouts():
    link = ROOT / "keras_rl2" / "callbacks"
    assert link.is_symlink()
    assert str(link.readlink()) == "../callbacks"


def test_callbacks_have_one_identity():
    callback = keras_rl2.callbacks.RolloutRefresh
    assert callback.__module__ == "keras_rl2.callbacks.rollout_refresh"


def test_nothing_named_callbacks_is_on_the_path(tmp_path):
    code = "import importlib.util as u; print(u.find_spec('callbacks'))"
    assert printed_by(code, tmp_path) == "None"


def test_importing_the_package_leaves_tensorflow_out(tmp_path):
    code = (
        "import sys, keras_rl2, keras_rl2.envs, keras_rl2.spaces;"
        "print([m for m in ('tensorflow', 'keras') if m in sys.modules])"
    )
    assert printed_by(code, tmp_path) == "[]"


def test_public_names_resolve():
    for name in keras_rl2.__all__:
        assert getattr(keras_rl2, name) is not None
    assert sorted(keras_rl2.__all__) == dir(keras_rl2)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_agent"):
        keras_rl2.no_such_agent  # noqa: B018


def test_types_are_shipped():
    assert (Path(inspect.getfile(keras_rl2)).parent / "py.typed").is_file()


def test_names_have_one_home():
    """What the lazy `__getattr__` serves is what `__all__` promises."""
    assert set(keras_rl2._HOMES) | set(keras_rl2._ROOMS) | {
        "__version__"
    } == set(keras_rl2.__all__)
