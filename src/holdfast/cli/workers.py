"""`holdfast workers`: who works, on what, and whether they are still seen."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.common import common, opened
from holdfast.cli.render import AsJson, data_json, data_table, say
from holdfast.kernel.query import as_mapping, query
from holdfast.reads import queues_workers

COLUMNS = ("worker", "standing", "state", "queues", "kinds", "held", "oldest claim", "seen", "host", "pid", "version")
STYLES = {"alive": "green", "late": "yellow", "gone": "dim"}


@common
def workers(
    *,
    is_all: Annotated[bool, typer.Option("--all", help="Also those that are gone.")] = False,
    as_json: AsJson = False,
) -> None:
    """List workers: what they serve and hold, and whether they are alive, late or gone."""
    with opened() as connection:
        found = query(connection, queues_workers.workers(is_all=is_all))
    if as_json:
        data_json({"workers": [as_mapping(worker) for worker in found]})
        return
    rows = [
        (w.worker, w.standing, "asleep" if w.is_asleep else w.state, w.queues, "any" if w.kinds is None else w.kinds,
         w.held, w.oldest_claimed_at, w.seen_at, w.host, w.pid, w.version)
        for w in found
    ]  # fmt: skip
    data_table(COLUMNS, rows, styles=STYLES)
    if not found:
        say("no workers; `holdfast workers --all` shows those that are gone too")
