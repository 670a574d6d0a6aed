from typing import Any

from keras_rl2.basics.shapes import Tensor

class Initializer:
    def __call__(self, shape: Any, dtype: str | None = None) -> Tensor: ...
    def get_config(self) -> dict[str, Any]: ...

class Constant(Initializer):
    def __init__(self, value: Any = 0.0) -> None: ...

class VarianceScaling(Initializer):
    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: Any = None,
        input_axes: Any = None,
        output_axes: Any = None,
    ) -> None: ...

class RandomUniform(Initializer):
    def __init__(
        self, minval: float = -0.05, maxval: float = 0.05, seed: Any = None
    ) -> None: ...

class Orthogonal(Initializer):
    def __init__(self, gain: float = 1.0, seed: Any = None) -> None: ...

def __getattr__(name: str) -> Any: ...
