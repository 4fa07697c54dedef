"""What the pages tell people to do works, in order, and gives what they show."""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path

import pytest
import typer

from docs.pages import DOCS, ROOT, Block, Reader, blocks
from holdfast.cli import app

ELSEWHERE = {"testing.md"}  # tests/testing runs it, with pytest
COMMANDS = {"ini", "dockerfile", "yaml"}
_LISTED = re.compile(r"^- \[.*\]\(((?:tutorial|guides)/[^)]+)\)", re.MULTILINE)


def pages() -> list[Path]:
    """List the README, the tutorials and the guides in the order of the index."""
    index = _LISTED.findall((DOCS / "README.md").read_text("utf-8"))
    return [ROOT / "README.md", *(DOCS / page for page in index)]


FOLLOWED = [page for page in pages() if page.name not in ELSEWHERE]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def shares() -> list[list[Path]]:
    """Deal the pages out to two readers, who both begin with the README; each page costs what it lets them do."""
    readme, *others = FOLLOWED
    costs = {
        page: sum(block.language in {"bash", "python"} and not block.more for block in blocks(page)) for page in others
    }
    shares: list[list[Path]] = [[readme], [readme]]
    for page in sorted(others, key=lambda page: -costs[page]):
        min(shares, key=lambda share: sum(costs.get(each, 0) for each in share)).append(page)
    return [sorted(share, key=FOLLOWED.index) for share in shares]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "pages",
    [*shares(), pytest.param(FOLLOWED, marks=pytest.mark.long)],
    ids=["one half", "the other half", "all"],
)
def test_pages_read_in_one_database_give_what_they_show(pages: list[Path], home: Path, tmp_path: Path) -> None:
    """Deliver: every code block is run, from a home in which nothing was started, and no page disturbs another."""
    reader = Reader(tmp_path, home=str(home))
    for page in pages:
        try:
            reader.follow(page)
        except AssertionError as error:
            error.add_note(f"in {named(page)}")
            raise


@pytest.mark.parametrize("page", FOLLOWED, ids=named)
def test_every_block_is_of_a_sort_that_is_run(page: Path) -> None:
    known = {"bash", "python", "sql", "output"} | COMMANDS

    assert {block.language for block in blocks(page)} <= known
    assert {block.more for block in blocks(page) if block.language == "bash"} <= {"", "install"}


def commands(block: Block) -> list[str]:
    """Find the command lines of ours in a unit, an image or a manifest."""
    if block.language == "ini":
        unit = configparser.ConfigParser(interpolation=None)
        unit.optionxform = str  # type: ignore[assignment,method-assign]
        unit.read_string(block.text)
        return [unit["Service"]["ExecStart"].partition("/bin/")[2]]
    lists = re.findall(r"\[(\"holdfast\".*?)\]", block.text)
    return [shlex.join(re.findall(r'"(.*?)"', each)) for each in lists]


@pytest.mark.parametrize("page", FOLLOWED, ids=named)
def test_the_commands_in_units_and_images_are_understood(page: Path) -> None:
    """Parsed as the command line is, and not run: they run for ever."""
    ours = typer.main.get_command(app)
    for block in (each for each in blocks(page) if each.language in COMMANDS):
        for line in commands(block):
            _, name, *arguments = shlex.split(line)
            command = ours.commands[name]  # type: ignore[attr-defined]
            assert command.make_context(name, arguments, resilient_parsing=False).params["app"]


def test_the_make_targets_that_pages_name_are_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    told = set(re.findall(r"(?:^    |`)make ([a-z-]+)", text, re.MULTILINE))

    assert {"demo", "test", "docs"} <= told <= targets


def test_each_message_that_troubleshooting_quotes_is_one_of_ours() -> None:
    """Those that the page provokes are compared when it is read; these are only quoted."""
    page = (DOCS / "guides" / "troubleshooting.md").read_text("utf-8")
    quoted = re.findall(r"^    (?:error|warning): (.+)$", page, re.MULTILINE)
    text = " ".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    parts = [part for message in quoted for part in re.split(r"\s*…[,:]?\s*|:?\s*HOLDFAST_\w+[:?]?\s*", message)]

    assert len(quoted) >= 6
    assert [part for part in parts if part.strip() and part.strip() not in text] == []


def test_every_link_leads_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8")):
            assert "://" not in link, f"{page.name} leads out: {link}"
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_index_has_every_page() -> None:
    index = (DOCS / "README.md").read_text("utf-8")

    assert [page for page in DOCS.rglob("*.md") if f"({page.relative_to(DOCS)})" not in index] == [DOCS / "README.md"]


def test_the_picture_of_the_demo_needs_nothing_from_outside() -> None:
    """No web fonts and no addresses, but for the name of the format."""
    drawn = (DOCS / "images" / "demo.svg").read_text("utf-8")

    assert set(re.findall(r"\w+://[^\"' <)]+", drawn)) == {"http://www.w3.org/2000/svg"}
    assert "@font-face" not in drawn
    assert "lost" in drawn
