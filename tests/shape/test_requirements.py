"""Every row of document 003's requirements is named by a test, or listed here with the reason why none can."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROWS = {f"T-{number:02d}" for number in range(1, 149)}
NAMED = re.compile(r"T-(\d{2,3})(?:\s*(?:\.\.|…|to)\s*T-(\d{2,3}))?")
NOT_BY_A_TEST: dict[str, str] = {}


def docstrings() -> Iterator[str]:
    """What tests say that they prove."""
    for file in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield ast.get_docstring(node) or ""


def named() -> set[str]:
    found = set()
    for text in docstrings():
        for first, last in NAMED.findall(text):
            found |= {f"T-{number:02d}" for number in range(int(first), int(last or first) + 1)}
    return found


def test_every_row_is_named_by_a_test_or_listed_with_the_reason() -> None:
    assert sorted(ROWS - named() - NOT_BY_A_TEST.keys()) == []


def test_what_is_listed_as_not_proven_is_not_named_by_a_test() -> None:
    assert sorted(NOT_BY_A_TEST.keys() & named()) == []
