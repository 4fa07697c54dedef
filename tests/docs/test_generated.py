"""The generated pages are what the code and the database say today; `make docs` writes them."""

from __future__ import annotations

import importlib.util
import re
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from psycopg import Connection

from docs.pages import DOCS
from holdfast import faces
from scenarios.crew import Crew, Database, until

DONE = 'holdfast_settled_total{event="succeeded",kind="doze"} 1.0'


def generator() -> Any:
    """Load the script, which is in no package."""
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(DOCS))  # as for the script itself
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(DOCS))
    return module


PAGES = ["configuration.md", "defaults.md", "errors.md", "events.md", "machines.md", "metrics.md"]
OF_FACES = [name for face in faces.all_faces() for name in face.pages]


@pytest.mark.parametrize("name", [*PAGES, *OF_FACES])
def test_a_generated_page_is_up_to_date(db: Connection[Any], name: str) -> None:
    """Deliver: reference pages from the real thing."""
    written = (DOCS / "reference" / name).read_text("utf-8")

    assert written == generator().pages(db)[name], "run `make docs`"


@pytest.mark.one_server
def test_every_documented_default_is_the_one_that_is_used(db: Connection[Any]) -> None:
    """X-12 C-30: what the page says the document states is what code and database have."""
    module = generator().defaults

    assert {each.id: each.ours(db) for each in module.DOCUMENTED} == {each.id: each.value for each in module.DOCUMENTED}


@pytest.mark.one_server
@pytest.mark.parametrize(
    ("number", "function", "written", "instead"),
    [
        ("O-32", "ops.sweep_runs", "'5 minutes'", "'6 minutes'"),
        ("O-32", "ops.cancel_if_stale", "'5 minutes'", "'4 minutes'"),
        ("O-32", "ops.stale_reason", "'00:05:00'", "'00:07:00'"),
        ("O-50", "ops.repeated_event", "'10 seconds'", "'11 seconds'"),
    ],
)
def test_a_default_that_the_database_has_otherwise_is_seen(
    db: Connection[Any], number: str, function: str, written: str, instead: str
) -> None:
    """X-12: the page reads the functions that decide, not a copy of the number."""
    module = generator().defaults
    (default,) = [each for each in module.DOCUMENTED if each.id == number]
    ((text,),) = db.execute("select pg_get_functiondef(%s::regproc)", [function]).fetchall()
    assert written in text
    db.execute(text.replace(written, instead))

    assert default.ours(db) != default.value


@pytest.mark.one_server
def test_no_parameter_of_the_requirements_is_left_out(db: Connection[Any]) -> None:
    """X-12: every row of kind P at least, where the requirements are at hand."""
    ledger = DOCS.parents[1] / "shared" / "requirements"
    if not ledger.is_dir():
        pytest.skip("the requirements are not part of the repository")
    wanted = {
        row[1]
        for file in ledger.glob("*.md")
        for row in re.finditer(r"^\| ([A-Z]-\d+) \| [^|]+ \| P \|", file.read_text("utf-8"), re.MULTILINE)
    }

    assert wanted <= {each.id for each in generator().defaults.DOCUMENTED}


@pytest.mark.one_server
def test_the_map_of_the_functions_is_what_the_catalog_says(db: Connection[Any]) -> None:
    """A stranger finds what a public function calls without opening it."""
    module = generator().function_map

    assert module.PLACE.read_text("utf-8") == module.function_map(db), "run `make docs`"


def test_a_scrape_has_the_meters_of_the_page_and_no_others(dsn: str, tmp_path: Path) -> None:
    """W-56 W-64: metrics are exported, each is documented."""
    page = (DOCS / "reference" / "metrics.md").read_text("utf-8")
    told = dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", page, re.MULTILINE))
    crew = Crew(dsn, tmp_path)
    try:
        worker = crew.hire_ready("--probe-port", "0")
        Database(dsn).start("doze")
        until(lambda: DONE in _scrape(worker.text()), "a task was counted as done")
        scraped = _scrape(worker.text())
    finally:
        crew.dismiss()

    served = dict(re.findall(r"^# TYPE (\w+) (\w+)$", scraped, re.MULTILINE))
    assert {name: sort for name, sort in served.items() if not name.endswith("_created")} == told
    assert re.search(r'^holdfast_worker_state\{state="\w+"\} 1\.0$', scraped, re.MULTILINE)


def _scrape(said: str) -> str:
    (address,) = re.findall(r"^probe: (http://\S+)/healthz", said, re.MULTILINE)
    with urllib.request.urlopen(f"{address}/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
    return text
