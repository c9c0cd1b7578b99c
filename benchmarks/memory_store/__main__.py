"""Measures the memory store: how fast it takes keyframes in, opens and answers, and what a keyframe costs on the disk.

    OMP_NUM_THREADS=1 python -m benchmarks.memory_store --episodes runs/data/arena --out docs/benchmarks/memory_store.md

--episodes: a folder of the arena's demonstrations (`predimem datagen`), whose images are embedded with the planner's
own vision tower. Robots play in turn, so that the rows of one lie scattered among those of all. --keep FOLDER keeps
the store; where it is there already, it is not filled again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.memory_store.keyframes import MODEL, Views, batches, episode_of, perturbed, read_views
from benchmarks.server.served import Begun, paragraph, progress, table
from memory_bank.store import MemoryStore, Scope, open_store
from memory_bank.store.exact import similarities
from predimem.core.files import write_text

PER_ROBOT, PER_EPISODE, BATCH, ALONE = 10_000, 100, 20, 300
K, QUERIES, CHECKED = 10, 1000, 200
PLANNER = Path(__file__).parents[2] / "predimem/weights/arena-planner"
OPEN = """
import json, sys, time
began = time.perf_counter()
from memory_bank.store import Scope, open_store
imported = time.perf_counter()
store = open_store(sys.argv[1])
opened = time.perf_counter()
vector = json.loads(sys.argv[3])
first = store.search(vector, 10, model=sys.argv[2], scope=Scope(robot="robot-0"))
searched = time.perf_counter()
store.search(vector, 10, model=sys.argv[2])
print(json.dumps([imported - began, opened - imported, searched - opened, time.perf_counter() - searched]))
"""


def fill(store: MemoryStore, views: Views, robots: int, episodes: int, rng: np.random.Generator) -> list[float]:
    """The seconds of each batch."""
    seconds, began, total = [], time.perf_counter(), robots * episodes
    for number in range(total):
        robot, episode = number % robots, number // robots
        images, embeddings = episode_of(views, PER_EPISODE, rng)
        key = store.begin(f"robot-{robot}/{episode}", f"task {episode % 10}", session=f"day {episode // 10}")
        for batch in batches(images, embeddings, BATCH):
            before = time.perf_counter()
            store.keep_frames(key, batch)
            seconds.append(time.perf_counter() - before)
        if number % 100 == 99:
            done, spent = (number + 1) * PER_EPISODE, time.perf_counter() - began
            progress(f"{done} keyframes, {done / spent:.0f} a second")
    return seconds


def one_by_one(store: MemoryStore, views: Views, rng: np.random.Generator) -> float:
    """Keyframes a second where each is acknowledged by itself."""
    images, embeddings = episode_of(views, ALONE, rng)
    key = store.begin("robot-0/alone", "task alone")
    began = time.perf_counter()
    for batch in batches(images, embeddings, 1):
        store.keep_frames(key, batch)
    rate = ALONE / (time.perf_counter() - began)
    store.delete("robot-0", episode_id="robot-0/alone")
    return rate


def ask(store: MemoryStore, queries: np.ndarray, robots: int | None) -> tuple[list[float], list[list[int]]]:
    """(seconds, ids of what was found) of each query; of one robot each where there are some."""
    seconds, found = [], []
    for number, query in enumerate(queries):
        scope = Scope() if robots is None else Scope(robot=f"robot-{number % robots}")
        began = time.perf_counter()
        hits = store.search(query, K, model=MODEL, scope=scope)
        seconds.append(time.perf_counter() - began)
        found.append([hit.keyframe.id for hit in hits])
    return seconds, found


def recall(store: MemoryStore, queries: np.ndarray, found: list[list[int]]) -> float:
    """The share of the exact K nearest that was found."""
    [(vectors, _)] = store._searcher._models.values()  # type: ignore[attr-defined]
    view, shares = vectors.current(), []
    for query, ids in zip(queries, found, strict=False):
        exact = similarities(view.vectors, None, query)
        best = np.argpartition(-exact, K)[:K]
        shares.append(len(set(view.keyframes[best].tolist()) & set(ids)) / K)
    return float(np.mean(shares))


def on_disk(folder: Path) -> dict[str, int]:
    """Bytes that the file system gave to each part."""
    parts = {"database": 0, "images": 0, "embeddings for the scan": 0, "index": 0}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).parts[0]
        part = {"pictures": "images", "index": "embeddings for the scan"}.get(name, "database")
        part = "index" if path.name.startswith("ann.") else part
        parts[part] += path.lstat().st_blocks * 512
    return parts


def milliseconds(seconds: list[float]) -> str:
    p50, p99 = np.percentile(seconds, (50, 99)) * 1000
    return f"{p50:.1f} / {p99:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--episodes", type=Path, required=True, help="folder with demonstrations of the arena")
    parser.add_argument("--keyframes", type=int, default=1_000_000)
    parser.add_argument("--copies", type=int, default=4, help="how often each image is embedded, changed a little")
    parser.add_argument("--keep", type=Path, help="folder for the store; default: a temporary one")
    parser.add_argument("--out", type=Path, help="write the page; default: print it")
    args = parser.parse_args()
    begun, rng = Begun.now(), np.random.default_rng(0)
    progress("embedding the images")
    views = read_views(args.episodes, PLANNER, args.copies)
    dim = views.embeddings.shape[1]
    with tempfile.TemporaryDirectory(prefix="predimem-memory-") as temporary:
        folder = args.keep or Path(temporary) / "store"
        text = measure(folder, views, args.keyframes, rng)
    near = [
        float(row @ views.embeddings[place])
        for place, row in enumerate(perturbed(views, np.arange(min(500, len(views.small))), rng))
    ]
    head = f"""{begun.line()} {len(views.small)} views (images of {len(set(views.episodes.tolist()))} demonstrations
    of the arena, each shifted and brightened {args.copies} times), embedded by the vision tower of `arena-planner`:
    the mean of its tokens, camera after camera, {dim} dimensions. An embedding that is stored is mixed from two views
    of an episode with noise (cosine to its view {np.mean(near):.3f} on average); an image that is stored has 32 x 32
    px."""
    page = f"""# The memory store with very many keyframes

Made with `python -m benchmarks.memory_store --episodes runs/data/arena --out FILE`, whose code says what is measured.
[The guide](../guides/memory-store.md) says what the store is.

{paragraph(head)}

{text}"""
    if args.out is None:
        print(page)
    else:
        write_text(args.out, page)


def measure(folder: Path, views: Views, keyframes: int, rng: np.random.Generator) -> str:
    robots = max(1, keyframes // PER_ROBOT)
    episodes = max(1, keyframes // robots // PER_EPISODE)
    fresh = not folder.exists()
    store = open_store(folder)
    store._searcher._in_background = False  # type: ignore[attr-defined]  # so that it is measured by itself
    rows: list[tuple[str, str, str]] = []
    if fresh:
        began = time.perf_counter()
        batch_s = fill(store, views, robots, episodes, rng)
        rate = robots * episodes * PER_EPISODE / (time.perf_counter() - began)
        rows.append((f"insert, {BATCH} at once, on the disk when acknowledged", f"{rate:.0f} keyframes/s", ">= 500/s"))
        rows.append((f"the same, p50 / p99 of {BATCH}", f"{milliseconds(batch_s)} ms", ""))
        rows.append(("insert, one by one", f"{one_by_one(store, views, rng):.0f} keyframes/s", ""))
    queries = perturbed(views, rng.integers(0, len(views.small), QUERIES), rng)
    began = time.perf_counter()
    store.search(queries[0], K, model=MODEL, scope=Scope(robot="robot-0"))
    rows.append(
        ("first search after that: embeddings are copied for the scan", f"{time.perf_counter() - began:.0f} s", "")
    )
    progress("making the index")
    began = time.perf_counter()
    [said] = store.build_index()
    progress(said)
    rows.append(("index made (`predimem memory index`)", f"{time.perf_counter() - began:.0f} s", ""))
    store.close()
    arguments = [sys.executable, "-c", OPEN, str(folder), MODEL, str(queries[0].tolist())]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    imported, opened, of_robot, of_all = (float(part) for part in done.stdout.strip("[]\n").split(","))
    rows.append(("open in a new process, besides imports", f"{opened:.2f} s", "< 2 s"))
    rows.append(("its first search of one robot", f"{1000 * of_robot:.0f} ms", ""))
    rows.append(("its first search of all, which reads the index", f"{1000 * of_all:.0f} ms", ""))
    store = open_store(folder)
    count = robots * episodes * PER_EPISODE
    progress("searching")
    ask(store, queries[:50], robots)
    seconds, _ = ask(store, queries, robots)
    mine = f"{count // robots:,} keyframes of one robot"
    rows.append((f"exact search of {mine}, p50 / p99", f"{milliseconds(seconds)} ms", "p99 < 10 ms"))
    ask(store, queries[:50], None)
    seconds, found = ask(store, queries, None)
    rows.append((f"search of all {count:,} with the index, p50 / p99", f"{milliseconds(seconds)} ms", "p99 < 20 ms"))
    share = recall(store, queries[:CHECKED], found[:CHECKED])
    rows.append((f"recall@{K} of it, {CHECKED} queries", f"{share:.3f}", ">= 0.95"))
    scoped = Scope(task="task 3")
    began = time.perf_counter()
    for query in queries[:CHECKED]:
        store.search(query, K, model=MODEL, scope=scoped)
    each = 1000 * (time.perf_counter() - began) / CHECKED
    rows.append((f"search of one task of ten ({count // 10:,}), mean", f"{each:.1f} ms", ""))
    store.close()
    del imported
    parts = on_disk(folder)
    sizes = [(name, f"{size / 2**20:.0f} MiB", f"{size / count:.0f}") for name, size in parts.items()]
    total = sum(parts.values())
    sizes.append(("all", f"{total / 2**20:.0f} MiB", f"{total / count:.0f}"))
    shape = f"{count:,} keyframes of {robots} robots, {PER_EPISODE} in an episode, {K} nearest, {QUERIES} queries."
    return f"""{paragraph(shape)}

{table(("what", "measured", "target"), rows)}

## On the disk
{table(("part", "size", "bytes a keyframe"), sizes)}
"""


if __name__ == "__main__":
    main()
