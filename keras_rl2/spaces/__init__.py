"""Observations and actions as trees of arrays, without Keras."""
