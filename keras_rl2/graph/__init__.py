"""Rounds that are one program: environments, policy and updates in a graph."""
