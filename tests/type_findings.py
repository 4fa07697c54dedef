"""What mypy --strict and pyright find in user code: the examples of the documentation, and the files of tests/typing.

The examples must have no findings. A line of a file in tests/typing names what both tools find on it:
`# mypy: arg-type, pyright: reportArgumentType`, or several rules with blanks between them. `make check` runs this file,
with one process per tool.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from docs.modules import pages, write_files, write_pages

ROOT = Path(__file__).parents[1]
USER_CODE = ROOT / "tests" / "typing"
# The types of a Django model's fields come from a plugin of mypy's, which needs a project's settings.
_MYPY = """
[mypy]
strict = True
[mypy-*.models]
disable_error_code = var-annotated
"""
_EXPECTED = re.compile(r"# mypy: ([\w -]+), pyright: ([\w ]+)$")


@dataclass(frozen=True, order=True)
class Finding:
    """A complaint of a tool; `rule` is its own name for the mistake."""

    file: str
    line: int
    tool: str
    rule: str


Findings = dict[Finding, str]  # with their messages


def mypy(root: Path) -> Findings:
    """Check a folder as a user does who has neither our configuration nor our plugins."""
    (root / "mypy.ini").write_text(_MYPY)
    command = [sys.executable, "-m", "mypy", "--strict", "--output=json", "--no-error-summary"]
    placed = ["--explicit-package-bases", f"--cache-dir={ROOT / '.mypy_cache' / 'user_code'}", "."]
    done = subprocess.run([*command, *placed], cwd=root, capture_output=True, text=True)
    if done.returncode not in {0, 1}:
        raise RuntimeError(f"mypy ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        Finding(str(root / row["file"]), row["line"], "mypy", row["code"]): row["message"]
        for row in rows
        if row["severity"] == "error"
    }


def pyright(root: Path) -> Findings:
    """Check a folder in the mode that pyright has unless told otherwise. Its wheels bring node: nothing is loaded."""
    (root / "pyrightconfig.json").write_text(json.dumps({"include": ["."], "pythonVersion": "3.11"}))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "--project", str(root)]
    settings = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, env=settings)
    if done.returncode not in {0, 1}:
        raise RuntimeError(f"pyright ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    rows = json.loads(done.stdout)["generalDiagnostics"]
    return {
        Finding(row["file"], row["range"]["start"]["line"] + 1, "pyright", row.get("rule", "syntax")): row["message"]
        for row in rows
        if row["severity"] in {"error", "warning"}
    }


def expected(user_code: Path) -> set[Finding]:
    """Read what the comments of user code say that the tools find."""
    return {
        Finding(_shown(path), number, tool, rule)
        for path in user_code.glob("*.py")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if (match := _EXPECTED.search(line)) is not None
        for tool, rules in zip(("mypy", "pyright"), match.groups(), strict=True)
        for rule in rules.split()
    }


def found(root: Path, sources: dict[Path, Path]) -> Findings:
    """Check the modules under a folder with both tools; name each finding's source instead of its module."""
    with ThreadPoolExecutor() as tools:
        of_mypy, of_pyright = tools.map(lambda tool: tool(root), (mypy, pyright))
    return {
        Finding(_shown(sources.get(Path(each.file), Path(each.file))), each.line, each.tool, each.rule): message
        for each, message in {**of_mypy, **of_pyright}.items()
    }


def main() -> int:
    """Print each finding that nobody expects, and each that is expected in vain."""
    with tempfile.TemporaryDirectory(prefix="hf-types-") as folder:
        root = Path(folder).resolve()
        sources = write_pages(root, pages()) | write_files(root, ROOT / "examples") | write_files(root, USER_CODE)
        findings = found(root, sources)
    wanted = expected(USER_CODE)
    wrong = sorted([*(findings.keys() - wanted), *(wanted - findings.keys())])
    for each in wrong:
        print(f"{each.file}:{each.line}: {each.tool}: {findings.get(each, 'nothing was found')} [{each.rule}]")
    return 1 if wrong else 0


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


if __name__ == "__main__":
    sys.exit(main())
