"""Recorded data: datasets, their files, and evaluation from them."""
