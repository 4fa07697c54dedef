"""The examples of the documentation as modules, for type checkers: a package for each page, a module for each block.

A page's blocks import its files (`from tasks import welcome`), and other pages have files of the same names. So imports
of a page's own files name its package. Blank lines before a block keep the line numbers of the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from docs.pages import DOCS, ROOT, Block, blocks

FOLDERS = ("tutorial", "guides", "reference")


class Package:
    """A page, or a folder of examples, as it is written down; `sources` has where each module comes from."""

    def __init__(self, root: Path, source: Path) -> None:
        place = source.relative_to(ROOT) if source.is_relative_to(ROOT) else Path(source.name)
        self.sources: dict[Path, Path] = {}
        self._root = root
        self._name = re.sub(r"\W", "_", str(place.with_suffix("")).lower())
        self._modules: dict[str, str] = {}  # by the name of a file, as blocks import it

    def write(self, source: Path, block: Block) -> None:
        """Write a block. A file that is written twice becomes two modules; blocks after it import the second."""
        file = block.more.removesuffix(".py").replace("/", ".")
        module = file or f"block_{block.line}"
        if module in self._modules:
            module = f"{module}_{block.line}"
        if file:
            self._modules[file] = module
        path = self._root / self._name / f"{module.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n" * (block.line - 1) + self._with_own_imports(block.text), "utf-8")
        self.sources[path] = source

    def _with_own_imports(self, text: str) -> str:
        for file, module in self._modules.items():
            name, own = re.escape(file), f"{self._name}.{module}"
            text = re.sub(rf"^( *)from {name} import", rf"\1from {own} import", text, flags=re.MULTILINE)
            text = re.sub(rf"^( *)import {name}(?= *(?:#|$))", rf"\1import {own} as {file}", text, flags=re.MULTILINE)
        return text


def pages() -> list[Path]:
    """List the pages whose examples are checked."""
    return [ROOT / "README.md", *(page for folder in FOLDERS for page in sorted((DOCS / folder).glob("**/*.md")))]


def write_pages(root: Path, some: Iterable[Path]) -> dict[Path, Path]:
    """Write the Python blocks of pages under a folder; return the page of each module."""
    packages = []
    for page in some:
        package = Package(root, page)
        for block, after in pairwise([*blocks(page), Block("", "", "")]):
            if block.language == "python" and not after.shows_failure:  # a mistake that is shown may be one of types
                package.write(page, block)
        packages.append(package)
    return {module: source for package in packages for module, source in package.sources.items()}


def write_files(root: Path, folder: Path) -> dict[Path, Path]:
    """Write the Python files of a folder, which import each other by their names, as if they stood on a page."""
    sources: dict[Path, Path] = {}
    for each in sorted({path.parent for path in folder.glob("**/*.py")}):
        package = Package(root, each)
        for path in sorted(each.glob("*.py")):
            package.write(path, Block("python", path.name, path.read_text("utf-8"), 1))
        sources |= package.sources
    return sources
