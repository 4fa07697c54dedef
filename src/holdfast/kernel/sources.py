"""The SQL files of the kernel and of the faces, in the order of their installation."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from holdfast import faces
from holdfast.errors import BadDefinition
from holdfast.faces import Face

CALLED = ("starts", "is_open", "cancels", "prunes", "ages", "unwanted")  # the fields of a Face that name SQL functions
KERNEL = "code"  # the name of the kernel's part in holdfast.installed; a face's part has the face's name
# Other objects need these when they are created; everything else in plpgsql resolves names when it runs.
FIRST = (
    "clock", "chance", "refuse", "is_live", "is_due", "is_success", "is_live_worker", "step_policy", "policy_of",
    "allowed_tenants", "limit_family", "limit_rule", "bucket_level", "tokens_at", "is_probed", "would_admit",
    "is_ready", "is_all_due",
)  # fmt: skip
_COMMENT = re.compile(r"--.*$", re.MULTILINE)
_INDEX = re.compile(r"create index concurrently if not exists (\w+)\s+on holdfast\.(\w+)\s.*", re.DOTALL)
_MADE = re.compile(r"^create (?:or replace )?(?:table|view|function|type|sequence) ([a-z_]+\.\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Migration:
    """A numbered change of tables and types, which cannot simply be replaced."""

    number: int
    name: str
    text: str


@dataclass(frozen=True)
class Index:
    """An index on a table that may be large and in use; it is built outside of transactions."""

    name: str
    table: str  # of the schema holdfast
    text: str


@cache
def migrations() -> tuple[Migration, ...]:
    """List the numbered migrations of this code, in order."""
    paths = _files(_kernel() / "migrations")
    return tuple(Migration(int(f.name[:4]), f.name.removesuffix(".sql"), f.read_text("utf-8")) for f in paths)


def roles() -> str:
    """Read the SQL that creates the roles."""
    return (_kernel() / "roles.sql").read_text("utf-8")


def schemas() -> list[str]:
    """List our schemas: the kernel's and those of the faces."""
    return ["holdfast", *(face.name for face in faces.all_faces() if face.has_schema)]


def parts() -> dict[str, list[str]]:
    """Read what is installed besides the migrations: the kernel first, then each face."""
    return {KERNEL: _kernel_part(), **{face.name: _face_part(face) for face in faces.all_faces()}}


def indexes() -> list[Index]:
    """List the indexes that are built concurrently, after the migrations: the kernel's, then those of each face."""
    folders = [_kernel(), *(face.folder() for face in faces.all_faces())]
    statements = (_COMMENT.sub("", text).split(";") for folder in folders for text in _texts(folder, "indexes"))
    return [_index(statement.strip()) for each in statements for statement in each if statement.strip()]


def _index(statement: str) -> Index:
    match = _INDEX.fullmatch(statement)
    if match is None:
        raise BadDefinition(
            f"indexes.sql has a statement of another kind: {statement}",
            where="indexes.sql",
            next="write create index concurrently if not exists … on holdfast.…; put the rest into a migration",
        )
    return Index(match[1], match[2], statement)


def made() -> list[str]:
    """List the tables, views, functions and types that we create, with their schemas."""
    texts = [*(migration.text for migration in migrations()), *(text for part in parts().values() for text in part)]
    return sorted({name for text in texts for name in _MADE.findall(text)})


def digest(texts: Sequence[str]) -> str:
    """Return the digest of a part."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


@cache
def _kernel_part() -> list[str]:
    root = _kernel()
    functions = _functions(root)
    ordered = [*FIRST, *sorted(functions.keys() - set(FIRST))]
    return [
        *_texts(root, "dropped"),
        *(functions[name].read_text("utf-8") for name in ordered),
        *_texts(root / "views"),
        *_texts(root, "triggers", "policies", "rights"),
    ]


def _face_part(face: Face) -> list[str]:
    root = face.folder()
    return [
        *([_schema(face)] if face.has_schema else []),
        *_texts(root, "dropped", "types"),
        *_texts(root / "views"),
        *(file.read_text("utf-8") for _, file in sorted(_functions(root).items())),
        *_texts(root, "triggers", "policies", "machine", "rights"),
        _entry(face),
    ]


def _entry(face: Face) -> str:
    """Return the statement that stores which functions of the face the kernel calls."""
    functions = ", ".join("null" if name is None else f"'{name}'" for name in (getattr(face, f) for f in CALLED))
    columns = ", ".join(CALLED)
    changes = ", ".join(f"{column} = excluded.{column}" for column in CALLED)
    return (
        f"insert into holdfast.faces (face, {columns}) values ('{face.name}', {functions}) "  # noqa: S608 - our own names
        f"on conflict (face) do update set {changes};"
    )


def _schema(face: Face) -> str:
    return f"""create schema if not exists {face.name};
comment on schema {face.name} is 'Holdfast: {face.summary}';
grant usage on schema {face.name} to hf_producer, hf_worker, hf_reader, hf_operator;"""


def _functions(root: Traversable) -> dict[str, Traversable]:
    """Map function names to their files, in the folder `functions` and its subfolders."""
    folder = root / "functions"
    stories = [each for each in folder.iterdir() if each.is_dir()] if folder.is_dir() else []
    return {file.name.removesuffix(".sql"): file for story in [folder, *stories] for file in _files(story)}


def _texts(folder: Traversable, *names: str) -> list[str]:
    """Read the SQL files of a folder: all of them by name, or the named ones that exist, in the given order."""
    by_name = {file.name.removesuffix(".sql"): file for file in _files(folder)}
    return [by_name[name].read_text("utf-8") for name in names or by_name if name in by_name]


def _files(folder: Traversable) -> list[Traversable]:
    if not folder.is_dir():
        return []
    return sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)


def _kernel() -> Traversable:
    return files("holdfast") / "sql" / "kernel"
