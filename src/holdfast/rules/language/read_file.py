"""Reads a rule from a file: JSON, or a list of prices in CSV, which is named after the file."""

from __future__ import annotations

from pathlib import Path

from holdfast.errors import BadDefinition
from holdfast.rules.language.price_list import rule_from_csv
from holdfast.rules.language.read_json import LARGEST_TEXT, from_json
from holdfast.rules.language.rule import Rule


def read_rule(path: Path) -> Rule:
    """Read a rule; the file's ending says in which form it is."""
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_TEXT + 1)  # a byte more, so that the reader refuses it
    except OSError as error:
        raise BadDefinition(
            f"{path} cannot be read: {error.strerror}", where=str(path), next="check the path"
        ) from None
    return rule_from_csv(path.stem, text) if path.suffix.lower() == ".csv" else from_json(text)
