from collections.abc import Callable
from typing import Any

from keras import Model as Model
from keras import Sequential as Sequential
from keras.layers import Layer

def load_model(
    filepath: Any,
    custom_objects: Any = None,
    compile: bool = True,
    safe_mode: bool = True,
) -> Model: ...
def clone_model(
    model: Model,
    input_tensors: Any = None,
    clone_function: Callable[[Layer], Layer] | None = None,
    call_function: Any = None,
    recursive: bool = False,
    **kwargs: Any,
) -> Model: ...
def __getattr__(name: str) -> Any: ...
