"""What the pages print as code is code, and runs.

`support.pages` says how a page tells what a fragment needs. One page:

    python -m pytest -m slow -n 0 -k saving tests/docs/test_code_blocks.py
"""

import shlex

import pytest

from keras_rl2.cli.main import make_parser
from support import pages
from support.small_budgets import shrink

MOST_NOT_RUN = 12


def name_of(path):
    return path.relative_to(pages.ROOT).as_posix()


def all_blocks():
    for path in pages.PAGES:
        for block in pages.blocks(path.read_text("utf-8")):
            yield path, block


def runs(path):
    found = pages.blocks(path.read_text("utf-8"))
    return any(
        block.language == "python" and not block.marked("not run")
        for block in found
    )


def place(path, block):
    return f"{name_of(path)}, line {block.line}"


def test_all_python_is_python():
    count = 0
    for path, block in all_blocks():
        if block.language == "python":
            count += 1
            assert pages.parsed(block).body, place(path, block)
    assert count > 40


def test_python_is_called_python():
    """Or it would not be run."""
    wrong = [
        place(path, block)
        for path, block in all_blocks()
        if block.language in ("py", "pycon", "Python", "python3")
        or (
            not block.language
            and block.code.startswith((">>> ", "import ", "from "))
        )
    ]
    assert wrong == []


def test_marks_are_known():
    for path, block in all_blocks():
        for mark, _ in block.marks:
            assert mark in pages.MARKS, place(path, block)
        pages.substituted(block)


def test_few_blocks_are_not_run_and_say_why():
    reasons = [
        (place(path, block), reason)
        for path, block in all_blocks()
        for reason in block.marked("not run")
    ]
    for where, reason in reasons:
        kind, _, why = reason.partition(":")
        assert kind.strip() in pages.REASONS, where
        assert len(why.split()) > 2, where
    ours = [each for each in reasons if not each[1].startswith("theirs")]
    assert len(ours) <= MOST_NOT_RUN, ours


def test_commands_are_taken():
    """Those of `keras-rl2` by its parser; files of others are there."""
    for path, block in all_blocks():
        for line in pages.commands(block):
            words = shlex.split(line, comments=True)
            if words[0] == "keras-rl2":
                wanted = make_parser().parse_args(words[1:])
                assert callable(wanted.run), place(path, block)
            elif words[1].startswith(("examples/", "tests/", "docs/")):
                assert (pages.ROOT / words[1]).exists(), place(path, block)


@pytest.mark.slow
@pytest.mark.parametrize("path", list(filter(runs, pages.PAGES)), ids=name_of)
def test_a_page_runs_from_top_to_bottom(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shrink(monkeypatch)
    missing = pages.run(path, monkeypatch)
    if missing:
        pytest.skip(f"the rest ran; some needs {', '.join(missing)}")


# How a page is read.

PAGE = """
<!-- run first:
two = 2
-->
<!-- run with: 1_000 => 1 -->

```python
three = two + 1_000
```

- A list:

    ```python
    assert three == 3
    ```

<!-- starts anew -->
<!-- raises: NameError -->
```python
three
```

<!-- needs: no_such_package -->
```python
import no_such_package
```

<!-- not run: hours: trains for a day -->
```python
raise SystemExit
```

```python
>>> print("read", "as well")
read as ...
```

```
$ keras-rl2 plot runs \\
    --output a.png
```
"""


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


def test_marks_are_read(page, monkeypatch):
    found = list(pages.blocks(PAGE))
    assert found[0].marks == (
        ("run first", "\ntwo = 2\n"),
        ("run with", "1_000 => 1"),
    )
    assert found[1].code == "assert three == 3\n"
    assert [len(block.marks) for block in found] == [2, 0, 2, 1, 1, 0, 0]
    assert list(pages.commands(found[-1])) == [
        "keras-rl2 plot runs      --output a.png"
    ]
    assert pages.run(page, monkeypatch) == ["no_such_package"]


@pytest.mark.parametrize(
    ("mistake", "error"),
    [
        (("1_000 => 1", "1_000 => 2"), AssertionError),
        (("1_000 => 1", "2_000 => 1"), AssertionError),
        (("raises: NameError", "raises: ValueError"), NameError),
        (("starts anew", "run first: three = 3"), pytest.fail.Exception),
        (("needs: no_such_package", "needs: sys"), ModuleNotFoundError),
        (("no_such_package", "sys"), None),
        (("read as", "red as"), AssertionError),
    ],
)
def test_mistakes_are_found(page, monkeypatch, mistake, error):
    text = PAGE.replace(*mistake)
    if error is None or "red" in mistake[1]:
        text = text.replace("no_such_package", "sys")
    page.write_text(text)
    if error is None:
        assert pages.run(page, monkeypatch) == []
        return
    with pytest.raises(error):
        pages.run(page, monkeypatch)


def test_a_budget_is_cut(monkeypatch):
    shrink(monkeypatch)
    import keras_rl2 as rl

    replay = rl.ReplayDataset("CartPole-v1", warm_up=5000, batch_size=8)
    agent = rl.DQN.for_env("CartPole-v1", hidden=(4,), seed=0)
    agent.fit(replay, total_steps=10**9, verbose=0)
    assert 200 <= agent.env_steps < 500
    assert rl.EvaluationDataset("CartPole-v1", episodes=99).episodes == 2
    assert "1,000 trans" in repr(rl.record("random", "CartPole-v1", 10**9))
