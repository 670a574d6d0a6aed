"""An agent as one file, and as plain arrays."""
