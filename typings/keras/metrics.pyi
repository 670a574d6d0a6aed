from collections.abc import Sequence
from typing import Any

from keras import Variable

class Metric:
    name: str
    def __init__(
        self, dtype: str | None = None, name: str | None = None
    ) -> None: ...
    @property
    def dtype(self) -> str: ...
    @property
    def variables(self) -> list[Variable]: ...
    def add_variable(
        self,
        shape: Sequence[int],
        initializer: Any,
        dtype: str | None = None,
        aggregation: str = "sum",
        name: str | None = None,
    ) -> Variable: ...
    def add_weight(
        self,
        shape: Sequence[int] = (),
        initializer: Any = None,
        dtype: str | None = None,
        name: str | None = None,
    ) -> Variable: ...
    def reset_state(self) -> None: ...
    def update_state(self, *args: Any, **kwargs: Any) -> None: ...
    # A tensor, or a dict of them.
    def result(self) -> Any: ...
    def get_config(self) -> dict[str, Any]: ...

class Mean(Metric):
    def __init__(
        self, name: str = "mean", dtype: str | None = None
    ) -> None: ...

def __getattr__(name: str) -> Any: ...
