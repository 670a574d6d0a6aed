from collections.abc import Sequence
from typing import Any
from typing import Self

from keras import Variable
from keras.optimizers import schedules as schedules

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike

class Optimizer:
    name: str
    built: bool
    loss_scale_factor: float | None
    # A schedule may be assigned; what is read is a number or a variable.
    learning_rate: Any
    @property
    def iterations(self) -> Variable: ...
    @property
    def variables(self) -> list[Variable]: ...
    def build(self, variables: Sequence[Variable]) -> None: ...
    def finalize_variable_values(
        self, var_list: Sequence[Variable]
    ) -> None: ...
    def apply(
        self,
        grads: Sequence[Tensor | None],
        trainable_variables: Sequence[Variable] | None = None,
    ) -> Tensor: ...
    def scale_loss(self, loss: TensorLike) -> Tensor: ...
    def set_weights(self, weights: Sequence[TensorLike]) -> None: ...
    def save_own_variables(self, store: Any) -> None: ...
    def load_own_variables(self, store: Any) -> None: ...
    def get_config(self) -> dict[str, Any]: ...
    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> Self: ...

class MultiOptimizer(Optimizer):
    optimizers: list[Optimizer]
    def __init__(self, optimizer_map: Any, **kwargs: Any) -> None: ...

class Adam(Optimizer):
    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-07,
        amsgrad: bool = False,
        **kwargs: Any,
    ) -> None: ...

class AdamW(Optimizer):
    def __init__(
        self,
        learning_rate: Any = 0.001,
        weight_decay: float = 0.004,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-07,
        amsgrad: bool = False,
        **kwargs: Any,
    ) -> None: ...

class SGD(Optimizer):
    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        **kwargs: Any,
    ) -> None: ...

class RMSprop(Optimizer):
    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-07,
        centered: bool = False,
        **kwargs: Any,
    ) -> None: ...

class LossScaleOptimizer(Optimizer):
    inner_optimizer: Optimizer
    dynamic_scale: Variable
    step_counter: Variable
    dynamic_growth_steps: int
    def __init__(
        self,
        inner_optimizer: Optimizer,
        initial_scale: float = 32768.0,
        dynamic_growth_steps: int = 2000,
        name: str | None = None,
        **kwargs: Any,
    ) -> None: ...

def get(identifier: Any) -> Optimizer: ...
def __getattr__(name: str) -> Any: ...
