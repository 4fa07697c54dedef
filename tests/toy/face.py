"""The toy's entry: wishes that are granted, each with the name of whoever asked for it."""

from __future__ import annotations

from holdfast.faces import Face

FACE = Face(
    name="toy",
    summary="wishes that are granted",
    machines={"toy.list": "list", "toy.wish": "wish"},
    sql="toy:sql",
    api="toy.api:Toys",
    handle="toy.api:handle",
    id_form=r"list-[0-9a-f-]{36}",
    commands="toy.cli:app",
    events="toy.events:CATALOGUE",
    retry="toy.retry:grant_again",
    starts="toy.start_for_tick",
    is_open="toy.is_any_open",
    cancels="toy.cancel_open",
    prunes="toy.prune_counts",
    ages="toy.age_counts",
    unwanted="toy.unwanted_lists",
    pages={"toy.md": "toy.events:page"},
)
