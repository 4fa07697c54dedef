"""The face `flow`: steps that wait for steps (document 003)."""

from __future__ import annotations

from holdfast.faces import Face

FACE = Face(
    name="flow",
    summary="workflows, in the words of the DAG engine",
    machines={"flow.task": "run", "flow.step": "step"},
    sql="holdfast:sql/flow",
    requirements=("T-01 … T-148",),
)
