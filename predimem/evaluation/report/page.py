"""Makes HTML pages from `templates/`: self-contained, with figures and terms written in one way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from predimem.evaluation.report.terms import term

if TYPE_CHECKING:
    from jinja2 import Template


def template(name: str) -> Template:
    """A template by its file name. What it does not get but uses is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("predimem.evaluation.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"figure": _figure, "percent": _percent, "term": term}
    return environment.get_template(name)


def _figure(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _percent(value: float | None, digits: int = 0) -> str:
    return "–" if value is None else f"{value:.{digits}%}"
