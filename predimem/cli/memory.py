"""`predimem memory`: look into the memory store of robots, move sessions between stores, and delete."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from predimem.core.files import check_file, write_bytes

if TYPE_CHECKING:
    from memory_bank.store import MemoryStore, Retention

app = typer.Typer(
    no_args_is_help=True, help="Look into what robots remember: list, search, export, import, annotate and delete it."
)
Store = Annotated[
    str,
    typer.Option(
        "--store",
        "--state-dir",
        help="The memory store: the folder of `predimem serve --state-dir`, or the "
        "address of a PostgreSQL database (postgresql://user@host/database).",
    ),
]
Robot = Annotated[str, typer.Option(help="Name of the robot.")]
Session = Annotated[str | None, typer.Option(help="Name of the session.")]
Planner = Annotated[str, typer.Option(help="The planner whose vision tower embeds images: a folder of weights.")]
Weights = Annotated[
    str | None, typer.Option(help="Folder that the planner's folder is looked for in first; default: the shipped ones.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_memory(
    store: Store,
    robot: Annotated[str | None, typer.Option(help="List the sessions of this robot.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the robots that the store knows or, with --robot, the sessions of one; the last used first."""
    with _opened(store) as memory:
        if robot is None:
            found = [asdict(one) for one in memory.robots()]
            columns = ("robot", "sessions", "episodes", "keyframes", "image_bytes", "used_s")
        else:
            with memory.database.reading() as read:
                memory.robot_key(read, robot)
            found = [asdict(one) for one in memory.sessions(robot)]
            columns = ("session", "began_s", "used_s", "episodes", "keyframes", "image_bytes", "tasks")
    _print(found, columns, as_json)


@app.command("show")
def show_session(store: Store, robot: Robot, session: Session = None, as_json: AsJson = False) -> None:
    """Show the episodes of a robot, or of one of its sessions: tasks, outcomes, subtasks, keyframes and notes."""
    from memory_bank.store import Scope

    with _opened(store) as memory:
        with memory.database.reading() as read:
            memory.robot_key(read, robot) if session is None else memory.session_key(read, robot, session)
        found = []
        for one in memory.episodes(Scope(robot=robot, session=session)):
            stored = memory.find(one["episode_id"])
            if stored is None:
                continue
            spans = [plan.subtask for plan in stored.plans if plan.subtask is not None]
            one["subtasks"] = [subtask for n, subtask in enumerate(spans) if n == 0 or spans[n - 1] != subtask]
            one["keyframes"] = [k.step for k in memory.keyframes(Scope(episode_id=stored.episode_id))][::-1]
            found.append(one)
        notes = [asdict(note) for note in memory.notes(robot, session)]
    if as_json:
        print(json.dumps({"episodes": found, "notes": notes}, indent=1))
        return
    for one in found:
        print(f"{one['episode_id']}  ({one['session']}, {_time(one['began_s'])}, {one['outcome'] or 'not ended'})")
        print(f"  task       {one['instruction']}")
        print(f"  subtasks   {', '.join(one['subtasks']) or 'none'}")
        print(f"  keyframes  {_steps(one['keyframes'])}")
    for note in notes:
        about = note["episode_id"] or note["session"] or note["robot"]
        print(f"note on {about}, {_time(note['at_s'])}{note['author'] and ', ' + note['author']}: {note['text']}")


@app.command("search")
def search(
    store: Store,
    subtask: Annotated[str | None, typer.Option(help="Find keyframes whose subtask holds this text.")] = None,
    like: Annotated[
        int | None, typer.Option(help="Find the keyframes that look most like this one (its id); needs --model.")
    ] = None,
    image: Annotated[
        list[str] | None,
        typer.Option(metavar="CAMERA=FILE", help="Find those that look like this image; once for each camera."),
    ] = None,
    planner: Planner = "arena-planner",
    weights: Weights = None,
    model: Annotated[
        str | None, typer.Option(help="With --like: whose embeddings are compared; default: the only one there is.")
    ] = None,
    robot: Annotated[str | None, typer.Option(help="Only those of this robot.")] = None,
    session: Annotated[str | None, typer.Option(help="Only those of this session.")] = None,
    task: Annotated[str | None, typer.Option(help="Only those of this task, word for word.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many are listed.")] = 20,
    images: Annotated[Path | None, typer.Option(help="Folder for the images that were found.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find keyframes by the words of their subtask, by an image, or by the image of another keyframe."""
    from memory_bank.store import Scope

    if subtask is None and like is None and not image:
        raise ValueError("say what to search for: --subtask WORDS, --image CAMERA=FILE, or --like KEYFRAME")
    if like is not None and image:
        raise ValueError("--like and --image both say what to look for: give one of them")
    scope = Scope(robot=robot, session=session, task=task, subtask=subtask)
    with _opened(store) as memory:
        if like is None and not image:
            found: list[dict[str, Any]] = [asdict(one) for one in memory.keyframes(scope, limit)]
        else:
            if image:
                model, vector = _query(memory, image, planner, weights)
            else:
                assert like is not None
                model = _model(memory, model)
                vector = memory.embedding_of(like, model)
            hits = memory.search(vector, limit, model=model, scope=scope)
            found = [asdict(hit.keyframe) | {"similarity": round(hit.similarity, 3)} for hit in hits]
        if images is not None:
            for one in found:
                for number, camera in enumerate(one["cameras"]):
                    png = memory.images.read(one["key"], one["step"], number)
                    write_bytes(images / f"{one['id']}-{camera}.png", png)
    columns = ("id", "episode_id", "step", "at_s", "nominated", "subtask", "instruction")
    _print(found, columns if like is None and not image else ("similarity", *columns), as_json)


@app.command("embed")
def embed(
    store: Store,
    planner: Planner = "arena-planner",
    weights: Weights = None,
    robot: Annotated[str | None, typer.Option(help="Only keyframes of this robot.")] = None,
) -> None:
    """Embed the keyframes that have no embedding yet with the vision tower of a planner, for `search --image`.

    After Ctrl-C the same command goes on. What a server has written since is embedded by running it again.
    """
    from memory_bank.store import Scope
    from memory_bank.store.embedding import embed_missing, embeddable
    from planner.tower_embedding import TowerEmbedder
    from predimem.core.progress import Bar

    with _opened(store) as memory:
        if robot is not None:
            with memory.database.reading() as read:
                memory.robot_key(read, robot)
        tower = TowerEmbedder(planner, weights)
        keyframes, unfit = embeddable(memory, tower.model, tower.cameras, Scope(robot=robot))
        with Bar(len(keyframes), "keyframes", "embedding") as bar:
            for count in embed_missing(memory, keyframes, tower.model, tower.embed):
                bar.add(count)
        print(f"{tower.model}: {len(keyframes)} keyframes embedded")
        if unfit:
            print(f"{unfit} keyframes were left out: they do not show {' and '.join(tower.cameras)}")


@app.command("export")
def export(
    store: Store,
    robot: Robot,
    session: Annotated[str, typer.Option(help="Name of the session.")],
    out: Annotated[Path, typer.Option(help="The file to write, such as tuesday.session.")],
) -> None:
    """Write a session into one file: episodes, plans, keyframes with images and embeddings, trajectories and notes."""
    check_file(out)
    from memory_bank.store import export_session

    with _opened(store) as memory:
        print(f"{out}: {export_session(memory, robot, session, out)} keyframes")


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A file that `predimem memory export` wrote.")],
    store: Store,
    robot: Annotated[str | None, typer.Option(help="Give the session to this robot; default: as in the file.")] = None,
    session: Annotated[str | None, typer.Option(help="Another name for the session; default: as in the file.")] = None,
) -> None:
    """Read an exported session into a store, which is made where it is not there."""
    from memory_bank.store import import_session

    with _opened(store, must_exist=False) as memory:
        print(import_session(memory, file, robot, session))


@app.command("note")
def note(
    text: Annotated[str, typer.Argument(help="What to write.")],
    store: Store,
    robot: Robot,
    session: Session = None,
    episode: Annotated[str | None, typer.Option(help="Id of the episode.")] = None,
    author: Annotated[str, typer.Option(help="Who writes it.")] = "",
) -> None:
    """Write a note about a robot, a session or an episode."""
    with _opened(store) as memory:
        memory.note(text, robot, session, episode, author)


@app.command("delete")
def delete(
    store: Store,
    robot: Robot,
    session: Session = None,
    episode: Annotated[str | None, typer.Option(help="Id of the episode.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete all that is kept of a robot, of one of its sessions or of one episode: rows, images and embeddings."""
    what = f"robot {robot!r}" + (f", session {session!r}" if session else "") + (f", {episode!r}" if episode else "")
    with _opened(store) as memory:
        if not yes:
            typer.confirm(f"Delete all that is kept of {what}?", abort=True)
        _removed(memory.delete(robot, session, episode))


@app.command("prune")
def prune(
    store: Store,
    days: Annotated[float | None, typer.Option(help="Delete episodes that were not used for so many days.")] = None,
    gib: Annotated[float | None, typer.Option(help="Keep the last used episodes, up to this size of images.")] = None,
    episodes: Annotated[int | None, typer.Option(help="Keep so many episodes, the last used ones.")] = None,
    episodes_per_robot: Annotated[int | None, typer.Option(help="Keep so many episodes of each robot.")] = None,
) -> None:
    """Delete what was not used for longest, as `state:` in the config of `predimem serve` does all the time."""
    from memory_bank.store import Retention

    with _opened(store, Retention(days, gib, episodes, episodes_per_robot)) as memory:
        _removed(memory.prune())


@app.command("index")
def index(
    store: Store, model: Annotated[str | None, typer.Option(help="Only for this model; default: for all.")] = None
) -> None:
    """Make the index for the search among very many keyframes anew, from the store."""
    with _opened(store) as memory:
        for line in memory.build_index(model) or ["the store has no embeddings"]:
            print(line)


@contextmanager
def _opened(place: str, retention: Retention | None = None, must_exist: bool = True) -> Iterator[MemoryStore]:
    from memory_bank.store import Retention, open_store

    memory = open_store(place, retention or Retention(), must_exist=must_exist)
    try:
        yield memory
    finally:
        memory.close()


def _model(memory: MemoryStore, model: str | None) -> str:
    known = list(memory.models())
    if model is None and len(known) == 1:
        return known[0]
    if model not in known:
        raise ValueError(f"--model: expected one of {', '.join(known) or '(the store has no embeddings)'}, got {model}")
    return model


def _query(memory: MemoryStore, images: Sequence[str], planner: str, weights: str | None) -> tuple[str, Any]:
    """The model and the vector of images, each CAMERA=FILE. Raises ValueError where the store has no such model."""
    import numpy as np
    from PIL import Image

    from planner.tower_embedding import TowerEmbedder

    shown = {}
    for given in images:
        camera, equals, file = given.partition("=")
        if not equals:
            raise ValueError(f"--image: expected CAMERA=FILE, got {given}")
        with Image.open(file) as opened:
            shown[camera] = np.asarray(opened.convert("RGB"))
    tower = TowerEmbedder(planner, weights)
    if tower.model not in memory.models():
        raise ValueError(
            f"the store has no embeddings of {tower.model}: make them with `predimem memory embed --planner {planner}`"
        )
    return tower.model, tower.query(shown, _image_size(memory, tower.cameras))


def _image_size(memory: MemoryStore, cameras: Sequence[str]) -> tuple[int, int]:
    """[height, width] of the newest keyframe with these cameras. Raises ValueError where none is kept."""
    newest = next((k for k in memory.keyframes() if set(cameras) <= set(k.cameras)), None)
    if newest is None:
        raise ValueError(f"--image: the store keeps no keyframe with the cameras {', '.join(cameras)}")
    height, width, _ = memory.frame(newest.key, newest.step).images[cameras[0]].shape
    return height, width


def _removed(removed: Any) -> None:
    size = _bytes(removed.image_bytes)
    print(f"deleted {removed.episodes} episodes with {removed.keyframes} keyframes ({size} of images)")


def _print(found: Sequence[dict[str, Any]], columns: Sequence[str], as_json: bool) -> None:
    if as_json:
        print(json.dumps(found, indent=1))
        return
    if not found:
        print("nothing was found")
        return
    shown = [[_cell(name, one[name]) for name in columns] for one in found]
    heads = [_HEADS.get(name, name) for name in columns]
    widths = [max(map(len, column)) for column in zip(heads, *shown, strict=True)]
    for row in (heads, *shown):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


_HEADS = {"used_s": "last used", "began_s": "began", "at_s": "stored", "image_bytes": "images", "episode_id": "episode"}


def _cell(name: str, value: Any) -> str:
    if name.endswith("_s"):
        return _time(value)
    if name == "image_bytes":
        return _bytes(value)
    if isinstance(value, tuple | list):
        return "; ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


def _time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s).strftime("%Y-%m-%d %H:%M:%S")


def _bytes(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"


def _steps(steps: Sequence[int]) -> str:
    shown = ", ".join(map(str, steps[:20]))
    return f"{len(steps)} at steps {shown}{', ...' if len(steps) > 20 else ''}" if steps else "none"
