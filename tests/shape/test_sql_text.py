"""SQL lives in the kernel, the faces and the reads: what renders, works or shows off contains none."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import faces

SOURCE = Path(__file__).parents[2] / "src" / "holdfast"
WITHOUT_SQL = ("cli", "api", "console", "demo", "selftest", "worker", *(f"{face}/cli" for face in faces.FACES))
RELEASED = {
    "0001_kernel.sql", "0002_journal.sql", "0003_tenancy.sql", "0004_work.sql", "0005_lean_writes.sql", "0006_flow.sql",
    "0007_mend.sql",
}  # fmt: skip
STATEMENT = re.compile(
    r"\s*(select\s|insert into\s|update [\w.]+\s+set\s|delete from\s|with \w+ as\s|listen\s|notify\s|copy [\w.]+ |"
    r"(create|alter|drop|truncate|comment on|grant|revoke) (table|schema|role|index|view|function|select|usage|all)\b|"
    r"truncate [\w.]+\s|set (local |session )?\w+ (=|to)\s)"
)


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Give each text of a module but its docstrings."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


@pytest.mark.parametrize("folder", WITHOUT_SQL)
def test_renderers_worker_demo_and_self_test_contain_no_sql(folder: str) -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in sorted((SOURCE / folder).rglob("*.py"))
        for line, text in texts(ast.parse(path.read_text(encoding="utf-8")))
        if STATEMENT.match(text)
    ]

    assert found == []


def test_lines_of_sql_fit_in_120_columns() -> None:
    """Migrations that were released stay as they are."""
    files = [path for path in (SOURCE / "sql").rglob("*.sql") if path.name not in RELEASED]
    long = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path in sorted(files)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 120
    ]

    assert long == []
