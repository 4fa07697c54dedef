"""R37: a secret that handlers put everywhere is in no row, no log line, no span, no event and no metric."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from psycopg import Connection, sql
from psycopg.conninfo import make_conninfo

from holdfast import Event
from holdfast.errors import RunFailed
from holdfast.masking import LEAST, MASK, Masker, forms
from holdfast.testing import drain, on_database
from security import leaky
from worker.running import until

KEY = "hf-canary-\"7'\\é/+ 1"
TOKEN = "hf-canary-token"
PASSWORD = "hf-canary-password"
TESTS = Path(__file__).parents[1]
TABLES = """
select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
"""


@pytest.mark.one_server
@pytest.mark.parametrize("form", ["json", "console"])
def test_no_canary_leaves_the_worker(dsn: str, db: Connection[Any], tmp_path: Path, form: str) -> None:
    with on_database(leaky.hf, dsn):
        started = [task.start(way=way) for task in leaky.TASKS for way in leaky.WAYS]
        run = leaky.order.start()
        queued = [leaky.hf.ops.queue("shop", env="prod", kind="leak", metadata={"way": way}) for way in leaky.OPS_WAYS]
        # The server trusts everybody, whatever the password, which is in the DSN or where libpq finds it.
        of_dsn, of_libpq = (PASSWORD, "") if form == "json" else (None, PASSWORD)
        worker = _worker(make_conninfo(dsn, password=of_dsn), of_libpq, tmp_path, form)
        try:
            port = _probe_port(tmp_path)
            for handle in [*started, run, *queued]:
                until(lambda handle=handle: handle.status().outcome is not None)
            measured = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        finally:
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(30) == 0
        assert started[0].result() == MASK
        assert started[1].result()["rows"] == [{"k": [1, f"<{MASK}>"]}]
        with pytest.raises(RunFailed, match=re.escape(f"https://u:{MASK}@host/?q={MASK}")):
            started[2].result()

    written = {path.name: path.read_text() for path in tmp_path.iterdir()} | {
        "database": _dump(db),
        "metrics": measured,
    }
    for name, text in written.items():
        assert _canaries(text) == [], name
        assert "hidden by its name" not in text, name
    assert "in a thread: ***" in written["log"]
    for name in ("database", "log", "events"):
        assert written[name].count(MASK) > 10, name
    assert MASK in "".join(text for name, text in written.items() if name.startswith("spans-"))


GUARDS = {  # the module that masks, and a way of leaking that its masking prevents
    "holdfast.worker.execute": "deep_result",
    "holdfast.handlers.context": "note",
    "holdfast.notify": "error",
}


@pytest.mark.one_server
@pytest.mark.parametrize("module", [None, *GUARDS])
def test_without_its_masking_each_exit_lets_the_canary_out(
    dsn: str, db: Connection[Any], monkeypatch: pytest.MonkeyPatch, module: str | None
) -> None:
    """Masking has to come before the write: what is stored or published by then is known to others."""
    heard: list[Event] = []
    monkeypatch.setenv("LEAKY_KEY", KEY)
    monkeypatch.setattr(leaky, "heard", heard)
    if module is not None:
        monkeypatch.setattr(f"{module}.masking", SimpleNamespace(known=Masker(), LEAST=LEAST))
    if module == "holdfast.notify":
        monkeypatch.setattr("holdfast.worker.execute.masking", SimpleNamespace(known=Masker()))
    with on_database(leaky.hf, dsn):
        leaky.TASKS[0].start(way=GUARDS.get(str(module), "error"))
        drain(leaky.hf)
        leaky.hf._engine.subscribers.flush(10)

    written = repr(heard) if module == "holdfast.notify" else _dump(db)
    assert bool(_canaries(written)) == (module is not None)


def _canaries(text: str) -> list[str]:
    """What a grep finds, with what is around it."""
    needles = [*forms(KEY), *forms(TOKEN), *forms(PASSWORD), "hf-canary"]
    return [text[max(0, at - 80) : at + 80] for needle in needles if (at := text.find(needle)) >= 0]


def _worker(dsn: str, password: str, out: Path, form: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "holdfast", "worker", "--app", "security.leaky:hf", "--probe-port", "0"]
    command += ["--queue", "default", "--queue", "ops"]
    settings = {
        "HOLDFAST_DSN": dsn, "PGPASSWORD": password, "HOLDFAST_LOG_FORMAT": form, "HOLDFAST_LOG_LEVEL": "debug",
        "LEAKY_OUT": str(out), "LEAKY_KEY": KEY, "LEAKY_TOKEN": TOKEN, "LEAKY_PASSWORD": PASSWORD,
        "PYTHONPATH": str(TESTS),
    }  # fmt: skip
    with (out / "log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **settings})


def _probe_port(out: Path) -> int:
    def found() -> re.Match[str] | None:
        return re.search(r"127\.0\.0\.1:(\d+)/healthz", (out / "log").read_text())

    until(lambda: found() is not None)
    match = found()
    assert match is not None
    return int(match[1])


def _dump(db: Connection[Any]) -> str:
    """All rows of all tables, as text."""
    rows = []
    for (table,) in db.execute(TABLES).fetchall():
        rows += [row for (row,) in db.execute(sql.SQL("select t::text from {} t").format(sql.SQL(table))).fetchall()]
    return "\n".join(rows)
