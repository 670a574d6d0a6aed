"""Replay buffers: transitions and sequences in rings of arrays."""
