"""Parses YAML to values that JSON can hold; rejects what YAML would guess, repeat or share endlessly."""

from __future__ import annotations

import re
from typing import Any

import yaml

from holdfast.errors import BadDefinition

LARGEST_TEXT = 1_000_000  # characters
MOST_VALUES = 100_000  # counting every alias in full
_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_KNOWN_TAGS = {f"{_TAG}{name}" for name in ("map", "seq", "str", "int", "float", "bool", "null", "merge", "value")}


class _Loader(yaml.SafeLoader):
    """Reads true, false, null and numbers as JSON and YAML 1.2 do; `no`, `on`, 12:30 and dates are text."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - as in PyYAML


for _name, _pattern, _first in (
    ("null", r"null|~|", ["n", "~", ""]),
    ("bool", r"true|false", list("tf")),
    ("int", r"-?(?:0|[1-9][0-9]*)", list("-0123456789")),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", list("-0123456789")),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(f"{_TAG}{_name}", re.compile(rf"(?:{_pattern})$"), _first)


def read(text: str, where: str) -> Any:
    """Parse one document; `where` is its name in messages."""
    if len(text) > LARGEST_TEXT:
        raise BadDefinition(
            f"{where} must have at most {LARGEST_TEXT} characters, got {len(text)}",
            where=where,
            next="split the flow",
        )
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            raise BadDefinition(f"{where} is empty", where=where, next="write at least a name and steps")
        _Nodes(where).check(root)
        return loader.construct_document(root)
    except yaml.YAMLError as error:
        raise BadDefinition(
            f"{where} is not valid YAML: {_message(error)}", where=where, next="correct it there"
        ) from None
    except RecursionError:
        raise BadDefinition(f"{where} is nested too deep", where=where, next="use fewer levels") from None
    finally:
        loader.dispose()


class _Nodes:
    """Checks a document before it is turned into values."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._sizes: dict[int, int | None] = {}  # None while a node is being counted

    def check(self, node: yaml.Node) -> int:
        """Count the values below a node, each alias in full, and raise for nodes that are not allowed."""
        if id(node) in self._sizes:
            size = self._sizes[id(node)]
            if size is None:
                raise self._refused(node, "contains itself; an alias can only name a complete value")
            return size
        self._sizes[id(node)] = None
        if node.tag not in _KNOWN_TAGS:
            raise self._refused(node, f"has the tag {node.tag.replace(_TAG, '!!')}; use only plain values")
        if isinstance(node, yaml.MappingNode):
            self._check_keys(node)
            size = 1 + sum(self.check(key) + self.check(value) for key, value in node.value)
        elif isinstance(node, yaml.SequenceNode):
            size = 1 + sum(map(self.check, node.value))
        else:
            size = 1
        if size > MOST_VALUES:
            raise self._refused(node, f"expands, with its aliases, to more than {MOST_VALUES} values; make it smaller")
        self._sizes[id(node)] = size
        return size

    def _check_keys(self, node: yaml.MappingNode) -> None:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag not in {f"{_TAG}str", _MERGE}:
                raise self._refused(key, f"has the key {key.value!r}, which is not text; put it in quotes")
            if key.value in seen:
                raise self._refused(key, f"has the key {key.value} twice; YAML would drop the first")
            seen.add(key.value)

    def _refused(self, node: yaml.Node, message: str) -> BadDefinition:
        return BadDefinition(f"{self._where}, line {node.start_mark.line + 1}: this {message}", where=self._where)


def _message(error: yaml.YAMLError) -> str:
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return str(error).splitlines()[0]
    return f"line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}: {error.problem}"
