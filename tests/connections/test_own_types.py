"""Type checkers accept every connection that `conn` takes, and reject what it refuses, by the libraries' own types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession
from sqlalchemy.orm import Session, scoped_session

from holdfast import Holdfast

hf = Holdfast()
order = hf.flow("order")


@hf.task
def send(number: int) -> int:
    return number


def accepted(
    one: psycopg.Connection[Any], two: psycopg.AsyncConnection[Any], three: Session, four: Connection,
    five: AsyncSession, six: AsyncConnection, seven: scoped_session[Session], untyped: Any,
) -> None:
    send.options(conn=one).start(1)
    send.options(conn=two)
    send.options(conn=three)
    send.options(conn=four)
    send.options(conn=five)
    send.options(conn=six)
    send.options(conn=seven)
    send.options(conn=untyped)
    order.options(conn=three).start()


def rejected(engine: Engine, async_engine: AsyncEngine) -> None:
    send.options(conn=engine)  # no
    send.options(conn=async_engine)  # no
    order.options(conn="postgresql://")  # no
"""


@pytest.mark.timeout(300)  # it reads SQLAlchemy's types, and machines are busy
def test_mypy_tells_connections_from_what_makes_them(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(CODE)
    wrong = {number for number, line in enumerate(CODE.splitlines(), start=1) if line.endswith("# no")}

    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file=", "user.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    lines = ran.stdout.splitlines()
    assert {int(line.split(":")[1]) for line in lines} == wrong, ran.stdout
    assert all("[arg-type]" in line for line in lines)
