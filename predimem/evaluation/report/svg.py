"""The few shapes that the report's drawings are made of. Colours are CSS classes, so that light and dark both work."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

WIDTH = 920
LABELS = 165  # room for the labels on the left


def svg(height: float, parts: Sequence[str], title: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def rect(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> str:
    size = f'width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" {size} rx="2">{_titled(title)}</rect>'


def text(x: float, y: float, words: str, kind: str = "", title: str = "") -> str:
    """title: what is shown when the mouse rests on it."""
    kind = f"{kind} explained".strip() if title else kind
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(words)}{_titled(title)}</text>'


def _titled(title: str) -> str:
    return f"<title>{escape(title)}</title>" if title else ""
