"""What `RayWorkers` refuse, with Ray and without."""

import sys

import pytest

import keras_rl2 as rl
from support.processes import printed_by


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"num_cpus_per_worker": -1}, "num_cpus_per_worker=-1"),
        ({"num_cpus_per_worker": float("nan")}, "num_cpus_per_worker=nan"),
        ({"options": {"max_restarts": 3}}, r"\['max_restarts'\]"),
        ({"options": {"num_cpus": 3, "num_gpus": 1}}, r"\['num_cpus'\]"),
        ({"min_workers": 3}, "min_workers=3"),
        ({"timeout": 0}, "timeout=0"),
    ],
)
def test_arguments_out_of_bounds(arguments, named):
    with pytest.raises(ValueError, match=named):
        rl.RayWorkers(2, **arguments)


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    workers = rl.RayWorkers(2)
    with pytest.raises(ImportError, match=r"keras-rl2-fit\[ray\]"):
        workers.start("CartPole-v1", 2)


def test_ray_is_imported_when_it_is_needed(tmp_path):
    code = (
        "import sys, keras_rl2 as rl; rl.RayWorkers(2);"
        "print('ray' in sys.modules)"
    )
    assert printed_by(code, tmp_path) == "False"


def test_the_host_of_an_actor_needs_no_ray(tmp_path):
    code = (
        "import sys; sys.modules['ray'] = None;"
        "from keras_rl2.workers.ray_host import RayHost;"
        "host = RayHost(); host.ping();"
        "print(host.call(0, 'reset', None)[0]); host.close()"
    )
    assert printed_by(code, tmp_path) == "False"
