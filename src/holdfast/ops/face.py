"""The face `ops`: its machine and its policies; its schema and its API are not there yet."""

from __future__ import annotations

from holdfast.faces import Face

FACE = Face(
    name="ops",
    summary="runs that people and programs queue, watch and cancel",
    machines={"ops.run": "run"},
    sql="holdfast:sql/ops",
    has_schema=False,
)
