from collections.abc import Sequence
from typing import Any

from tensorflow import Tensor

from keras_rl2.basics.shapes import Tensor as _Tensor

def global_norm(
    t_list: Sequence[_Tensor | None], name: str | None = None
) -> Tensor: ...
def __getattr__(name: str) -> Any: ...
