"""The form of messages of errors."""

import pytest


def raises(expected, received):
    """Expects an error that names both."""
    return pytest.raises(
        ValueError, match=f"(?s){expected}.*Received.*{received}"
    )
