"""The items of a simulated shop, and the log on disk of every price that an item has had."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

CURRENCY = "EUR"
CONFLICT = 409
MISSING = 404


@dataclass(slots=True)
class Goods:
    """One item and what it shows now."""

    id: str
    sku: str
    price: str
    compare_at: str | None
    tags: tuple[str, ...]

    def shown(self) -> dict[str, Any]:
        """Return its price as the protocol writes it."""
        return {"price": self.price, "compareAt": self.compare_at, "currency": CURRENCY}

    def listed(self) -> dict[str, Any]:
        """Return it as the list of items shows it."""
        more = {"tags": list(self.tags), "fields": {"shelf": self.id[-1]}}
        return {"id": self.id, "sku": self.sku, **self.shown(), **more}


class ShopLog:
    """Appends a line of JSON per call and per value, flushed before the call is answered."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("a", encoding="utf-8")

    def write(self, *entries: dict[str, Any]) -> None:
        """Append entries with the time."""
        now = time.time()
        self._file.writelines(f"{json.dumps({'at': now, **entry})}\n" for entry in entries)
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Catalogue:
    """All items, in order. `item-7` has the sku `SKU-7` and the price 17.00; every second one has the tag `sale`."""

    def __init__(self, count: int, log: ShopLog) -> None:
        self._goods = {
            f"item-{n}": Goods(f"item-{n}", f"SKU-{n}", f"{10 + n % 90}.00", None, ("sale",) if n % 2 == 0 else ())
            for n in range(1, count + 1)
        }
        self._order = list(self._goods)
        self._places = {item_id: place for place, item_id in enumerate(self._order)}
        self._log = log
        self.values = 0
        log.write(*(self._entry(item, call=0, by="start") for item in self._goods.values()))

    def __len__(self) -> int:
        return len(self._goods)

    def page(self, after: str, limit: int) -> tuple[list[Goods], str | None]:
        """Return the items after one of them, and the last one's id if there are more."""
        first = self._places.get(after, -1) + 1
        ids = self._order[first : first + limit]
        return [self._goods[each] for each in ids], ids[-1] if ids and first + limit < len(self._order) else None

    def read(self, ids: Iterable[str]) -> dict[str, dict[str, Any] | None]:
        """Return what items show; None for those that do not exist."""
        pairs = ((item_id, self._goods.get(item_id)) for item_id in ids)
        return {item_id: None if item is None else item.shown() for item_id, item in pairs}

    def edit(self, item_id: str, given: dict[str, Any]) -> bool:
        """Change an item as a third party does."""
        item = self._goods.get(item_id)
        if item is not None:
            self._log.write(self._changed(item, given, call=None, by="third party"))
        return item is not None

    def raise_price(self, item_id: str) -> None:
        """Change an item's price by a cent, as a third party does."""
        if (item := self._goods.get(item_id)) is not None:
            self.edit(item_id, {"price": str(Decimal(item.price) + Decimal("0.01"))})

    def write(self, changes: list[dict[str, Any]], *, call: int, compares: bool) -> list[dict[str, Any]]:
        """Write the changes whose `expected` holds; return the result of each."""
        entries: list[dict[str, Any]] = []
        results = list(self._written(changes, entries, call=call, compares=compares))
        self._log.write(*entries)
        return results

    def _written(
        self, changes: list[dict[str, Any]], entries: list[dict[str, Any]], *, call: int, compares: bool
    ) -> Iterator[dict[str, Any]]:
        for change in changes:
            item = self._goods.get(change["id"])
            expected = change.get("expected")
            if item is None:
                yield {"id": change["id"], "error": {"code": MISSING}}
            elif compares and expected is not None and not _holds(item.shown(), expected):
                yield {"id": item.id, "error": {"code": CONFLICT, "found": item.shown()}}
            else:
                entries.append(self._changed(item, change, call=call, by="call"))
                yield {"id": item.id}

    def _changed(self, item: Goods, given: dict[str, Any], *, call: int | None, by: str) -> dict[str, Any]:
        if "price" in given:
            item.price = given["price"]
        if "compareAt" in given:
            item.compare_at = given["compareAt"]
        self.values += 1
        return self._entry(item, call=call, by=by)

    @staticmethod
    def _entry(item: Goods, *, call: int | None, by: str) -> dict[str, Any]:
        return {"entry": "value", "item": item.id, **item.shown(), "call": call, "by": by}


def _holds(shown: dict[str, Any], expected: dict[str, Any]) -> bool:
    return all(_same(shown.get(name), value) for name, value in expected.items())


def _same(shown: str | None, expected: str | None) -> bool:
    if shown is None or expected is None:
        return shown is expected
    try:
        return Decimal(shown) == Decimal(expected)
    except InvalidOperation:  # a currency
        return shown == expected
