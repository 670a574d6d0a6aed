from collections.abc import Sequence
from typing import Any
from typing import Self

import numpy.typing as npt
from keras import DTypePolicy
from keras import Variable
from keras.metrics import Metric

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike

class Layer:
    name: str
    built: bool
    trainable: bool
    supports_jit: bool
    supports_masking: bool
    input_spec: Any
    input: Any
    dtype_policy: DTypePolicy
    def __init__(
        self,
        *,
        activity_regularizer: Any = None,
        trainable: bool = True,
        dtype: Any = None,
        autocast: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None: ...
    # A tensor, or whatever structure of them the layer gives.
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def call(self, *args: Any, **kwargs: Any) -> Any: ...
    def build(self, *args: Any, **kwargs: Any) -> None: ...
    def add_weight(
        self,
        *args: Any,
        shape: Sequence[int] | None = None,
        initializer: Any = None,
        dtype: str | None = None,
        trainable: bool = True,
        autocast: bool = True,
        regularizer: Any = None,
        constraint: Any = None,
        aggregation: str = "none",
        overwrite_with_gradient: bool = False,
        name: str | None = None,
    ) -> Variable: ...
    def add_loss(self, loss: TensorLike | Sequence[TensorLike]) -> None: ...
    # Of layers that were called symbolically.
    @property
    def output(self) -> Any: ...
    @property
    def path(self) -> str: ...
    @property
    def variables(self) -> list[Variable]: ...
    @property
    def trainable_variables(self) -> list[Variable]: ...
    @property
    def non_trainable_variables(self) -> list[Variable]: ...
    @property
    def weights(self) -> list[Variable]: ...
    @property
    def trainable_weights(self) -> list[Variable]: ...
    @property
    def non_trainable_weights(self) -> list[Variable]: ...
    @property
    def metrics(self) -> list[Metric]: ...
    @property
    def losses(self) -> list[Tensor]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def compute_dtype(self) -> str: ...
    @property
    def variable_dtype(self) -> str: ...
    def count_params(self) -> int: ...
    def get_weights(self) -> list[npt.NDArray[Any]]: ...
    def set_weights(self, weights: Sequence[TensorLike]) -> None: ...
    def get_config(self) -> dict[str, Any]: ...
    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self: ...
    def get_build_config(self) -> dict[str, Any] | None: ...
    def build_from_config(self, config: dict[str, Any] | None) -> None: ...
    def save_own_variables(self, store: Any) -> None: ...
    def load_own_variables(self, store: Any) -> None: ...
    def compute_output_shape(self, *args: Any, **kwargs: Any) -> Any: ...
    def stateless_call(
        self,
        trainable_variables: Sequence[TensorLike],
        non_trainable_variables: Sequence[TensorLike],
        *args: Any,
        return_losses: bool = False,
        **kwargs: Any,
    ) -> Any: ...

class Dense(Layer):
    units: int
    activation: Any
    kernel: Variable
    bias: Variable | None
    use_bias: bool
    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None: ...

class Conv2D(Layer):
    def __init__(
        self,
        filters: int,
        kernel_size: int | tuple[int, int],
        strides: int | tuple[int, int] = (1, 1),
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: int | tuple[int, int] = (1, 1),
        groups: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None: ...

class Flatten(Layer):
    def __init__(
        self, data_format: str | None = None, **kwargs: Any
    ) -> None: ...

class Permute(Layer):
    def __init__(self, dims: Sequence[int], **kwargs: Any) -> None: ...

class Concatenate(Layer):
    def __init__(self, axis: int = -1, **kwargs: Any) -> None: ...

class Softmax(Layer):
    def __init__(self, axis: int = -1, **kwargs: Any) -> None: ...

class Reshape(Layer):
    def __init__(self, target_shape: Sequence[int], **kwargs: Any) -> None: ...

class Rescaling(Layer):
    def __init__(
        self, scale: Any, offset: Any = 0.0, **kwargs: Any
    ) -> None: ...

class Lambda(Layer):
    def __init__(
        self,
        function: Any,
        output_shape: Any = None,
        mask: Any = None,
        arguments: Any = None,
        **kwargs: Any,
    ) -> None: ...

def __getattr__(name: str) -> Any: ...
