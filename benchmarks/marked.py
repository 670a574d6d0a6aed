"""Parts of pages that commands write."""

import re


def write_between(path, name, text):
    """Puts a text between the marks of a page, in the place of what is there.

    Args:
        path: The page, with `<!-- NAME: written by ... -->` and
            `<!-- /NAME -->`.
        name: What the marks are called.
        text: What to write.
    """
    page = path.read_text("utf-8")
    pattern = rf"(<!-- {name}:[^>]*-->\n).*?(<!-- /{name} -->)"
    changed, count = re.subn(
        pattern,
        lambda found: f"{found[1]}\n{text}\n\n{found[2]}",
        page,
        flags=re.DOTALL,
    )
    if count != 1:
        raise ValueError(
            f"Expected the marks of {name!r} once. Received: {path}, "
            f"with {count}"
        )
    path.write_text(changed, "utf-8")
