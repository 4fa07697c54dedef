"""Reads a list of prices from CSV: the columns sku and price, and optionally compare-at."""

from __future__ import annotations

import csv
import io
from typing import Final

from holdfast.errors import BadDefinition
from holdfast.rules.language.guard import Guard
from holdfast.rules.language.read_json import LARGEST_TEXT
from holdfast.rules.language.rule import MOST_PRICES, ListedPrice, Rule
from holdfast.rules.language.transforms import set_to

_NAMES: Final = {"sku": "sku", "price": "price", "compareat": "compare_at"}
CLEARED: Final = "-"  # as compare-at is printed where there is none


def rule_from_csv(name: str, text: str | bytes, *, currency: str | None = None, guard: Guard | None = None) -> Rule:
    """Make a rule of a list of prices.

    Amounts have a decimal point. An empty compare-at leaves the item's own alone, and `-` clears it.
    """
    rows = csv.reader(io.StringIO(_decoded(text), newline=""), strict=True)
    try:
        header = _columns(next(rows, []))
        entries: dict[str, ListedPrice] = {}
        for row in rows:
            if row:
                _add(entries, header, row, rows.line_num)
    except csv.Error as error:
        raise BadDefinition(f"line {rows.line_num} is not valid CSV: {error}", where=f"line {rows.line_num}",
                            next="close every quote, and double those inside a cell") from None  # fmt: skip
    if not entries:
        raise BadDefinition("the list has no prices", where="line 1", next="write one line per sku")
    return Rule(name, prices=entries, currency=currency, guard=guard or Guard())


def _decoded(text: str | bytes) -> str:
    if len(text) > LARGEST_TEXT:
        raise BadDefinition(f"a list of prices can have {LARGEST_TEXT:,} bytes, got {len(text):,}", where="rule",
                            next="split the list")  # fmt: skip
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadDefinition(f"the list is not UTF-8: {error}", where="rule", next="save it as UTF-8") from None
    return text.removeprefix("\ufeff")  # spreadsheets write a byte order mark


def _columns(header: list[str]) -> list[str]:
    if len(header) == 1 and ";" in header[0]:
        raise BadDefinition("the columns are separated by semicolons", where="line 1", next="separate them by commas")
    names = [_NAMES.get(cell.strip().lower().replace("_", "").replace("-", "").replace(" ", ""), "") for cell in header]
    if "" in names or len(set(names)) != len(names) or not {"sku", "price"} <= set(names):
        raise BadDefinition(f"the columns must be sku, price and optionally compare-at, got {', '.join(header)!r:.80}",
                            where="line 1", next="write the header: sku,price,compare-at")  # fmt: skip
    return names


def _add(entries: dict[str, ListedPrice], header: list[str], row: list[str], line: int) -> None:
    where = f"line {line}"
    if len(row) != len(header):
        raise BadDefinition(f"line {line} has {len(row)} cells, and the header {len(header)}", where=where,
                            next="write amounts with a point: 1.99, not 1,99")  # fmt: skip
    cells = dict(zip(header, (cell.strip() for cell in row), strict=True))
    sku, compare_at = cells["sku"], cells.get("compare_at", "")
    if sku in entries:
        raise BadDefinition(f"line {line} lists {sku!r:.60} again", where=where, next="keep one line per sku")
    if len(entries) >= MOST_PRICES:
        raise BadDefinition(f"a list can have at most {MOST_PRICES:,} prices", where=where, next="split it")
    try:
        change = set_to(cells["price"]).compare_at({"": "keep", CLEARED: "clear"}.get(compare_at, compare_at))
    except BadDefinition as error:
        raise BadDefinition(f"line {line}: {error.what}", where=where, next=error.next) from None
    if change.value is None or change.compare == "before":
        raise BadDefinition(
            f"line {line} has the compare-at {compare_at}", where=where, next="use an amount, or - for none"
        )
    entries[sku] = ListedPrice(change.value, change.compare)
