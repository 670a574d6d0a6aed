"""Updates: gradients, skipped steps, target networks, statistics."""
