"""An error carries its parts as fields: what happened, where, and what to do next."""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg import Connection

from holdfast import errors
from holdfast.errors import BadInput, HoldfastError, NotFound, RateLimited, Rejected, WrongState
from holdfast.kernel import calls
from holdfast.kernel.db import run

SOURCE = Path(__file__).parents[1] / "src" / "holdfast"


def test_it_has_its_parts_as_fields_and_reads_as_a_sentence() -> None:
    error = BadInput("priority must be 0 to 9, got 12", where="priority", next="use 9 for the most urgent")

    assert (error.what, error.where, error.next) == (
        "priority must be 0 to 9, got 12", "priority", "use 9 for the most urgent",
    )  # fmt: skip
    assert str(error) == "priority must be 0 to 9, got 12; use 9 for the most urgent"


def test_one_raised_with_a_sentence_alone_is_that_sentence() -> None:
    """As handlers raise them."""
    error = Rejected("no; never")

    assert (error.what, error.where, error.next, str(error)) == ("no; never", None, None, "no; never")


@pytest.mark.parametrize(
    "error",
    [NotFound("no step 7", where="7", next="look"), RateLimited("busy", retry_after=timedelta(seconds=3))],
    ids=["refused", "outside"],
)
@pytest.mark.parametrize("remade", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))], ids=["copy", "pickle"])
def test_its_parts_survive_another_process(error: HoldfastError, remade: Any) -> None:
    again = remade(error)

    assert (type(again), again.args, vars(again)) == (type(error), error.args, vars(error))


@pytest.mark.one_server
def test_one_of_the_database_has_its_hint_as_the_next_step_and_names_the_field_or_the_id(db: Connection[Any]) -> None:
    with pytest.raises(BadInput) as priority:
        run(db, calls.start_task("mail", priority=12))
    with pytest.raises(NotFound) as gone:
        run(db, calls.cancel("404"))
    (task,) = run(db, calls.start_task("mail"))
    with pytest.raises(WrongState) as early:
        run(db, calls.retry(str(task)))

    assert (priority.value.where, "12" in priority.value.what, "9" in (priority.value.next or "")) == (
        "priority", True, True,
    )  # fmt: skip
    assert (gone.value.where, gone.value.next is not None) == ("404", True)
    assert (early.value.where, early.value.next is not None) == (str(task), True)


def glued(path: Path, names: set[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        message = node.args[0]
        parts = message.values if isinstance(message, ast.JoinedStr) else [message]
        texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        if name in names and any("; " in text for text in texts):
            yield f"{path.relative_to(SOURCE)}:{node.lineno}"


def test_no_error_of_ours_has_its_next_step_glued_to_its_message() -> None:
    """`next` is a field: nobody cuts a message into parts."""
    names = {name for name, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, HoldfastError)}

    assert [place for path in sorted(SOURCE.rglob("*.py")) for place in glued(path, names)] == []
