"""Training for a tuner: several seeds as one trial."""

from keras_rl2.tuning.fit_seeds import fit_seeds

__all__ = ["fit_seeds"]
