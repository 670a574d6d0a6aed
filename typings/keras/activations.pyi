from typing import Any

from keras_rl2.shapes import Tensor
from keras_rl2.shapes import TensorLike

def relu(
    x: TensorLike,
    negative_slope: float = 0.0,
    max_value: float | None = None,
    threshold: float = 0.0,
) -> Tensor: ...
def tanh(x: TensorLike) -> Tensor: ...
def __getattr__(name: str) -> Any: ...
