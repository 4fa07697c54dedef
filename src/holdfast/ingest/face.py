"""The face `ingest`: partitioned pulls from a source into a table, with a watermark (document 001)."""

from __future__ import annotations

from holdfast.faces import Face

FACE = Face(
    name="ingest",
    summary="partitioned pulls from a source into a table, with a watermark",
    machines={"ingest.run": "run", "ingest.partition": "partition", "ingest.consolidation": "batch"},
    sql="holdfast:sql/ingest",
    api="holdfast.ingest.api:Ingest",
    handle="holdfast.ingest.api:by_id",
    id_form="[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
    retry="holdfast.ingest.calls:retry",
    events="holdfast.ingest.events:CATALOGUE",
    commands="holdfast.ingest.cli.commands:app",
    commands_help="Feeds: partitioned pulls from a source into a table.",
    starts="ingest.start_for_tick",
    is_open="ingest.is_any_open",
    cancels="ingest.cancel_open",
    prunes="ingest.prune_facts",
    ages="ingest.age_rows",
    requirements=("P-01 … P-155",),
)
