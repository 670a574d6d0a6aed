import builtins
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any
from typing import ParamSpec
from typing import Self
from typing import TypeAlias
from typing import TypeVar
from typing import overload

import numpy.typing as npt
from tensorflow import data as data
from tensorflow import linalg as linalg
from tensorflow import math as math
from tensorflow import nest as nest
from tensorflow import random as random
from tensorflow import raw_ops as raw_ops
from tensorflow import types as types
from tensorflow._operators import Operators
from tensorflow.types.experimental import PolymorphicFunction

from keras_rl2.basics.shapes import Tensor as _Tensor
from keras_rl2.basics.shapes import TensorLike

__version__: str

# `tensorflow.bool` is a dtype.
_Bool: TypeAlias = builtins.bool

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Tree = TypeVar("_Tree")

# A tuple in all that is asked of it, but by name.
class TensorShape(tuple[Any, ...]):
    @property
    def rank(self) -> int | None: ...
    def as_list(self) -> list[int | None]: ...

class DType:
    @property
    def name(self) -> str: ...
    @property
    def is_floating(self) -> _Bool: ...
    @property
    def is_integer(self) -> _Bool: ...
    @property
    def as_numpy_dtype(self) -> Any: ...
    @property
    def as_datatype_enum(self) -> int: ...

bfloat16: DType
bool: DType
float16: DType
float32: DType
float64: DType
int32: DType
int64: DType
uint8: DType

class Tensor(Operators):
    @property
    def shape(self) -> TensorShape: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def name(self) -> str: ...
    # Of symbolic tensors.
    @property
    def op(self) -> Operation: ...
    # Of eager tensors.
    def numpy(self) -> npt.NDArray[Any]: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[_Tensor]: ...

class Variable(Tensor):
    trainable: _Bool
    def __init__(
        self,
        initial_value: Any = None,
        trainable: _Bool | None = None,
        validate_shape: _Bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None: ...
    @property
    def handle(self) -> Any: ...
    def assign(
        self,
        value: TensorLike,
        use_locking: _Bool = False,
        name: str | None = None,
        read_value: _Bool = True,
    ) -> Tensor: ...
    def assign_add(
        self,
        delta: TensorLike,
        use_locking: _Bool = False,
        name: str | None = None,
        read_value: _Bool = True,
    ) -> Tensor: ...
    def scatter_nd_update(
        self, indices: TensorLike, updates: TensorLike, name: str | None = None
    ) -> Tensor: ...
    def read_value(self) -> Tensor: ...

class TensorSpec:
    def __init__(
        self,
        shape: Sequence[int | None] | None,
        dtype: Any = ...,
        name: str | None = None,
    ) -> None: ...
    @property
    def shape(self) -> TensorShape: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def name(self) -> str | None: ...

class Operation:
    @property
    def type(self) -> str: ...
    @property
    def inputs(self) -> Sequence[Tensor]: ...

class Graph:
    outputs: list[Tensor]
    def as_default(self) -> AbstractContextManager[Graph]: ...
    def as_graph_def(
        self,
        from_version: int | None = None,
        add_shapes: _Bool = False,
        use_pybind11_proto: _Bool = False,
    ) -> Any: ...

class UnconnectedGradients:
    NONE: UnconnectedGradients
    ZERO: UnconnectedGradients

class GradientTape:
    def __init__(
        self,
        persistent: _Bool = False,
        watch_accessed_variables: _Bool = True,
    ) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    def watch(self, tensor: Any) -> None: ...
    # None for each source that the target does not depend on.
    @overload
    def gradient(
        self,
        target: TensorLike,
        sources: Sequence[_Tensor],
        output_gradients: Any = None,
    ) -> list[_Tensor | None]: ...
    @overload
    def gradient(
        self,
        target: TensorLike,
        sources: Sequence[_Tensor],
        output_gradients: Any = None,
        *,
        unconnected_gradients: UnconnectedGradients,
    ) -> list[_Tensor]: ...

def custom_gradient(
    f: Callable[_Arguments, tuple[_Result, Callable[..., Any]]],
) -> Callable[_Arguments, _Result]: ...
@overload
def function(
    func: Callable[_Arguments, _Result],
    input_signature: Any = None,
    autograph: _Bool = True,
    jit_compile: _Bool | None = None,
    reduce_retracing: _Bool = False,
) -> PolymorphicFunction[_Arguments, _Result]: ...
@overload
def function(
    func: None = None,
    input_signature: Any = None,
    autograph: _Bool = True,
    jit_compile: _Bool | None = None,
    reduce_retracing: _Bool = False,
) -> Callable[
    [Callable[_Arguments, _Result]], PolymorphicFunction[_Arguments, _Result]
]: ...
def as_dtype(type_value: Any) -> DType: ...
def cast(x: TensorLike, dtype: Any, name: str | None = None) -> Tensor: ...
def clip_by_global_norm(
    t_list: Sequence[_Tensor | None],
    clip_norm: TensorLike,
    use_norm: TensorLike | None = None,
    name: str | None = None,
) -> tuple[list[_Tensor | None], Tensor]: ...
def cond(
    pred: TensorLike,
    true_fn: Callable[[], _Result] | None = None,
    false_fn: Callable[[], _Result] | None = None,
    name: str | None = None,
) -> _Result: ...
def constant(
    value: Any, dtype: Any = None, shape: Any = None, name: str = "Const"
) -> Tensor: ...
def control_dependencies(
    control_inputs: Any,
) -> AbstractContextManager[Any]: ...
def convert_to_tensor(
    value: Any,
    dtype: Any = None,
    dtype_hint: Any = None,
    name: str | None = None,
) -> Tensor: ...
def executing_eagerly() -> _Bool: ...
def fill(
    dims: Any, value: Any, name: str | None = None, layout: Any = None
) -> Tensor: ...
def gather(
    params: TensorLike,
    indices: TensorLike,
    validate_indices: Any = None,
    axis: int | None = None,
    batch_dims: int = 0,
    name: str | None = None,
) -> Tensor: ...
def identity(input: TensorLike, name: str | None = None) -> Tensor: ...
def init_scope() -> AbstractContextManager[None]: ...
def logical_and(
    x: TensorLike, y: TensorLike, name: str | None = None
) -> Tensor: ...
def logical_or(
    x: TensorLike, y: TensorLike, name: str | None = None
) -> Tensor: ...
def stack(
    values: Sequence[TensorLike], axis: int = 0, name: str = "stack"
) -> Tensor: ...
def tensor_scatter_nd_update(
    tensor: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    name: str | None = None,
) -> Tensor: ...
def where(
    condition: TensorLike,
    x: TensorLike | None = None,
    y: TensorLike | None = None,
    name: str | None = None,
) -> Tensor: ...
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: _Tree,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: _Bool = True,
    swap_memory: _Bool = False,
    maximum_iterations: Any = None,
    name: str | None = None,
) -> _Tree: ...
def zeros(
    shape: Any, dtype: Any = ..., name: str | None = None, layout: Any = None
) -> Tensor: ...
def __getattr__(name: str) -> Any: ...
