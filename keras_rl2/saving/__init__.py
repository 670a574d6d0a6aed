"""Saving an agent as one file, and its state as plain arrays."""
