"""Training: the rounds of `fit`."""
