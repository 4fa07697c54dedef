"""Failpoints: they act when they are told to, and there is none that no process is killed at."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast import failpoints
from holdfast.failpoints import FailpointReached, armed, failpoint
from scenarios.cells import ALL, ELSEWHERE

PACKAGE = Path(holdfast.__file__).parent
CALLED = "{call.function}"


def test_a_failpoint_acts_the_first_time_or_the_one_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failpoints, "_ARMED", armed("once:raise,third:raise@3"))

    assert [is_reached("once") for _ in range(4)] == [True, False, False, False]
    assert [is_reached("third") for _ in range(4)] == [False, False, True, False]
    assert not is_reached("other")


def is_reached(name: str) -> bool:
    try:
        failpoint(name)
    except FailpointReached:
        return True
    return False


def test_an_action_that_there_is_not_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failpoints, "_ARMED", armed("here:explode"))

    with pytest.raises(FailpointReached, match=r"kill9.*explode"):
        failpoint("here")


def test_a_process_is_killed_at_every_failpoint_or_it_is_said_why_not() -> None:
    """Read from the source, so that a new failpoint, or a call that is new, is not forgotten."""
    found = set(failpoints_of(PACKAGE))

    assert {"before_settle_batch", "after_settle_batch", "before_commit", "migrate_{migration.number}"} <= found
    assert {cell.failpoint for cell in ALL} == found - ELSEWHERE.keys()
    assert ELSEWHERE.keys() <= found


def failpoints_of(package: Path) -> Iterator[str]:
    """List the names that failpoints have in the source; those of a call have that of each SQL function."""
    files = [package / "kernel" / name for name in ("calls.py", "schedule_calls.py")]
    functions = [node.args[0].value for file in files for node in calls_in(file, of="Call")]
    for file in package.rglob("*.py"):
        for node in calls_in(file, of="failpoint"):
            name = ast.unparse(node.args[0]).strip("f'")
            yield from {name.replace(CALLED, function) for function in functions}


def calls_in(file: Path, *, of: str) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == of:
            yield node
