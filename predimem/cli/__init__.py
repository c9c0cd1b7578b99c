"""`predimem`: thin commands that parse, assemble and run. Heavy imports wait until a command needs them."""

from __future__ import annotations

import typer

from predimem.cli import data, evaluation, exchange, make, play, serve, skills, train, verify
from predimem.rendering.vulkan import VulkanError

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Memory for robot policies.")


@app.command("doctor")
def check_machine() -> None:
    """Say what was found on this machine and how to mend what is missing."""
    from predimem.cli import doctor

    raise typer.Exit(doctor.run())


app.command("eval")(evaluation.evaluate)
app.command("play")(play.play_one)
app.command("demo")(evaluation.demo)
app.command("harness")(evaluation.harness)
app.command("datagen")(make.datagen)
app.command("decompose")(make.decompose)
app.command("skills")(skills.play_skills)
app.command("serve")(serve.serve)
app.add_typer(train.app, name="train")
app.add_typer(verify.app, name="verify")
app.add_typer(exchange.export_app, name="export")
app.add_typer(exchange.import_app, name="import")
app.add_typer(data.app, name="data")


def main() -> None:
    """Entry point: errors of the user's input are one clear line, not a traceback."""
    try:
        app()
    except (ValueError, FileNotFoundError, ConnectionError, VulkanError) as error:
        raise SystemExit(f"predimem: {error}") from None
