"""The map of the code names files and functions that exist."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAP = (ROOT / "docs/design/map.md").read_text(encoding="utf-8")
FUNCTIONS = sorted(set(re.findall(r"`([\w/]+)\.py: ([\w.]+)`", MAP)))
FILES = sorted(set(re.findall(r"`(sql/[\w/]+\.sql)`", MAP)))


@pytest.mark.parametrize(("module", "name"), FUNCTIONS)
def test_a_function_on_the_map_exists(module: str, name: str) -> None:
    loaded = import_module("holdfast." + module.replace("/", "."))

    assert reduce(getattr, name.split("."), loaded) is not None


def test_the_sql_on_the_map_exists() -> None:
    assert [path for path in FILES if not (ROOT / "src/holdfast" / path).is_file()] == []


def test_every_reference_of_the_map_is_understood() -> None:
    references = re.findall(r"`[\w/]+\.(?:py|sql)\b[^`]*`", MAP)

    assert len(references) >= 40
    assert [each for each in references if not re.fullmatch(r"`(?:[\w/]+\.py: [\w.]+|sql/[\w/]+\.sql)`", each)] == [
        "`tests/shape/test_map.py`"
    ]
