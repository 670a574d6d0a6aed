from collections.abc import Callable
from typing import Any
from typing import TypeVar

from keras.models import load_model as load_model

_Registered = TypeVar("_Registered", bound=Callable[..., Any])

def register_keras_serializable(
    package: str = "Custom", name: str | None = None
) -> Callable[[_Registered], _Registered]: ...

# Plain data: a dict, or what is plain already.
def serialize_keras_object(obj: Any) -> Any: ...
def deserialize_keras_object(
    config: Any,
    custom_objects: Any = None,
    safe_mode: bool = True,
    **kwargs: Any,
) -> Any: ...
def __getattr__(name: str) -> Any: ...
