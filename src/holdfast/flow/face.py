"""The face `flow`: steps that wait for steps (document 003)."""

from __future__ import annotations

from holdfast.faces import Face

FACE = Face(
    name="flow",
    summary="workflows, in the words of the DAG engine",
    machines={"flow.task": "run", "flow.step": "step"},
    sql="holdfast:sql/flow",
    api="holdfast.flow.api:Flows",
    handle="holdfast.flow.handle:by_id",
    id_form="[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    commands="holdfast.flow.cli.commands:app",
    commands_help="Flows (steps that wait for steps) and their runs.",
    starter="holdfast.flow.starter",
    events="holdfast.flow.events:CATALOGUE",
    starts="flow.start_for_tick",
    is_open="flow.is_any_open",
    cancels="flow.cancel_open",
    pages={"flow.schema.json": "holdfast.flow.schema:written"},
    requirements=("T-01 … T-148",),
)
