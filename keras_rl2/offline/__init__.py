"""Recorded data: written, read, summed up, and learned from."""
