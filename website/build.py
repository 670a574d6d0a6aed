"""Builds the site: `python website/build.py FOLDER`; warnings are errors."""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def build(folder: str) -> int:
    """Builds the site into a folder.

    Args:
        folder: str. Where its `index.html` is to be.

    Returns:
        int: exit code, 0 if there was no warning.
    """
    from sphinx.cmd.build import main

    from website.pages import gather

    with tempfile.TemporaryDirectory() as work:
        gather(Path(work) / "pages")
        return main(
            [
                *("-W", "--keep-going", "-q", "-b", "html"),
                *("-c", str(ROOT / "website")),
                *("-d", str(Path(work) / "doctrees")),
                *(str(Path(work) / "pages"), folder),
            ]
        )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python website/build.py FOLDER")
    sys.exit(build(sys.argv[1]))
