"""Divides a range of whole numbers into balanced partitions by counting parts of it: the heatmap.

The planner is pure: a generator that yields ranges to count, receives their counts and returns the partitions.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterable
from dataclasses import dataclass

from holdfast.ingest.source import Part

FIRST_COUNTS = 30
MOST_COUNTS = 60


@dataclass(frozen=True, slots=True)
class Chunk:
    """A counted range, from `low`, included, to `high`, excluded."""

    low: int
    high: int
    count: int


def heatmap(low: int, high: int, most: int = 30, least: int = 1000) -> Generator[tuple[int, int], int, list[Part]]:
    """Return at most `most` disjoint partitions that cover the range, in order; none if there is no record.

    None but the last has fewer than `least` records. It needs 30 to 60 counts, fewer for a small range.
    """
    chunks = yield from _counted(low, high)
    total = sum(chunk.count for chunk in chunks)
    if total == 0:
        return []
    target = max(least, -(-total // most))
    asked = len(chunks)
    while asked < MOST_COUNTS:
        widest = max(chunks, key=lambda chunk: chunk.count if chunk.high - chunk.low > 1 else -1)
        if widest.count <= target // 2 or widest.high - widest.low <= 1:
            break
        place, middle = chunks.index(widest), (widest.low + widest.high) // 2
        left = min(widest.count, (yield widest.low, middle))  # a row that came meanwhile is counted with its half
        chunks[place : place + 1] = [
            Chunk(widest.low, middle, left),
            Chunk(middle, widest.high, widest.count - left),
        ]
        asked += 1
    return merged(chunks, target, most, least)


def _counted(low: int, high: int) -> Generator[tuple[int, int], int, list[Chunk]]:
    """Count the range in equal pieces."""
    pieces = max(1, min(FIRST_COUNTS, high - low))
    edges = [low + (high - low) * piece // pieces for piece in range(pieces + 1)]
    chunks = []
    for start, end in itertools.pairwise(edges):
        chunks.append(Chunk(start, end, (yield start, end)))
    return chunks


def merged(chunks: list[Chunk], target: int, most: int, least: int) -> list[Part]:
    """Join neighbours until each part has `target` records; a point that alone has more stays alone if it can."""
    left = sum(chunk.count for chunk in chunks)  # records that are in no part yet
    parts: list[Part] = []
    low, count = chunks[0].low, 0
    for chunk in chunks:
        is_point = chunk.high - chunk.low == 1 and chunk.count > target
        # The rest takes at most one part per `target` records, so that the number of parts cannot exceed `most`.
        if is_point and count >= max(least, target // 2) and len(parts) + 1 - (count - left) // target <= most:
            parts.append(Part(low, chunk.low, count))
            low, left, count = chunk.low, left - count, 0
        count += chunk.count
        if count >= target:
            parts.append(Part(low, chunk.high, count))
            low, left, count = chunk.high, left - count, 0
    if low < chunks[-1].high:
        if count == 0 and parts:
            last = parts.pop()
            parts.append(Part(last.low, chunks[-1].high, last.estimated))
        else:
            parts.append(Part(low, chunks[-1].high, count))
    return parts


def replayed(
    planner: Generator[tuple[int, int], int, list[Part]], counts: Iterable[int]
) -> tuple[int, int] | list[Part]:
    """Replay a planner with the counts so far, and return the range to count next, or the partitions."""
    try:
        asked = next(planner)
        for count in counts:
            asked = planner.send(count)
    except StopIteration as end:
        parts: list[Part] = end.value
        return parts
    return asked
