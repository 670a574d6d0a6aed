"""Basic functions for every room: checks, shapes, seeds, clocks."""
