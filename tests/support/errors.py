"""What errors ought to say."""

import pytest


def raises(expected, received):
    """Expects an error that names both."""
    return pytest.raises(
        ValueError, match=f"(?s){expected}.*Received.*{received}"
    )
