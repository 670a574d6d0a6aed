import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Builds the site; returns the folder of its `index.html`."""
    for name in ("sphinx", "furo", "myst_nb"):
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


@pytest.fixture(scope="session")
def browser():
    """Returns the first browser that is installed."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    return found or pytest.skip("needs a browser: apt-get install chromium")


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a line for each."""

    def log_message(self, format, *args):
        """Logs nothing."""


@pytest.fixture(scope="session")
def address(request, browser):
    """Serves the site, or the folder `SITE`; yields its address."""
    built = os.environ.get("SITE")
    folder = built or str(request.getfixturevalue("site"))
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
