from typing import Any
from typing import Generic
from typing import ParamSpec
from typing import TypeVar

from tensorflow import Graph
from tensorflow import Tensor

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result", covariant=True)

class ConcreteFunction:
    @property
    def graph(self) -> Graph: ...
    @property
    def structured_outputs(self) -> Any: ...
    @property
    def captured_inputs(self) -> list[Tensor]: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

class PolymorphicFunction(Generic[_Arguments, _Result]):
    def __call__(
        self, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> _Result: ...
    def get_concrete_function(
        self, *args: Any, **kwargs: Any
    ) -> ConcreteFunction: ...

def __getattr__(name: str) -> Any: ...
