"""The mutants fit the present sources; `run.py` tries them."""

import ast

from mutants import run


def test_each_mutant_can_be_made_and_its_test_is_there():
    names = [mutant.name for mutant in run.MUTANTS]
    assert len(names) == len({*names})
    for mutant in run.MUTANTS:
        ast.parse(run.mutated(mutant))
        assert mutant.before != mutant.after, mutant.name
        file, _, function = mutant.test.partition("::")
        text = (run.ROOT / "tests" / file).read_text("utf-8")
        assert f"def {function}" in text, mutant.name
