"""The face `ops`: runs that people and programs queue, watch and cancel (document 002)."""

from __future__ import annotations

from holdfast.faces import Face

FACE = Face(
    name="ops",
    summary="runs that people and programs queue, watch and cancel",
    machines={"ops.run": "run"},
    sql="holdfast:sql/ops",
    api="holdfast.ops.api:Ops",
    handle="holdfast.ops.handle:by_id",
    events="holdfast.ops.events:CATALOGUE",
    retry="holdfast.ops.calls:retry",
    commands="holdfast.ops.cli.commands:app",
    commands_help="Runs that people and programs queue, watch and cancel.",
    id_form="run-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    starts="ops.start_for_tick",
    is_open="ops.is_any_open",
    cancels="ops.cancel_open",
    prunes="ops.prune_facts",
    ages="ops.age_rows",
    requirements=("O-01 … O-110",),
)
