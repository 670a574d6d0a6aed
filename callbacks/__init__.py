"""Callbacks for `fit`; every stock Keras callback works beside them."""

from keras_rl2.callbacks.evaluation import Evaluation
from keras_rl2.callbacks.rollout_refresh import RolloutRefresh
from keras_rl2.callbacks.target_network_sync import TargetNetworkSync
from keras_rl2.callbacks.tensorboard import TensorBoard

__all__ = ["Evaluation", "RolloutRefresh", "TargetNetworkSync", "TensorBoard"]
