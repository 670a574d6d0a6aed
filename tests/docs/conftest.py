import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Builds the site; returns the folder of its `index.html`."""
    for name in ("sphinx", "furo", "myst_nb", "sphinx_design"):
        pytest.importorskip(name, reason='needs Sphinx: pip install ".[docs]"')
    folder = tmp_path_factory.mktemp("site")
    options = ["-W", "--keep-going", "-q", "-c", "website"]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, ".", str(folder)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder
