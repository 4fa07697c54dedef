"""Finds the handle of something that was started elsewhere, by its id."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from holdfast import faces
from holdfast.engine import Engine
from holdfast.errors import BadInput, NotFound, Pruned
from holdfast.kernel import calls
from holdfast.kernel.handle import Handle, Plan

IDS = (int, UUID, str)  # a bool is an int, but not an id


def find(engine: Engine, id: int | UUID | str) -> Plan[Handle[Any]]:  # noqa: A002 - the word is the same in SQL
    """Return the handle of the face whose ids have this form; where several have, of the face of the run's machine.

    If there is no such run, each of them is asked: a face may give out the id of a run before the run exists.
    """
    forms = [face for face in faces.all_faces() if face.id_form is not None]
    handles: dict[str, Handle[Any]] = {
        face.name: face.load("handle")(engine, str(id))
        for face in forms
        if type(id) in IDS and re.fullmatch(face.id_form or "", str(id))
    }
    if not handles:
        raise BadInput(
            f"id must be the number of a task or the UUID of a run, got {id!r}",
            where="id",
            next="find the id with `holdfast runs list`",
        )
    first = next(iter(handles.values()))
    if len(handles) == 1:
        return first
    machines: list[str] = yield calls.run_machine(UUID(str(id)))
    owner = faces.face_of(machines[0]) if machines else None
    if owner is not None:
        return handles.get(owner.name, first)
    for handle in handles.values():
        try:
            yield from handle._status()
        except (NotFound, Pruned):
            continue
        return handle
    return first
