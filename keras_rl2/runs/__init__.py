"""Runs: an agent, a dataset and a training, made from a preset."""
