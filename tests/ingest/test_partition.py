"""The heatmap planner, which is pure: any distribution, counted by an oracle."""

from __future__ import annotations

from bisect import bisect_left

from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.ingest.partition import MOST_COUNTS, heatmap, replayed
from holdfast.ingest.source import Part

VALUES = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(1, 400)),  # a price, and how many records have it
    max_size=60,
)


def plan(prices: list[int], high: int, most: int, least: int) -> tuple[list[Part], int]:
    """Plan over sorted prices, and tell how many counts were asked for."""
    counts: list[int] = []
    while isinstance(asked := replayed(heatmap(0, high, most, least), counts), tuple):
        counts.append(bisect_left(prices, asked[1]) - bisect_left(prices, asked[0]))
    return asked, len(counts)


@given(VALUES, st.integers(1, 30), st.integers(1, 1000))
@example([], 30, 1000)
@example([(7, 400)], 30, 1)
@example([(0, 2), (1, 6), (2, 1)], 2, 1)
@example([(0, 500), (1, 3000), (2, 1000)], 30, 1000)
@settings(max_examples=200, deadline=None)
def test_partitions_are_disjoint_cover_the_range_and_are_balanced(
    values: list[tuple[int, int]], most: int, least: int
) -> None:
    """P-115, P-152, C-26, C-27: at most `most`, none but the last below `least`, none if there is no record"""
    prices = sorted(price for price, times in values for _ in range(times))

    parts, asked = plan(prices, 5001, most, least)

    assert asked <= MOST_COUNTS
    if not prices:
        assert parts == []
        return
    assert 1 <= len(parts) <= most
    assert (parts[0].low, parts[-1].high) == (0, 5001)
    assert [part.high for part in parts[:-1]] == [part.low for part in parts[1:]]
    counts = [bisect_left(prices, part.high) - bisect_left(prices, part.low) for part in parts]
    assert counts == [part.estimated for part in parts]
    assert sum(counts) == len(prices)
    assert all(count >= least for count in counts[:-1])
    target = max(least, -(-len(prices) // most))
    if asked < MOST_COUNTS:  # else the budget of counts ended before the splitting did
        most_at_a_point = max(times for times in (prices.count(price) for price in set(prices)))
        assert max(counts) <= max(2 * target, target + most_at_a_point)


def test_half_a_million_prices_take_30_partitions_and_30_to_60_counts() -> None:
    """P-113, P-115, P-116: the document's example, dense below 20 000"""
    prices = sorted([n * 7 % 20_000 for n in range(400_000)] + [20_000 + n * 13 % 480_000 for n in range(100_000)])

    parts, asked = plan(prices, 500_000, 30, 1000)

    assert 30 <= asked <= 60
    assert 20 <= len(parts) <= 30
    assert max(part.estimated or 0 for part in parts) <= 2.5 * 500_000 / 30


def test_a_point_that_cannot_be_split_is_a_partition_of_its_own() -> None:
    """P-152"""
    prices = sorted([*range(3000), *[3500] * 9000, *range(4000, 5000)])

    parts, _ = plan(prices, 5001, 10, 100)

    (point,) = [part for part in parts if part.low <= 3500 < part.high]
    assert point.estimated is not None
    assert point.estimated < 9000 + 1400
