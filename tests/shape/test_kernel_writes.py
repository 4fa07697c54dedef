"""No face writes the kernel's tables, apart from its own machines and policies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources.abc import Traversable

import pytest

from holdfast import faces
from holdfast.faces import Face

WRITE = re.compile(r"\b(?:insert\s+into|update(?:\s+only)?|delete\s+from|merge\s+into|truncate|copy)\s+holdfast\.(\w+)")
OWN = {"machine.sql": {"machines", "machine_states", "machine_moves"}, "policies.sql": {"policies"}}


@pytest.mark.parametrize("face", faces.all_faces(), ids=lambda face: face.name)
def test_a_faces_sql_writes_no_kernel_table(face: Face) -> None:
    writes = {
        f"{path}: {table}"
        for path, file in _sql_files(face.folder())
        for table in WRITE.findall(re.sub(r"--.*", "", file.read_text("utf-8").lower()))
        if table not in OWN.get(path, ())
    }

    assert writes == set()


def _sql_files(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, Traversable]]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _sql_files(item, f"{prefix}{item.name}/")
        elif item.name.endswith(".sql"):
            yield f"{prefix}{item.name}", item
