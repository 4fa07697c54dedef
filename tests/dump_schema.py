"""Print the schema as migrations make it, for `make schema`: tests/schema.sql, whose diff is reviewed.

It stays the same from dump to dump, from one minor release of pg_dump to the next, and from month to month.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from holdfast import embedded
from holdfast.kernel import migrate, sources
from servers import owned_server

SCHEMAS = [f"--schema={schema}" for schema in sources.schemas()]
_NOISE = re.compile(r"^(\\(un)?restrict .*|-- Dumped .*)\n", re.MULTILINE)  # a random word, and versions
_ENTRY = re.compile(r"(?=^--\n-- (?:Name: |PostgreSQL))", re.MULTILINE)
_PARTITION = re.compile(r"\b(journal|notes)_\d{6}(?!\d)")


def main() -> str:
    """Migrate a database of its own and write its schema out."""
    with tempfile.TemporaryDirectory(prefix="hf-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        with owned_server(Path(folder, "home")) as dsn:
            migrate.run(dsn)
            return without_partitions(dump(embedded.binary("pg_dump"), dsn, "--no-owner", *SCHEMAS))


def dump(program: Path, dsn: str, *options: str) -> str:
    """Write a schema out, without what differs from dump to dump."""
    command: list[str | Path] = [program, "--schema-only", *options, "--dbname", dsn]
    return _NOISE.sub("", subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def without_partitions(text: str) -> str:
    """Leave out the partitions of journal and notes, which are named for months."""
    return "".join(entry for entry in _ENTRY.split(text) if not _PARTITION.search(entry))


if __name__ == "__main__":
    sys.stdout.write(main())
