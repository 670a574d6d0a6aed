"""Callbacks for `fit`; every stock Keras callback works beside them."""

from keras_rl2.callbacks.evaluation import Evaluation
from keras_rl2.callbacks.rollout_refresh import RolloutRefresh
from keras_rl2.callbacks.tensorboard import TensorBoard

__all__ = ["Evaluation", "RolloutRefresh", "TensorBoard"]
