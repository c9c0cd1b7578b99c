"""`predimem analyze`: tables and charts of results that are there already."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from predimem.core.files import check_file

app = typer.Typer(no_args_is_help=True, help="Make tables and charts of results.")


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


@app.command("unseen")
def unseen(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="RESULTS...", help="The results.json of evaluations of the arena in its conditions."),
    ],
    out: Annotated[Path, typer.Option(help="Folder for unseen.csv, unseen.md and the chart.")],
) -> None:
    """Say what each condition of the arena costs each agent: new positions, colours, lights, words and so on.

    Success is compared with that of `plain` on the same tasks and seeds. All files are put together.
    """
    check_file(out / "unseen.csv")
    from predimem.evaluation.analysis.unseen import read_outcomes, rows_of
    from predimem.evaluation.report.tables import aligned
    from predimem.evaluation.report.unseen import note_of, table_of, write_unseen

    outcomes = read_outcomes(files)
    written = write_unseen(outcomes, out)
    print(aligned(table_of(rows_of(outcomes)), rule_after=1))
    print(note_of(outcomes))
    for path in written:
        print(path)
