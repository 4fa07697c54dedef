"""tests/schema.sql is what the migrations make; `make schema` writes it, and its diff is reviewed."""

from __future__ import annotations

from pathlib import Path

import pytest

from dump_schema import SCHEMAS, dump, without_partitions
from holdfast.kernel import migrate
from migrations.conftest import EMBEDDED, Server

WRITTEN = Path(__file__).parents[1] / "schema.sql"


@pytest.mark.parametrize("server", [EMBEDDED], indirect=True)
def test_the_written_schema_is_up_to_date(server: Server) -> None:
    """Habits: what a change does to the schema is seen in its diff."""
    dsn = server.database()
    migrate.run(dsn)

    made = without_partitions(dump(server.program("pg_dump"), dsn, "--no-owner", *SCHEMAS))

    assert made == WRITTEN.read_text("utf-8"), "run `make schema`, and look at the diff"
