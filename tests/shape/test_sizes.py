"""Files and folders of the source stay small enough to be read in one go."""

from __future__ import annotations

from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "holdfast"
MOST_LINES = 300
MOST_FILES = 25
LONGER = {
    "errors.py": "the tree of all errors, with their fields",
    "kernel/calls.py": "one short function per SQL function",
    "models.py": "all rows and outcomes, which every layer imports",
}


def sources() -> list[Path]:
    return [path for path in SOURCE.rglob("*") if path.suffix in {".py", ".sql"}]


def test_a_file_has_at_most_300_lines() -> None:
    lengths = {
        path.relative_to(SOURCE).as_posix(): len(path.read_text(encoding="utf-8").splitlines()) for path in sources()
    }

    assert len(lengths) > 300
    assert sorted(name for name, lines in lengths.items() if lines > MOST_LINES and name not in LONGER) == []


def test_a_folder_has_at_most_25_files() -> None:
    folders = [path.parent.relative_to(SOURCE).as_posix() for path in sources()]

    assert sorted({folder for folder in folders if folders.count(folder) > MOST_FILES}) == []
