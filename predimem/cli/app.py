"""The commands of `predimem`, thin ones that parse, assemble and run. Heavy imports wait until one needs them."""

from __future__ import annotations

from typing import Annotated

import typer
from typer.core import TyperGroup

from predimem.cli import (
    analyze,
    annotate,
    data,
    demo,
    evaluation,
    exports,
    imports,
    make,
    memory,
    play,
    serve,
    skills,
    tasks,
    train,
    verify,
)

PANELS = SEE, DATA, TRAIN, EVALUATE, SERVE, MACHINE = "See it", "Data", "Train", "Evaluate", "Serve", "Machine"


class InPanels(TyperGroup):
    """Lists the commands in the order of `PANELS`; typer itself puts groups of commands last."""

    def list_commands(self, ctx: object) -> list[str]:
        commands = self.commands
        return sorted(commands, key=lambda name: PANELS.index(commands[name].rich_help_panel))  # type: ignore[attr-defined]


app = typer.Typer(
    cls=InPanels,
    no_args_is_help=True,
    add_completion=False,
)


def print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        from predimem.evaluation.run.machine import revision

        commit, dirty = revision()
        changed = ", with changes" if dirty else ""
        print(f"predimem {version('predimem')}" + (f" (revision {commit[:7]}{changed})" if commit else ""))
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=print_version,
            is_eager=True,
            help="Print the version, and of a checkout its revision.",
        ),
    ] = False,
) -> None:
    """Memory for robot policies: make data, train, evaluate and serve."""


@app.command("doctor", rich_help_panel=MACHINE)
def check_machine() -> None:
    """Say what this machine has, and how to mend what is missing."""
    from predimem.cli import doctor

    raise typer.Exit(doctor.run())


app.command("demo", rich_help_panel=SEE)(demo.demo)
app.command("play", rich_help_panel=SEE)(play.play_one)
app.command("tasks", rich_help_panel=SEE)(tasks.list_tasks)
app.command("datagen", rich_help_panel=DATA)(make.datagen)
app.command("decompose", rich_help_panel=DATA)(make.decompose)
app.command("annotate", rich_help_panel=DATA)(annotate.annotate_episodes)
app.add_typer(data.app, name="data", rich_help_panel=DATA)
app.add_typer(exports.app, name="export", rich_help_panel=DATA)
app.add_typer(imports.app, name="import", rich_help_panel=DATA)
app.add_typer(train.app, name="train", rich_help_panel=TRAIN)
app.add_typer(verify.app, name="verify", rich_help_panel=TRAIN)
app.command("eval", rich_help_panel=EVALUATE)(evaluation.evaluate)
app.command("harness", rich_help_panel=EVALUATE)(evaluation.harness)
app.command("skills", rich_help_panel=EVALUATE)(skills.play_skills)
app.command("serve", rich_help_panel=SERVE)(serve.serve)
app.add_typer(analyze.app, name="analyze", rich_help_panel=EVALUATE)
app.command("serve-planner", rich_help_panel=SERVE)(serve.serve_planner)
app.add_typer(memory.app, name="memory", rich_help_panel=SERVE)
