"""Basic functions for all packages: checks, shapes, seeds, clocks."""
