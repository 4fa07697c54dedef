"""Pages of the documentation as a reader follows them: fenced blocks are files, commands, programs, SQL and answers.

The first word after the fence is the language, a second one says more:

    bash            typed into a shell          bash install   not typed: the tests have what it installs
    python x.py     written into that file      python         run as a program
    yaml x.yaml     written into that file
    sql             typed into psql             ini, dockerfile, yaml: their commands are tried, see test_pages.py
    output          what the block before it printed, line by line; … stands for anything

All pages are read in one folder and one database, so no page may count on the numbers of its tasks. A page is read in a
terminal and a psql of its own: a variable that is set in a block of bash, or of SQL, is there in those that follow.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from holdfast import embedded

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_FENCED = re.compile(r"^```(\S*) ?(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FAILED = ("error:", "ERROR:", "Traceback")
_WARNS = re.compile(r"^.*(?:\w+Warning: |^warning: ).*$", re.MULTILINE)
_KEEPING = """. '{file}'; trap "export -p >'{file}'" EXIT; set -aeuo pipefail
{text}"""
END = "that was all"
PATIENCE = 100  # seconds


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    language: str
    more: str
    text: str
    line: int = 0  # of the page, on which the text begins

    @property
    def shows_failure(self) -> bool:
        """Whether it is the output of a block that fails on purpose."""
        return self.language == "output" and self.text.startswith(_FAILED)


def blocks(page: Path) -> list[Block]:
    """Read the fenced blocks of a page, in order."""
    text = page.read_text("utf-8")
    return [Block(*each.groups(), text.count("\n", 0, each.start(3)) + 1) for each in _FENCED.finditer(text)]


class Reader:
    """Somebody who does what the pages say, one after the other, in one folder and one database."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self._folder = folder
        self._variables = folder / ".variables"
        clean = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        given = {f"HOLDFAST_{name.upper()}": value for name, value in settings.items()}
        terminal = {"COLUMNS": "200", "PYTHONWARNINGS": "default"}
        self._environment = clean | given | terminal | {"PATH": path, "PSQL": str(embedded.binary("psql"))}
        (folder / "examples").symlink_to(ROOT / "examples")

    def follow(self, page: Path) -> None:
        """Do all that a page says, in a new terminal, and compare what it shows with what comes."""
        self._variables.write_text("")
        with ExitStack() as self._ended:
            self._psql = None
            self._read(blocks(page))

    def _read(self, found: list[Block]) -> None:
        printed = ""
        for place, block in enumerate(found):
            after = found[place + 1] if place + 1 < len(found) else Block("", "", "")
            if block.language == "output":
                _compare(block.text, printed)
            elif block.language in {"python", "yaml"} and block.more:
                file = self._folder / block.more
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block.text)
            else:
                printed = self._do(block, may_fail=after.shows_failure)
                assert _WARNS.findall(printed) == [], f"{block.text}\n{printed}"

    def _do(self, block: Block, *, may_fail: bool) -> str:
        match block.language, block.more:
            case "bash", "":
                command = ["bash", "-c", _KEEPING.format(file=self._variables, text=block.text)]
            case "python", "":
                command = [sys.executable, "-c", block.text]
            case "sql", "":
                printed = self._ask(block.text)
                assert ("ERROR:" in printed) == may_fail, f"{block.text}\n{printed}"
                return printed
            case _:
                return ""
        with subprocess.Popen(
            command, cwd=self._folder, env=self._environment, text=True, process_group=0,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as done:  # fmt: skip
            try:
                printed, _ = done.communicate(timeout=PATIENCE)
            except BaseException:
                os.killpg(done.pid, signal.SIGKILL)
                raise
        assert (done.returncode != 0) == may_fail, f"{block.text}\n{printed}"
        return printed

    def _ask(self, text: str) -> str:
        """Type into the page's psql, and give what it prints."""
        if self._psql is None:
            self._psql = self._ended.enter_context(
                subprocess.Popen(
                    ["holdfast", "db", "psql", "-X"],
                    cwd=self._folder,
                    env=self._environment,
                    text=True,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                )
            )
            self._ended.callback(self._psql.stdin.close)
        hurry = threading.Timer(PATIENCE, self._psql.kill)
        hurry.start()
        try:
            self._psql.stdin.write(f"{text}\n;\n\\! echo {END}\n")
            self._psql.stdin.flush()
            lines: list[str] = []
            while (line := self._psql.stdout.readline()) != f"{END}\n":
                assert line, f"psql has ended:\n{''.join(lines)}"
                lines.append(line)
            return "".join(lines)
        finally:
            hurry.cancel()


def _compare(shown: str, printed: str) -> None:
    """Find the lines that a page shows, in their order, in what was printed; blanks count as one.

    Two threads that print at once may share a line, so a line is looked for within those that came.
    """
    text = "\n".join(" ".join(line.split()) for line in printed.splitlines())
    place = 0
    for line in filter(None, (" ".join(line.split()) for line in shown.splitlines())):
        wanted = re.compile(".*".join(re.escape(part) for part in re.split(" ?… ?", line)))
        match = wanted.search(text, place)
        assert match is not None, f"{line!r} is not in what came:\n{printed}"
        place = match.end()
