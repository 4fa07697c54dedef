"""A guard is marked in the SQL, and each mark has a mutant that lacks the guard."""

from __future__ import annotations

from collections import Counter

from flow.guards import GUARDS
from ingest.guards import GUARDS as GUARDS_OF_INGEST
from ops.guards import GUARDS as GUARDS_OF_OPS
from properties.last_mutants import LAST
from properties.mutants import EDITED, MARK, SQL, Cut, Edited
from properties.test_undo import MUTANTS as MUTANTS_OF_UNDO
from properties.window_mutants import WINDOW
from rules.guards import GUARDS as GUARDS_OF_RULES
from scenarios.matrix.test_unguarded import CLAIMS_UNLOCKED
from selftest.test_mutants import MUTANTS

Marks = Counter[tuple[str, str]]


def marked() -> Marks:
    """Find the marks in all functions, each with the function that it is in."""
    found: Marks = Counter()
    for file in SQL.rglob("*.sql"):
        schema = file.relative_to(SQL).parts[0]
        function = file.stem if schema == "kernel" else f"{schema}.{file.stem}"
        text = file.read_text("utf-8")
        found.update((function, mark) for mark in MARK.findall(text))
        assert text.count("guard:") == len(MARK.findall(text)), f"a mark in {file.name} that no mutant would find"
    return found


def cut() -> list[Cut]:
    mutants: list[Edited] = [*EDITED, *LAST, *WINDOW, *GUARDS_OF_OPS, *GUARDS_OF_RULES, *GUARDS_OF_INGEST]
    mutants.append(CLAIMS_UNLOCKED)
    mutants += [mutant if isinstance(mutant, Edited) else mutant.values[0] for mutant in GUARDS]  # type: ignore[attr-defined]
    of_undo = [cut for _, _, cuts in MUTANTS_OF_UNDO.values() for cut in cuts]
    return of_undo + [cut for mutant in [*mutants, *MUTANTS] for cut in mutant.cuts]


def test_every_mark_has_a_mutant_and_every_mutant_a_mark() -> None:
    marks = marked()

    assert {(one.function, one.mark) for one in cut()} == set(marks)
    assert [mark for mark, times in marks.items() if times > 1] == []
