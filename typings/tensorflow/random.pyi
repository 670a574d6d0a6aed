from typing import Any

from tensorflow import Tensor

from keras_rl2.basics.shapes import TensorLike

def stateless_normal(
    shape: Any,
    seed: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: Any = ...,
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor: ...
def __getattr__(name: str) -> Any: ...
