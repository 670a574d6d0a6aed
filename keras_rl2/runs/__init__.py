"""Runs: a preset becomes an agent, its dataset and its training."""
