"""The table that a feed fills: which columns it has, and the statements that write it with the worker's own rights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from enum import Enum
from typing import Any

from psycopg import Connection, sql
from pydantic import BaseModel

from holdfast.errors import BadDefinition
from holdfast.ingest.json_text import json_text
from holdfast.kernel.arrays import Texts

COLUMNS = """
select a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), t.typcategory = 'A', t.typname in ('json', 'jsonb')
  from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid
 where a.attrelid = pg_catalog.to_regclass(%s) and a.attnum > 0 and not a.attisdropped
"""
UNIQUE = """
select exists (
  select from pg_catalog.pg_index i join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attname = %s
   where i.indrelid = pg_catalog.to_regclass(%s) and i.indisunique and i.indpred is null
     and i.indnkeyatts = 1 and i.indkey[0] = a.attnum)
"""
RIGHTS = """
select r, pg_catalog.quote_ident(current_user)
  from unnest(%s::text[]) r where not pg_catalog.has_table_privilege(%s, r)
"""
TYPES: dict[type, str] = {
    int: "bigint", float: "double precision", bool: "boolean", datetime: "timestamptz", date: "date", dict: "jsonb",
    list: "jsonb",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the target."""

    name: str
    type: str
    is_array: bool
    is_json: bool


class Canonical:
    """The table that a feed fills: `Canonical("orders", Order, key="id")`.

    `model` is a pydantic model whose fields are columns. The table needs a unique constraint on `key` and a
    `timestamptz` column for soft deletes, `deleted_at` by default.
    """

    def __init__(self, table: str, model: type[BaseModel], *, key: str, deleted_at: str = "deleted_at") -> None:
        given: Any = model
        if not (isinstance(given, type) and issubclass(given, BaseModel)):
            raise BadDefinition(f"model must be a pydantic model, got {model!r}", where="model", next="use a BaseModel")
        if key not in model.model_fields:
            raise BadDefinition(
                f"{model.__name__} has no field {key}", where="key", next=f"use one of: {', '.join(model.model_fields)}"
            )
        if not table or any(not part for part in table.split(".")) or len(table.split(".")) > 2:
            raise BadDefinition(f"table must be name or schema.name, got {table!r}", where="table", next='use "orders"')
        self.table = table
        self.model = model
        self.key = key
        self.deleted_at = deleted_at
        self._fields = tuple(model.model_fields)
        self._name = sql.Identifier(*table.split("."))
        self._columns: list[Column] | None = None
        self._upserts: dict[tuple[str, ...], bytes] = {}  # statements, by the columns that they write

    def read(self, payload: Any) -> dict[str, Any]:
        """Return the values of a record, checked by the model; `payload` may be an instance of it."""
        made = payload if isinstance(payload, self.model) else self.model.model_validate(payload)
        return {name: getattr(made, name) for name in self._fields}

    def wanted(self) -> list[str]:
        """List the columns that the table needs."""
        return [*self.model.model_fields, self.deleted_at]

    def check(self, connection: Connection[Any]) -> None:
        """Raise BadDefinition for a table that lacks a column, a unique key or a right."""
        regclass = self._name.as_string(connection)
        columns = [Column(*row) for row in connection.execute(COLUMNS, [regclass]).fetchall()]
        missing = [name for name in self.wanted() if name not in {column.name for column in columns}]
        if missing:
            raise BadDefinition(
                f"the table {self.table} has no column {', '.join(missing)}" if columns
                else f"there is no table {self.table}, or the login may not see it",
                where=self.table, next="holdfast ingest ddl prints the statements that add what is missing",
            )  # fmt: skip
        rights = connection.execute(RIGHTS, [["SELECT", "INSERT", "UPDATE"], regclass]).fetchall()
        if rights:
            lacking = ", ".join(right for right, _ in rights).lower()
            login = rights[0][1]
            raise BadDefinition(
                f"the worker's login lacks {lacking} on {self.table}",
                where=self.table,
                next=f"grant {lacking} on {regclass} to {login}",
            )
        if connection.execute(UNIQUE, [self.key, regclass]).fetchone() != (True,):
            raise BadDefinition(
                f"the column {self.key} of {self.table} is not unique",
                where=self.key,
                next=f"alter table {regclass} add unique ({self.key})",
            )
        self._columns = columns

    def ddl(self, connection: Connection[Any]) -> list[str]:
        """Return the statements that add what the table lacks."""
        regclass = self._name.as_string(connection)
        have = {row[0] for row in connection.execute(COLUMNS, [regclass]).fetchall()}
        types = {name: _type(field.annotation) for name, field in self.model.model_fields.items()}
        types[self.deleted_at] = "timestamptz"
        if not have:
            lines = [f'"{name}" {kind}' + (" primary key" if name == self.key else "") for name, kind in types.items()]
            return [f"create table {regclass} ({', '.join(lines)})"]
        added = [
            f'alter table {regclass} add column "{name}" {kind}' for name, kind in types.items() if name not in have
        ]
        if connection.execute(UNIQUE, [self.key, regclass]).fetchone() != (True,):
            added.append(f'alter table {regclass} add unique ("{self.key}")')
        return added

    def upsert(self, tx: Connection[Any], rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert or update rows with one statement over arrays; a row that was deleted comes back."""
        columns = [column for column in self._known(tx) if column.name in rows[0]]
        names = tuple(column.name for column in columns)
        if names not in self._upserts:
            self._upserts[names] = self._upsert_statement(columns)
        tx.execute(self._upserts[names], [_as_texts([row[column.name] for row in rows], column) for column in columns])

    def _upsert_statement(self, columns: Sequence[Column]) -> bytes:
        """Return the statement for rows with these columns, which is composed once."""
        names = [sql.Identifier(column.name) for column in columns]
        others = [name for column, name in zip(columns, names, strict=True) if column.name != self.key]
        statement = sql.SQL(
            "insert into {table} ({names}) select {values} from unnest({arrays}) u ({places}) "
            "on conflict ({key}) do update set {sets}"
        ).format(
            table=self._name,
            names=sql.SQL(", ").join(names),
            values=sql.SQL(", ").join(_value(column, place) for place, column in enumerate(columns)),
            arrays=sql.SQL(", ").join(sql.SQL("%b::text[]") for _ in columns),
            places=sql.SQL(", ").join(sql.Identifier(f"v{place}") for place in range(len(columns))),
            key=sql.Identifier(self.key),
            sets=sql.SQL(", ").join([
                *(sql.SQL("{0} = excluded.{0}").format(name) for name in others),
                sql.SQL("{} = null").format(sql.Identifier(self.deleted_at)),
            ]),
        )  # fmt: skip
        return statement.as_bytes()

    def delete(self, tx: Connection[Any], keys: Sequence[str]) -> None:
        """Mark rows as deleted by their keys as text."""
        (column,) = [each for each in self._known(tx) if each.name == self.key]
        tx.execute(
            sql.SQL("update {} set {} = holdfast.clock() where {} = any (%s::{}[]) and {} is null").format(
                self._name, sql.Identifier(self.deleted_at), sql.Identifier(self.key), sql.SQL(column.type),
                sql.Identifier(self.deleted_at),
            ),
            [list(keys)],
        )  # fmt: skip

    def _known(self, tx: Connection[Any]) -> list[Column]:
        if self._columns is None:
            self._columns = [Column(*row) for row in tx.execute(COLUMNS, [self._name.as_string(tx)]).fetchall()]
        return self._columns


def _value(column: Column, place: int) -> sql.Composable:
    """Return the expression that turns a text into the column's type."""
    name, kind = sql.Identifier(f"v{place}"), sql.SQL(column.type)
    if not column.is_array:
        return sql.SQL("u.{}::{}").format(name, kind)
    return sql.SQL(
        "case when u.{0} is not null then array(select e from jsonb_array_elements_text(u.{0}::jsonb) e)::{1} end"
    ).format(name, kind)


def _as_texts(values: list[Any], column: Column) -> Sequence[str | None]:
    """Return a column of rows as text; most types need no conversion."""
    if not (column.is_json or column.is_array):
        kinds = set(map(type, values))
        if kinds == {str}:
            return Texts(values)
        if kinds == {int}:
            return Texts(map(str, values))
    return [as_text(value, column) for value in values]


def as_text(value: Any, column: Column) -> str | None:
    """Return a value as the text of its column's type."""
    match value:
        case None:
            return None
        case _ if column.is_json or column.is_array:
            return json_text(value)
        case bool():
            return "true" if value else "false"
        case Enum():
            return as_text(value.value, column)
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return "\\x" + value.hex()
    return str(value)


def _type(annotation: Any) -> str:
    named = getattr(annotation, "__name__", "")
    kinds = {"Decimal": "numeric", "UUID": "uuid"}
    return TYPES.get(annotation) or kinds.get(named, "text")
