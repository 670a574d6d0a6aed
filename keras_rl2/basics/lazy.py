"""Packages that import their names on first use."""

import importlib
import re
import sys
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from typing import Any


def lazy(
    package: str, names: Collection[str], homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Makes `__getattr__` and `__dir__` of a package that imports on demand.

    Args:
        package: str. The `__name__` of the package.
        names: list of str. All public names; see `homes`.
        homes: dict of str. Names by the module that defines them, separated
            by spaces. Another name is that of a module in the package, or is
            defined in the module that is named after it in snake case.
    """
    by_name = {name: home for home in homes for name in homes[home].split()}

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}"
            )
        snake_case = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
        home = by_name.get(name, f"{package}.{snake_case}")
        value: Any = importlib.import_module(home)
        if name in by_name or name != snake_case:
            value = getattr(value, name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(names)
