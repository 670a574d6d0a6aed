"""Training: what `fit` does, round after round."""
