"""Every error about something that a person wrote or asked for says what to do next."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import holdfast
from holdfast import errors

PACKAGE = Path(holdfast.__file__).parent
ABOUT_INPUT = (errors.RefusedError, errors.TaskError, errors.BadAddress)


def is_about_input(name: str) -> bool:
    error = getattr(errors, name, None)
    return isinstance(error, type) and issubclass(error, ABOUT_INPUT)


def raised() -> Iterator[tuple[str, ast.Call]]:
    """List where the package raises such errors, with the call that makes each."""
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                made = node.exc.func
                name = made.attr if isinstance(made, ast.Attribute) else getattr(made, "id", "")
                if is_about_input(name):
                    yield f"{file.relative_to(PACKAGE)}:{node.lineno} {name}", node.exc


def test_an_error_about_an_input_says_what_to_do() -> None:
    """A call with `**more` may carry it there."""
    found = list(raised())

    assert len(found) > 300
    assert [place for place, made in found if not {"next", None} & {each.arg for each in made.keywords}] == []
