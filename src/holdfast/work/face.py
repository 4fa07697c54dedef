"""The face `work`: leased single tasks (document 004)."""

from __future__ import annotations

from holdfast.faces import Face

FACE = Face(
    name="work",
    summary="single tasks, in the words of the leased worker loop",
    machines={"work.task": "task"},
    sql="holdfast:sql/work",
    api="holdfast.work.api:Tasks",
    handle="holdfast.work.handle:by_id",
    id_form="[0-9]{1,18}",
    starter="holdfast.work.starter",
    events="holdfast.work.events:CATALOGUE",
    starts="work.start_for_tick",
    is_open="work.is_any_open",
    cancels="work.cancel_open",
    requirements=("W-01 … W-64",),
)
