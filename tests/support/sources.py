"""The library as it is written."""

import ast
import functools


@functools.cache
def parsed(path):
    """Returns the syntax of a module, which nobody changes."""
    return ast.parse(path.read_text("utf-8"))


@functools.cache
def functions_of(path):
    """Returns the names of a file's test functions, `TestClass::test_name`."""
    names = set()
    for node in parsed(path).body:
        methods = node.body if isinstance(node, ast.ClassDef) else []
        prefix = f"{node.name}::" if methods else ""
        names |= {
            f"{prefix}{each.name}"
            for each in methods or [node]
            if isinstance(each, ast.FunctionDef)
            and each.name.startswith("test_")
        }
    return names
