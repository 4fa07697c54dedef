"""The face `work`: leased single tasks (document 004)."""

from __future__ import annotations

from holdfast.faces import Face

FACE = Face(
    name="work",
    summary="single tasks, in the words of the leased worker loop",
    machines={"work.task": "task"},
    sql="holdfast:sql/work",
    requirements=("W-01 … W-64",),
)
