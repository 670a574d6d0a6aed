from typing import Any

from tensorflow.types import experimental as experimental

def __getattr__(name: str) -> Any: ...
