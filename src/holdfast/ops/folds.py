"""Shows output with its groups: `::group::TITLE` begins one and `::endgroup::` ends it. Reads nothing."""

from __future__ import annotations

from collections.abc import Iterator

BEGIN, END = "::group::", "::endgroup::"


class Folds:
    """Indents the lines of a group under its title, or leaves them out and counts them."""

    def __init__(self, *, is_folded: bool = False) -> None:
        self._is_folded = is_folded
        self._title: str | None = None
        self._hidden = 0

    def feed(self, text: str) -> Iterator[str]:
        """Take the lines of an event, and yield what to show."""
        for line in text.split("\n"):
            if line.startswith(BEGIN):
                yield from self.close()
                self._title = line.removeprefix(BEGIN).strip() or "group"
                if not self._is_folded:
                    yield f"▾ {self._title}"
            elif line.startswith(END):
                yield from self.close()
            elif self._title is None:
                yield line
            elif self._is_folded:
                self._hidden += 1
            else:
                yield f"  {line}"

    def close(self) -> Iterator[str]:
        """End the group that is open, if there is one."""
        if self._title is not None and self._is_folded:
            yield f"▸ {self._title} ({self._hidden} lines)"
        self._title, self._hidden = None, 0
