"""The examples of the documentation reach the type checkers as they are written, and their mistakes are found."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import type_findings
from docs.modules import pages, write_pages
from docs.pages import Block, blocks

PAGE = """
```python tasks.py
from holdfast import Ctx, Holdfast

hf = Holdfast()


@hf.task
def double(ctx: Ctx, number: int) -> int:
    return number * ctx.attempt
```

```python
from tasks import double

double.start("two")
```

```python tasks.py
from holdfast import Holdfast

hf = Holdfast()


@hf.task
async def double(text: str) -> str:
    return text * 2
```

```python
import tasks  # the second

tasks.double.start("two")
length: int = tasks.double.start("two").result()
```

```python
undefined
```

```output
Traceback …
```
"""


def test_mistakes_are_found_on_the_lines_of_the_page(tmp_path: Path) -> None:
    """A page may write a file again: each block is checked with the one that is there when a reader comes to it."""
    page = tmp_path / "page.md"
    page.write_text(PAGE, "utf-8")
    lines = {line: number for number, line in enumerate(PAGE.splitlines(), 1)}
    modules = tmp_path / "modules"

    found = type_findings.found(modules, write_pages(modules, [page]))

    assert {(each.line, each.tool, each.rule) for each in found} == {
        (lines['double.start("two")'], "mypy", "arg-type"),
        (lines['double.start("two")'], "pyright", "reportArgumentType"),
        (lines['length: int = tasks.double.start("two").result()'], "mypy", "assignment"),
        (lines['length: int = tasks.double.start("two").result()'], "pyright", "reportAssignmentType"),
    }
    assert {each.file for each in found} == {str(page)}


def test_every_python_block_of_every_page_is_checked(tmp_path: Path) -> None:
    """Only those that fail on purpose are left out."""
    followed = {page: pairwise([*blocks(page), Block("", "", "")]) for page in pages()}
    wanted = [
        page
        for page, pairs in followed.items()
        for block, after in pairs
        if block.language == "python" and not after.shows_failure
    ]

    assert sorted(write_pages(tmp_path, pages()).values()) == sorted(wanted)


@pytest.mark.parametrize("path", sorted(type_findings.USER_CODE.glob("good_*.py")), ids=lambda path: path.stem)
def test_good_user_code_is_good_when_it_runs(path: Path) -> None:
    """What the type checkers accept, the decorators accept too."""
    subprocess.run([sys.executable, str(path)], check=True)


def test_an_expected_finding_is_one_per_tool_and_rule(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("x = 1\ny: str = 1  # mypy: assignment misc, pyright: reportAssignmentType\n")

    expected = type_findings.expected(tmp_path)

    assert {(each.line, each.tool, each.rule) for each in expected} == {
        (2, "mypy", "assignment"), (2, "mypy", "misc"), (2, "pyright", "reportAssignmentType"),
    }  # fmt: skip
