"""For tests, ours and users': a database cloned for each test, a clock to set, tasks and flows run inline, logs read.

    with embedded_template() as template:      # a server of the tests' own, or Template(admin_dsn) on one of yours
        with template.clone() as dsn: ...      # a migrated database of its own, dropped at the end
    with on_database(hf, dsn): ...             # an app works there for as long as the block lasts
    drain(hf)                                  # runs all that is due, here and now
    played = run_flow(hf, order, order_id=1)   # runs a flow to its end, moving the clock instead of waiting
    clock = Clock(connection); clock.advance(timedelta(minutes=5))

There is no in-memory twin: what is tested is the real SQL on a real PostgreSQL. pytest finds fixtures for all of it.
"""

from __future__ import annotations

from holdfast.testing.flows import Played, fail_with, failing, play, recorded, run_flow
from holdfast.testing.kit import Clock, Template, drain, embedded_template, events, journal, on_database

__all__ = [
    "Clock",
    "Played",
    "Template",
    "drain",
    "embedded_template",
    "events",
    "fail_with",
    "failing",
    "journal",
    "on_database",
    "play",
    "recorded",
    "run_flow",
]
