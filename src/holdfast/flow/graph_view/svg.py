"""A drawing of a flow as self-contained SVG: no scripts, no fetched fonts, light and dark. Pure.

Names and notes are untrusted text: they are escaped, and characters that XML cannot hold are replaced.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from xml.sax.saxutils import escape

from holdfast.flow.graph_view import layout
from holdfast.flow.graph_view.layout import Line, Point, Sizes
from holdfast.flow.graph_view.picture import SIGNS, Box

SIZES = Sizes()
MARGIN = 24.0
HEAD = 44.0  # above the boxes: the title and the state
NARROWEST = 420.0
LONGEST_NAME, LONGEST_NOTE = 21, 28  # characters that fit into a box
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
STYLE = """
svg{font-family:system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}.ground{fill:#fff}
.head{font-size:16px;font-weight:600;fill:#1c2128}.summary{font-size:12px;fill:#57606a}
.name{font-size:13px;font-weight:600;fill:#1c2128}.note{font-size:11px;fill:#57606a}.sign{font-size:15px;font-weight:700}
.box rect{fill:#f6f8fa;stroke:#8c959f;stroke-width:1.5}.tip{fill:#8c959f}
.line{fill:none;stroke:#8c959f;stroke-width:1.5}
.sign{fill:#57606a}.planned .sign{fill:#0550ae}
.waiting rect{stroke-dasharray:4 3}.ready rect,.running rect{stroke:#0969da}.ready .sign,.running .sign{fill:#0550ae}
.running rect{fill:#ddf4ff;stroke-width:2.5}
.complete rect{stroke:#1a7f37}.complete .sign{fill:#116329}
.failed rect{fill:#ffebe9;stroke:#cf222e;stroke-width:2.5}.failed .sign{fill:#a40e26}
.retrying rect{fill:#fff8c5;stroke:#9a6700}.retrying .sign{fill:#7d4e00}
.resolved rect,.skipped rect{stroke:#8250df}.resolved .sign,.skipped .sign{fill:#6639ba}
.cancelled rect{stroke-dasharray:1 3}.line.bad{stroke:#cf222e;stroke-width:2.5}
@media (prefers-color-scheme:dark){
.ground{fill:#0d1117}.head,.name{fill:#e6edf3}.summary,.note{fill:#9198a1}
.box rect{fill:#161b22;stroke:#6e7681}.line{stroke:#6e7681}.tip{fill:#6e7681}
.sign{fill:#9198a1}.planned .sign{fill:#79c0ff}
.ready rect,.running rect{stroke:#388bfd}.ready .sign,.running .sign{fill:#79c0ff}.running rect{fill:#0c2d6b}
.complete rect{stroke:#2ea043}.complete .sign{fill:#56d364}
.failed rect{fill:#490202;stroke:#f85149}.failed .sign{fill:#ffa198}
.retrying rect{fill:#341a00;stroke:#bb8009}.retrying .sign{fill:#e3b341}
.resolved rect,.skipped rect{stroke:#8957e5}.resolved .sign,.skipped .sign{fill:#d2a8ff}.line.bad{stroke:#f85149}
}
"""


def draw(title: str, summary: str, boxes: Sequence[Box]) -> str:
    """Draw the boxes and their edges, under a title and a line with the state."""
    placed = layout.place(title, {box.name: box.after for box in boxes}, SIZES)
    width = max(placed.width, NARROWEST) + 2 * MARGIN
    height = placed.height + 2 * MARGIN + HEAD
    failed = {box.name for box in boxes if box.mood == "failed"}
    room = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="t d" {room}>',
        f'<title id="t">{_text(title)}</title>',
        f'<desc id="d">{_text(described(summary, boxes))}</desc>',
        f"<style>{STYLE}</style>",
        '<rect class="ground" width="100%" height="100%"/>',
        f'<text class="head" x="{MARGIN:.0f}" y="{MARGIN + 12:.0f}">{_text(title)}</text>',
        f'<text class="summary" x="{MARGIN:.0f}" y="{MARGIN + 30:.0f}">{_text(summary)}</text>',
        f'<g transform="translate({MARGIN:.0f} {MARGIN + HEAD:.0f})">',
        *(_line(line, is_bad=line.source in failed) for line in placed.lines),
        *(_box(box, placed.boxes) for box in boxes),
        "</g></svg>",
    ]
    return "\n".join(parts) + "\n"


def described(summary: str, boxes: Sequence[Box]) -> str:
    """Describe the drawing in words, for screen readers: the counts, and each step in order."""
    words = Counter(box.word for box in boxes if box.word)
    counts = " " + ", ".join(f"{count} {word}" for word, count in words.items()) + "." if words else ""
    return f"{summary}. {len(boxes)} boxes.{counts} " + " ".join(f"{_box_title(box)}." for box in boxes)


def _box_title(box: Box) -> str:
    after = f" after {', '.join(box.after)}" if box.after else ""
    state = f": {box.word}" if box.word else ""
    note = f" ({box.note})" if box.note else ""
    return f"{box.name}{state}{note}{after}"


def _box(box: Box, places: Mapping[str, Point]) -> str:
    x, y = places[box.name]
    note = ", ".join(filter(None, (box.word, box.note)))
    return (
        f'<g class="box {box.mood}" transform="translate({x:.1f} {y:.1f})"><title>{_text(_box_title(box))}</title>'
        f'<rect width="{SIZES.width:g}" height="{SIZES.height:g}" rx="6"/>'
        f'<text class="sign" x="10" y="28">{SIGNS[box.mood]}</text>'
        f'<text class="name" x="30" y="{19 if note else 28}">{_text(_cut(box.name, LONGEST_NAME))}</text>'
        f'<text class="note" x="30" y="36">{_text(_cut(note, LONGEST_NOTE))}</text></g>'
    )


def _line(line: Line, *, is_bad: bool) -> str:
    (x, y), *others = line.points
    path = [f"M{x:.1f} {y:.1f}"]
    for (from_x, from_y), (to_x, to_y) in pairwise(line.points):
        middle = (from_x + to_x) / 2
        is_straight = from_y == to_y
        curve = f"C{middle:.1f} {from_y:.1f} {middle:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
        path.append(f"L{to_x:.1f} {to_y:.1f}" if is_straight else curve)
    end_x, end_y = others[-1]
    tip = f'<path class="tip" d="M{end_x:.1f} {end_y:.1f}l-7 -4v8z"/>'
    return f'<path class="line{" bad" if is_bad else ""}" d="{"".join(path)}"/>{tip}'


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text))
