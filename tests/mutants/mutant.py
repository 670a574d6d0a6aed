"""What a mutant is."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """A mistake in one place of the package, and the tests that find it.

    Attributes:
        name: What is wrong, in snake case.
        path: The file, from the root of the checkout.
        before: Text that is in the file exactly once.
        after: What stands there instead.
        tests: Files, or functions of files (`file.py::test_name`,
            `file.py::TestClass::test_name`).
        slow: Whether they are slow tests, instead of those of the default
            layer. Defaults to `False`.
    """

    name: str
    path: str
    before: str
    after: str
    tests: list[str]
    slow: bool = False
