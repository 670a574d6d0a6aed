"""Gymnasium's Taxi: version 4 came with Gymnasium 1.3."""

import gymnasium

TAXI = max(name for name in gymnasium.registry if name.startswith("Taxi-v"))
