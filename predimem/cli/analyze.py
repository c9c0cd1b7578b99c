"""`predimem analyze`: tables and charts of results that are there already."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from predimem.core.files import check_file

app = typer.Typer(no_args_is_help=True, help="Make tables and charts of results.")


@app.callback()
def analyze() -> None:
    """Keeps `interference` a command of its own while it is the only one."""


@app.command("interference")
def interference(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="CSV...",
            help="Counts or rollouts of RoboMME-Interference (.csv), or the results.json of an evaluation of ours.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for success.csv, effects.csv, their likes and the charts.")],
) -> None:
    """Say what success each memory has with how many distracting sessions, and what it loses by them.

    Intervals are Wilson's, 95 %. All files are put together.
    """
    check_file(out / "success.csv")
    from predimem.evaluation.analysis.interference import read_counts, totals
    from predimem.evaluation.report.interference import table_of, write_interference
    from predimem.evaluation.report.tables import aligned

    counts = read_counts(files)
    written = write_interference(counts, out)
    whole = totals(counts)
    print(aligned(table_of(whole), rule_after=1))
    print(f"success in %, {sum(count.n for count in whole.values())} episodes")
    for path in written:
        print(path)
