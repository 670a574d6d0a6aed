from typing import Any

from tensorflow import Tensor

from keras_rl2.basics.shapes import TensorLike

def multiply_no_nan(
    x: TensorLike, y: TensorLike, name: str | None = None
) -> Tensor: ...
def __getattr__(name: str) -> Any: ...
