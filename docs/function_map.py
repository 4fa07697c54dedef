"""Writes the map of the SQL functions: each public function and trigger, and the helpers that it calls."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any, LiteralString

from psycopg import Connection

from holdfast.faces import all_faces
from holdfast.kernel import sources

SQL = Path(__file__).parents[1] / "src" / "holdfast" / "sql"
PLACE = SQL / "kernel" / "README.md"
OPENING = """\
# The SQL functions

Each function is a file of its own. The kernel's are in `kernel/functions/`, one folder per story;
those of a face are in `<face>/functions/`. Each section lists public functions and triggers in
bold, then helpers, each with the functions that it calls, in alphabetical order. A function in
*italics* has its own entry with what it calls. `guards/refuse`, which raises every error of ours,
is left out.
"""
STORIES = {
    "start": "make tasks, runs and their steps",
    "checks": "refuse arguments, plans and staged rows that cannot work",
    "claim": "lease due steps to workers",
    "limits": "say how much at once and how fast, and check it",
    "admit": "count limits, and admit or park steps under them",
    "parked": "take steps out of the queues of limits, and know when one opens",
    "schedules": "say what the clock starts, and check it",
    "ticks": "plan and fire the ticks of schedules",
    "workers": "register workers, and know which are live",
    "settle": "take outcomes, and write notes",
    "runs": "count, close and reopen runs",
    "window": "admit, pause and stop large runs",
    "manual": "what people do: cancel, retry, resolve, pause",
    "upkeep": "recover, make partitions, check invariants",
    "retention": "say how long finished tasks and runs are kept, and tell what was removed",
    "sweep": "remove in chunks what is kept no longer",
    "policies": "budgets and backoff",
    "guards": "triggers, tenants and the clock: what every change passes",
}
FUNCTIONS: LiteralString = """
select p.pronamespace::regnamespace || '.' || p.proname, pg_get_functiondef(p.oid),
       exists (select from unnest('{hf_producer,hf_worker,hf_reader,hf_operator}'::text[]) r
                where has_function_privilege(r, p.oid, 'execute')),
       p.prorettype = 'trigger'::regtype
  from pg_proc p
 where p.pronamespace = any (%s::regnamespace[]) and p.proname not like 'test!_%%' escape '!'
"""


def function_map(connection: Connection[Any]) -> str:
    """Read the functions of a database, and write the page."""
    with connection.transaction():
        connection.execute("set local search_path = pg_catalog")  # so that every name is written with its schema
        rows = connection.execute(FUNCTIONS, [sources.schemas()]).fetchall()
    texts = {name: text for name, text, _, _ in rows}
    calls = {name: called(name, text, texts.keys()) for name, text in texts.items()}
    entries = {name for name, _, is_public, is_trigger in rows if is_public or is_trigger}
    parts = [OPENING]
    for story, summary in STORIES.items():
        here = {f"holdfast.{file.stem}" for file in (SQL / "kernel" / "functions" / story).glob("*.sql")}
        parts.append(_section(f"kernel, {story}: {summary}", here, entries, calls))
    for face in all_faces():
        here = {name for name in texts if name.startswith(f"{face.name}.")}
        if here:
            parts.append(_section(f"{face.name}: {face.summary}", here, entries, calls))
    return "".join(parts)


def called(name: str, text: str, known: Any) -> list[str]:
    """List the functions of ours that a function calls."""
    body = text.partition("AS $function$")[2] or text.partition("BEGIN ATOMIC")[2]
    code = re.sub(r"--.*|'[^']*'", "", body)
    found = set(re.findall(r"\b([a-z_]+\.\w+)\(", code)) & set(known)
    return sorted(found - {name, "holdfast.refuse"})


def _section(title: str, here: set[str], entries: set[str], calls: dict[str, list[str]]) -> str:
    lines = [f"\n## {title}\n\n"]
    for name in sorted(here & entries) + sorted(here - entries):
        if name not in entries and not calls[name]:
            continue  # a helper without calls of its own is found below those that call it
        shown = ", ".join(f"*{_short(each)}*" if calls[each] else _short(each) for each in calls[name])
        head = f"**{_short(name)}**" if name in entries else _short(name)
        lines.append(textwrap.fill(f"- {head}: {shown or 'nothing of ours'}", 100, subsequent_indent="  ") + "\n")
    return "".join(lines)


def _short(name: str) -> str:
    return name.removeprefix("holdfast.")
