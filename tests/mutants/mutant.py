"""What a mutant is."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """A mistake in one place of the package, and the tests that find it.

    Attributes:
        name: What is wrong, in snake case.
        place: The function, class or module, as of `places`.
        before: Text that stands there exactly once.
        after: What stands there instead.
        tests: Files, or functions of files (`file.py::test_name`,
            `file.py::TestClass::test_name`). The folder is left out where no
            other file has the name.
        slow: Whether they are slow tests, instead of those of the default
            layer. Defaults to `False`.
    """

    name: str
    place: str
    before: str
    after: str
    tests: list[str]
    slow: bool = False
