from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Self

import numpy.typing as npt
import tensorflow as tf
from keras import activations as activations
from keras import backend as backend
from keras import callbacks as callbacks
from keras import config as config
from keras import initializers as initializers
from keras import layers as layers
from keras import metrics as metrics
from keras import models as models
from keras import ops as ops
from keras import optimizers as optimizers
from keras import saving as saving
from keras import tree as tree
from keras import utils as utils
from keras.layers import Layer as _Layer
from tensorflow._operators import Operators

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike

__version__: str

class KerasTensor(Operators):
    name: str
    def __init__(
        self,
        shape: Sequence[int | None],
        dtype: str = "float32",
        sparse: bool = False,
        ragged: bool = False,
        record_history: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None: ...
    @property
    def shape(self) -> tuple[int | None, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def ndim(self) -> int: ...

class Variable(Operators):
    trainable: bool
    constraint: Any
    regularizer: Any
    def __init__(
        self,
        initializer: Any,
        shape: Sequence[int] | None = None,
        dtype: str | None = None,
        trainable: bool = True,
        autocast: bool = True,
        aggregation: str = "none",
        synchronization: str = "auto",
        name: str | None = None,
        layout: Any = None,
        **kwargs: Any,
    ) -> None: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def ndim(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def path(self) -> str: ...
    # Of the TensorFlow backend, and outside of scopes that cast it.
    @property
    def value(self) -> tf.Variable: ...
    def numpy(self) -> npt.NDArray[Any]: ...
    def assign(self, value: TensorLike) -> Tensor: ...
    def assign_add(self, value: TensorLike) -> Tensor: ...
    def assign_sub(self, value: TensorLike) -> Tensor: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...

class DTypePolicy:
    def __init__(self, name: str, source_name: str | None = None) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def compute_dtype(self) -> str: ...
    @property
    def variable_dtype(self) -> str: ...

class InputSpec:
    name: str | None
    shape: tuple[int | None, ...]
    dtype: str | None
    def __init__(
        self,
        dtype: str | None = None,
        shape: Sequence[int | None] | None = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: Mapping[int, int | None] | None = None,
        allow_last_axis_squeeze: bool = False,
        name: str | None = None,
        optional: bool = False,
    ) -> None: ...

class StatelessScope:
    def __init__(
        self,
        state_mapping: Any = None,
        collect_losses: bool = False,
        initialize_variables: bool = True,
    ) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    @property
    def losses(self) -> list[Tensor]: ...
    def add_update(self, update: tuple[Variable, Any]) -> None: ...
    def get_current_value(self, variable: Variable) -> Tensor | None: ...

class Model(_Layer):
    optimizer: optimizers.Optimizer
    compiled: bool
    stop_training: bool
    history: callbacks.History
    train_function: Any
    steps_per_execution: int
    run_eagerly: bool
    jit_compile: Any
    outputs: list[KerasTensor]
    input_shape: Any
    output_shape: Any
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    @property
    def input(self) -> Any: ...
    @property
    def inputs(self) -> list[KerasTensor]: ...
    @property
    def layers(self) -> list[_Layer]: ...
    def get_layer(
        self, name: str | None = None, index: int | None = None
    ) -> _Layer: ...
    def summary(self, *args: Any, **kwargs: Any) -> None: ...
    # An agent asks for other arguments than a model does in general.
    def compile(self, *args: Any, **kwargs: Any) -> None: ...
    def fit(self, *args: Any, **kwargs: Any) -> callbacks.History: ...
    def evaluate(self, *args: Any, **kwargs: Any) -> Any: ...
    def predict(self, *args: Any, **kwargs: Any) -> Any: ...
    def predict_on_batch(self, x: Any) -> Any: ...
    def export(self, *args: Any, **kwargs: Any) -> None: ...
    def save(self, filepath: Any, *args: Any, **kwargs: Any) -> None: ...
    def save_weights(
        self, filepath: Any, overwrite: bool = True, max_shard_size: Any = None
    ) -> None: ...
    def load_weights(
        self, filepath: Any, *args: Any, **kwargs: Any
    ) -> None: ...
    def train_step(self, data: Any) -> dict[str, Tensor]: ...
    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        return_dict: bool = False,
    ) -> Any: ...
    def make_train_function(self, force: bool = False) -> Any: ...
    def reset_metrics(self) -> None: ...
    def get_metrics_result(self) -> dict[str, Tensor]: ...
    def get_compile_config(self) -> dict[str, Any] | None: ...
    def compile_from_config(self, config: dict[str, Any]) -> None: ...
    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> Self: ...

class Sequential(Model):
    def __init__(
        self,
        layers: Sequence[_Layer | KerasTensor] | None = None,
        trainable: bool = True,
        name: str | None = None,
    ) -> None: ...
    def add(self, layer: _Layer, rebuild: bool = True) -> None: ...

def Input(
    shape: Sequence[int | None] | None = None,
    batch_size: int | None = None,
    dtype: str | None = None,
    sparse: bool | None = None,
    ragged: bool | None = None,
    batch_shape: Sequence[int | None] | None = None,
    name: str | None = None,
    tensor: Any = None,
    optional: bool = False,
) -> KerasTensor: ...

class name_scope:
    def __init__(self, name: str, **kwargs: Any) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...

def __getattr__(name: str) -> Any: ...
