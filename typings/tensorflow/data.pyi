from collections.abc import Callable
from typing import Any
from typing import Self

class Options:
    deterministic: bool | None
    autotune: Any
    threading: Any
    experimental_optimization: Any

class Iterator:
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...
    def get_next(self) -> Any: ...

class Dataset:
    @staticmethod
    def range(*args: Any, **kwargs: Any) -> Dataset: ...
    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Dataset: ...
    @staticmethod
    def from_tensor_slices(
        tensors: Any, name: str | None = None
    ) -> Dataset: ...
    @property
    def element_spec(self) -> Any: ...
    def __iter__(self) -> Iterator: ...
    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset: ...
    def flat_map(
        self, map_func: Callable[..., Dataset], name: str | None = None
    ) -> Dataset: ...
    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Dataset: ...
    def prefetch(
        self, buffer_size: int, name: str | None = None
    ) -> Dataset: ...
    def repeat(
        self, count: int | None = None, name: str | None = None
    ) -> Dataset: ...
    def take(self, count: int, name: str | None = None) -> Dataset: ...
    def with_options(
        self, options: Options, name: str | None = None
    ) -> Dataset: ...

def __getattr__(name: str) -> Any: ...
