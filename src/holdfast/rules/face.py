"""The face `rules`: bulk changes that are previewed, applied as previewed, retried and explained (document 000)."""

from __future__ import annotations

from holdfast.faces import Face

FACE = Face(
    name="rules",
    summary="bulk changes that are previewed, applied and explained",
    machines={"rules.run": "run", "rules.target": "target", "rules.reconcile": "pass", "rules.check": "page"},
    sql="holdfast:sql/rules",
    api="holdfast.rules.api:Rules",
    handle="holdfast.rules.handle:by_id",
    id_form="[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    commands="holdfast.rules.cli.commands:app",
    commands_help="Bulk changes that are previewed, applied and explained.",
    starts="rules.start_for_tick",
    is_open="rules.is_any_open",
    prunes="rules.prune_facts",
    ages="rules.age_rows",
    unwanted="rules.unwanted_runs",
    requirements=("A-01 … A-125",),
)
