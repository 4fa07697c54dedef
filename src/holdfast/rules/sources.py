"""Where a preview takes its items from: the channel, or a table, CSV or iterable of the caller's.

Items of the caller's are completed with what the channel shows, because a plan begins with the channel's prices.
"""

from __future__ import annotations

import csv
import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, TypeVar

from holdfast.errors import BadInput
from holdfast.rules.channel import Channel, ChannelCall
from holdfast.rules.language.evaluate import Refusal
from holdfast.rules.language.items import Item, ItemRefused, amount, check_id, check_lists
from holdfast.rules.language.money import Price
from holdfast.rules.table import Table

READ_AT_ONCE = 1000  # items of one read
PART = 50_000  # ids in memory
ITEMS_FROM = "itemsFrom"  # in a run's metadata
T = TypeVar("T")
Given = Item | Refusal | Mapping[str, Any] | str
Source = Channel | Path | Iterable[Given] | None
_OWN = {"id", "sku", "cost", "tags", "fields", "price", "compareAt", "currency"}


def items_of(source: Source, channel: Channel, call: ChannelCall) -> Iterator[Item | Refusal]:
    """Return the items of a preview, one after the other; raise BadInput after the last if one came twice."""
    if source is None:
        return channel.items(call) if isinstance(channel, Table) else once(channel.items(call), _id_of)
    if isinstance(source, Channel):
        return _completed(source.items(call), channel, call)
    if isinstance(source, Path):
        return _completed(_of_csv(source), channel, call)
    if isinstance(source, str | bytes) or not isinstance(source, Iterable):
        raise BadInput(f"items must be a Path to a CSV file, a Table or an iterable, got {source!r:.60}", where="items",
                       next='use Path("items.csv")')  # fmt: skip
    return _completed(source, channel, call)


def origin_of(source: Source) -> str:
    """Return where the items of a caller come from, for people."""
    return str(source)[:200] if isinstance(source, Path) else f"a {type(source).__name__}"


def _id_of(given: Given) -> Any:
    """Return an item's id as it was given; it is not text if it cannot be an id."""
    match given:
        case Item():
            return given.id
        case Refusal():
            return None if given.item_id == "?" else given.item_id
        case Mapping():
            item_id = given.get("id", given.get("sku"))
        case _:
            item_id = given
    return str(item_id) if type(item_id) is int else item_id


def _completed(given: Iterable[Given], channel: Channel, call: ChannelCall) -> Iterator[Item | Refusal]:
    """Read what the channel shows for each item, many at a time."""
    rows = once(iter(given), _id_of)
    while chunk := list(itertools.islice(rows, READ_AT_ONCE)):
        described = [_described(each) for each in chunk]
        ids = [each[0] for each in described if not isinstance(each, Refusal)]
        shown = channel.read(ids, call) if ids else {}
        for each in described:
            yield each if isinstance(each, Refusal) else _with_price(each[0], each[1], shown)


def _described(given: Given) -> Refusal | tuple[str, Mapping[str, Any]]:
    """Return an item's id and what the caller says about it."""
    try:
        if isinstance(given, Refusal):
            return given
        if isinstance(given, Item):
            about = {"sku": given.sku, "units": given.cost, "tags": given.tags, "fields": given.fields,
                     "currency": given.currency}  # fmt: skip
            name = check_id(given.id)
            check_lists(name, given.tags, given.fields)
            return name, about
        if isinstance(given, Mapping):
            if unknown := next((name for name in given if name not in _OWN), None):
                raise ItemRefused(f"an item has no {unknown!r:.40}", reason="item_invalid",
                                  item_id=str(given.get("id", given.get("sku", "?"))))  # fmt: skip
            name = check_id(given.get("id", given.get("sku")))
            check_lists(name, given.get("tags") or (), given.get("fields") or {})
            return name, given
        return check_id(given), {}
    except ItemRefused as error:
        return Refusal(error.item_id, error.reason, error.what)


def _with_price(item_id: str, about: Mapping[str, Any], shown: Mapping[str, Price | Refusal]) -> Item | Refusal:
    price = shown.get(item_id)
    if price is None:
        return Refusal(item_id, "not_found", "the channel has no such item")
    if isinstance(price, Refusal):
        return price
    currency = about.get("currency") or price.currency
    if currency != price.currency:  # a cost in another currency is no lower bound
        return Refusal(item_id, "currency_differs",
                       f"the item is given in {currency!s:.40}, the channel has it in {price.currency}",
                       price)  # fmt: skip
    try:
        cost = about.get("cost")
        units = about.get("units") if cost is None else amount(cost, price.currency, "cost", item_id)
    except ItemRefused as error:
        return Refusal(item_id, error.reason, error.what, price)
    sku = about.get("sku")
    return Item(item_id, price.unit_amount, price.currency, price.compare_at, units,
                item_id if sku is None else str(sku), about.get("tags") or (), about.get("fields") or {})  # fmt: skip


def once(items: Iterator[T], id_of: Callable[[T], Any]) -> Iterator[T]:
    """Return the items; after the last raise BadInput if two share an id. Ids that are not text are not compared.

    Ids are sorted in parts on disk, so that memory stays flat.
    """
    with ExitStack() as stack:
        parts: list[IO[bytes]] = []
        ids: list[bytes] = []
        for item in items:
            item_id = id_of(item)
            if type(item_id) is str:
                ids.append(item_id.encode("unicode_escape"))  # without newlines
                if len(ids) == PART:
                    parts.append(_sorted(ids, stack))
                    ids = []
            yield item
        ids.sort()
        for one, next_one in itertools.pairwise(heapq.merge(*(map(_line, part) for part in parts), ids)):
            if one == next_one:
                item_id = one.decode("unicode_escape")
                raise BadInput(f"item {item_id!r:.120} is there twice", where="items", next="list each item once")


def _sorted(ids: list[bytes], stack: ExitStack) -> IO[bytes]:
    ids.sort()
    file: IO[bytes] = stack.enter_context(TemporaryFile())  # noqa: SIM115 - the stack's
    file.writelines(each + b"\n" for each in ids)
    file.seek(0)
    return file


def _line(line: bytes) -> bytes:
    return line[:-1]


def _of_csv(path: Path) -> Iterator[Given]:
    """Read items from CSV: id or sku, optionally cost and tags (separated by commas); other columns are fields."""
    try:
        file = path.open(encoding="utf-8-sig", newline="")  # a byte order mark is skipped
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}", where=str(path), next="check the path") from None
    with file:
        rows = csv.reader(file, strict=True)
        try:
            header = [cell.strip() for cell in next(rows, [])]
            _check_header(header, path)
            for row in rows:
                if row:
                    yield _of_row(header, row, rows.line_num)
        except (csv.Error, UnicodeDecodeError) as error:
            raise BadInput(f"{path} is not valid CSV in UTF-8: {error}", where=f"line {rows.line_num}",
                           next="save it as UTF-8, and close every quote") from None  # fmt: skip


def _check_header(header: Sequence[str], path: Path) -> None:
    if len(set(header)) != len(header) or not {"id", "sku"} & set(header):
        raise BadInput(f"{path} must have a column id or sku, and each column once, got {', '.join(header)!r:.80}",
                       where="line 1", next="write the header: sku,cost,tags")  # fmt: skip


def _of_row(header: Sequence[str], row: Sequence[str], line: int) -> Given:
    if len(row) != len(header):
        return Refusal("?", "item_invalid", f"line {line} has {len(row)} cells, and the header {len(header)}: "
                                            f"{','.join(row):.60}")  # fmt: skip
    cells = {name: cell.strip() for name, cell in zip(header, row, strict=True)}
    about: dict[str, Any] = {name: cell for name, cell in cells.items() if name in _OWN and cell}
    if "tags" in about:
        about["tags"] = [tag.strip() for tag in about["tags"].split(",")]
    about["fields"] = {name: cell for name, cell in cells.items() if name not in _OWN}
    return about
