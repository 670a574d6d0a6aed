from typing import Any

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike

class LearningRateSchedule:
    def __call__(self, step: TensorLike) -> Tensor: ...
    def get_config(self) -> dict[str, Any]: ...

class PolynomialDecay(LearningRateSchedule):
    initial_learning_rate: float
    decay_steps: int
    end_learning_rate: float
    def __init__(
        self,
        initial_learning_rate: float,
        decay_steps: int,
        end_learning_rate: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        name: str = "PolynomialDecay",
    ) -> None: ...

def __getattr__(name: str) -> Any: ...
