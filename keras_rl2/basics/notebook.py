"""Output in a notebook, of Jupyter or of an editor.

IPython is never imported, and used only where it is running.
"""

import base64
import html
import sys
from pathlib import Path
from typing import Any

# Limit for videos, for a page and a file that is kept with a program.
_LARGEST_VIDEO = 2**24
_FORMATS = {".gif": "image/gif", ".mp4": "video/mp4"}


def is_running() -> bool:
    """Returns whether this process is the kernel of a notebook."""
    return _shell() is not None


class Display:
    """A place in the output of a cell, which shows the newest content.

    Later content replaces the first, so that a long training leaves one output
    and not one for each line.
    """

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str, markup: str) -> None:
        """Shows content in place of the former one.

        Args:
            text: str. Plain text, for frontends without HTML.
            markup: str. The same as HTML.
        """
        shown = {"text/plain": text, "text/html": markup}
        if self._handle is not None:
            self._handle.update(shown, raw=True)
        elif is_running():
            # Public, and available where a kernel is running.
            display = sys.modules["IPython"].display.display
            self._handle = display(shown, raw=True, display_id=True)


def line(text: str, share: float | None = None) -> str:
    """Returns a line of text as HTML, optionally after a bar.

    Args:
        text: str.
        share: float or None. Filled share of the bar, from 0 to 1; None for no
            bar. Defaults to `None`.

    Example:

    >>> line("1 < 2")
    '<code>1 &lt; 2</code>'
    """
    bar = "" if share is None else f'<progress value="{share:.3f}"></progress> '
    return f"{bar}<code>{html.escape(text)}</code>"


def video(path: Path) -> str:
    """Returns HTML with a video, or with the name of a very large one.

    Args:
        path: Path. A `.gif` or `.mp4`.
    """
    name = html.escape(str(path))
    if not path.is_file() or path.stat().st_size > _LARGEST_VIDEO:
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
