"""`predimem tasks`: lists the tasks of the benchmarks."""

from __future__ import annotations

from typing import Annotated

import typer

from predimem.cli.options import split


def list_tasks(
    benchmark: Annotated[
        str | None,
        typer.Option(
            "--benchmark",
            "--suite",
            help="The benchmark: `arena`, `mikasa`, or the Python file of your own; default: all that come along.",
        ),
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(help="Only these: names of tasks, or task files of your own, comma-separated; default: all."),
    ] = None,
    difficulty: Annotated[
        str | None, typer.Option(help="Those of a difficulty, which needs --benchmark; of arena: `standard` or `long`.")
    ] = None,
) -> None:
    """List the tasks of a benchmark, a line for each."""
    from predimem.envs.benchmark import BENCHMARKS, load_benchmark

    wanted = None if tasks is None else split(tasks)
    if benchmark is None and wanted is not None:
        benchmark = "arena" if any(load_benchmark("arena").task_file(task) for task in wanted) else None
    if benchmark is None and wanted is not None:
        raise ValueError("--tasks needs --benchmark, which says whose tasks they are")
    if benchmark is None and difficulty is not None:
        raise ValueError("--difficulty needs --benchmark, which says whose tasks they are, such as --benchmark arena")
    for number, name in enumerate(BENCHMARKS if benchmark is None else (benchmark,)):
        played = load_benchmark(name)
        keys = played.listed_tasks() if wanted is None else tuple(wanted)
        if difficulty is not None:
            keys = played.at_difficulty(wanted or (), difficulty)
        lines = {played.task_name(key) if wanted is not None else key: played.describe(key) for key in keys}
        width = max(map(len, lines), default=0)
        if benchmark is None:
            print(f"{'' if number == 0 else chr(10)}{played.name}: {len(lines)} tasks (--benchmark {name})")
        for task, line in lines.items():
            print(f"{task:<{width}}  {line}".rstrip())
