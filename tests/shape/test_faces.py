"""The list of faces is the only one: the app, its annotations and the import contracts follow it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from psycopg import Connection

from holdfast import Holdfast, faces
from holdfast.connections.deadline import connect
from holdfast.kernel import migrate, sources

ROOT = Path(__file__).parents[2]
SHIPPED = [faces.face(name) for name in faces.FACES]
STORED = "select face, starts, is_open, cancels, prunes, ages, unwanted from holdfast.faces"
RESULT = "select pg_catalog.pg_get_function_result(%s::regprocedure)"
CALLED_WITH = {
    "starts": "text, jsonb, jsonb, text",
    "is_open": "text[]",
    "cancels": "text[], text",
    "prunes": "bigint[], uuid[]",
    "ages": "integer",
    "unwanted": "integer",
}
RETURNED = {
    "starts": "text[]",
    "is_open": "boolean",
    "cancels": "void",
    "prunes": "void",
    "ages": "integer",
    "unwanted": "uuid[]",
}
LOADED = """
import sys
from holdfast import Holdfast
hf = Holdfast("dbname=none")
print(*sorted(name for name in sys.modules if name.startswith(("holdfast.flow", "holdfast.work.", "holdfast.ops"))))
"""


def test_the_app_is_annotated_with_the_apis_of_the_shipped_faces() -> None:
    apis = {face.name: face.api.partition(":")[2] for face in SHIPPED if face.api is not None}

    assert {name: hint for name, hint in Holdfast.__annotations__.items() if not name.startswith("_")} == apis


def test_an_app_loads_no_face_before_it_is_used() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []


def test_a_face_is_reached_by_its_name_and_only_where_it_has_an_api() -> None:
    hf = Holdfast("dbname=none")

    assert hf.flow is hf.face("flow") is hf.flows
    assert hf.work is hf.face("work")
    assert hf.ops is hf.face("ops")
    assert hf.rules is hf.face("rules")
    with pytest.raises(AttributeError, match="nothing"):
        hf.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_the_import_contracts_name_every_shipped_face() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    packages = {f"holdfast.{face.name}" for face in SHIPPED}
    independent, forbidden = (
        next(
            c
            for c in contracts
            if c["type"] == kind and packages & {*c.get("modules", ()), *c.get("forbidden_modules", ())}
        )
        for kind in ("independence", "forbidden")
    )

    assert set(independent["modules"]) == packages | {"holdfast.worker"}
    assert set(forbidden["forbidden_modules"]) == packages


@pytest.mark.one_server
def test_each_machine_is_brought_by_one_face_under_the_same_label(db: Connection[Any]) -> None:
    installed = db.execute("select machine, label from holdfast.machines").fetchall()

    assert sorted(installed) == sorted(item for face in SHIPPED for item in face.machines.items())


@pytest.mark.one_server
def test_the_database_knows_which_functions_of_each_face_it_may_call(dsn: str) -> None:
    """The toy names all of them; a function with other parameters would only fail when the kernel calls it."""
    with faces.plugged("toy", "toy.face") as toy:
        migrate.run(dsn)
        with connect(dsn) as connection:
            rows = {
                face: dict(zip(sources.CALLED, called, strict=True)) for face, *called in connection.execute(STORED)
            }
            results = {
                (name, field): connection.execute(RESULT, [f"{function}({CALLED_WITH[field]})"]).fetchone()
                for name, called in rows.items()
                for field, function in called.items()
                if function is not None
            }

    assert rows == {face.name: {field: getattr(face, field) for field in sources.CALLED} for face in [*SHIPPED, toy]}
    assert None not in rows["toy"].values()
    assert {(name, field): RETURNED[field] for name, field in results} == {
        place: result and result[0] for place, result in results.items()
    }
