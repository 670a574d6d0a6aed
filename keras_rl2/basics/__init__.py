"""Small things that every room may use: checks, shapes, seeds, clocks."""
