"""For tests, ours and users': a database cloned per test, a clock to set, and tasks and flows run inline.

    with embedded_template() as template:      # on a server for these tests, or Template(admin_dsn) on your own
        with template.clone() as dsn: ...      # a separate migrated database, dropped at the end
    with on_database(hf, dsn): ...             # an app uses that database during the block
    drain(hf)                                  # runs everything that is due, in this process
    played = run_flow(hf, order, order_id=1)   # runs a flow to its end, moving the clock instead of waiting
    clock = Clock(connection); clock.advance(timedelta(minutes=5))

There is no in-memory substitute: tests run the real SQL on a real PostgreSQL. pytest finds the fixtures on its own.
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
