from typing import Any

from tensorflow import Tensor

from keras_rl2.basics.shapes import TensorLike

def EnsureShape(*, input: TensorLike, shape: Any, name: str = "") -> Tensor: ...
def __getattr__(name: str) -> Any: ...
