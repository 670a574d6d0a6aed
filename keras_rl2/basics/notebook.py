"""What is shown in a notebook, of Jupyter or of an editor.

IPython is asked for nothing where none is running, and never imported.
"""

import base64
import html
import sys
from pathlib import Path
from typing import Any

# What fits into a page, and into a file that is kept with a program.
_LARGEST_FILM = 2**24
_FORMATS = {".gif": "image/gif", ".mp4": "video/mp4"}


def is_running() -> bool:
    """Says whether this process is the kernel of a notebook."""
    return _shell() is not None


class Display:
    """A place in the output of a cell, in which the newest stands.

    It is where the first was shown; what comes later takes its place, so that
    a long training leaves one output and not one for each line.
    """

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str, markup: str) -> None:
        """Shows something, in the place of what was shown before.

        Args:
            text: str. For what shows plain text only.
            markup: str. The same as HTML.
        """
        shown = {"text/plain": text, "text/html": markup}
        if self._handle is not None:
            self._handle.update(shown, raw=True)
        elif is_running():
            # Public, and there where a kernel is.
            display = sys.modules["IPython"].display.display
            self._handle = display(shown, raw=True, display_id=True)


def line(text: str, share: float | None = None) -> str:
    """Returns a line of text as HTML, behind a bar perhaps.

    Args:
        text: str.
        share: float or None. What the bar shows, from 0 to 1; None for no
            bar. Defaults to `None`.

    Example:

    >>> line("1 < 2")
    '<code>1 &lt; 2</code>'
    """
    bar = "" if share is None else f'<progress value="{share:.3f}"></progress> '
    return f"{bar}<code>{html.escape(text)}</code>"


def film(path: Path) -> str:
    """Returns HTML that holds a film, or only names a very large one.

    Args:
        path: Path. A `.gif` or `.mp4`.
    """
    name = html.escape(str(path))
    if not path.is_file() or path.stat().st_size > _LARGEST_FILM:
        return f"<code>{name}</code>"
    kind = _FORMATS[path.suffix.lower()]
    data = base64.b64encode(path.read_bytes()).decode()
    source = f'src="data:{kind};base64,{data}"'
    if kind.startswith("video"):
        return f"<video controls autoplay muted loop {source}></video>"
    return f'<img alt="{name}" {source}>'


def _shell() -> Any:
    """Returns IPython's shell if it has a kernel; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if hasattr(shell, "kernel") else None
