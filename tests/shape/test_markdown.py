"""Markdown is wrapped at a hundred columns, so that a page reads well in an editor and in a diff."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 100
_FENCE = re.compile(r"\s*(```|~~~)")
_LINK = re.compile(r"\]\([^)]*\)|<?https?://\S+")


def pages() -> list[Path]:
    """List the pages of the project itself."""
    folders = ("docs", "bench", "src", "examples")
    own = [page for folder in folders for page in (ROOT / folder).rglob("*.md")]
    return sorted([*ROOT.glob("*.md"), *own])


def wide(text: str) -> Iterator[tuple[int, str]]:
    """Find lines that are too long: not in a block of code, not of a table, and not because of a link's address."""
    is_fenced, may_begin = False, True  # code that is indented begins after an empty line
    for number, line in enumerate(text.splitlines(), start=1):
        if _FENCE.match(line):
            is_fenced = not is_fenced
        is_indented = may_begin and line.startswith("    ")
        may_begin = not line or is_indented
        if not is_fenced and not is_indented and not line.startswith("|") and len(_LINK.sub("]", line)) > WIDTH:
            yield number, line


def test_a_line_of_markdown_has_at_most_100_columns() -> None:
    found = [
        f"{page.relative_to(ROOT)}:{number}: {line[:40]}…"
        for page in pages()
        for number, line in wide(page.read_text("utf-8"))
    ]

    assert len(pages()) > 40
    assert found == []


def test_tables_code_and_addresses_may_be_wider() -> None:
    words = "word " * 30

    assert list(wide(f"short\n{words}\n")) == [(2, words)]
    assert list(wide(f"```\n{words}\n```\n\n    {words}\n    {words}\n| {words}|\n[a](x{'y' * 200})\n")) == []
    assert [number for number, _ in wide(f"1. one\n    {words}\n")] == [2]  # goes on with the point, and is no code
    assert [number for number, _ in wide(f"```\n{words}\n```\n{words}\n")] == [4]
