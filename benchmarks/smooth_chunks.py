"""Measures what S1's latency costs, and what continuing chunks saves: success, stale actions, jerk where chunks meet.

    python -m benchmarks.smooth_chunks --out runs/smooth_chunks.jsonl                # all; it goes on where it left off
    python -m benchmarks.smooth_chunks --out runs/smooth_chunks.jsonl --table docs/benchmarks/smooth_chunks.md

Plays RememberColor9 and four tasks of the arena with the shipped actors and the oracle planner, so that all that
differs is S1. Time is simulated: a chunk that is asked for arrives after the injected latency, and the machine's own
speed does not count. Each line of the file is one episode; the table is made of the episodes that were
played with every execution at a latency.

synchronous   the robot is held until the next chunk is there
naive         the old chunk is executed meanwhile, and the new one knows nothing of it
guided        the same, and the new chunk is guided to continue it (arXiv:2506.07339)
trained       the same with an actor that was trained to continue (arXiv:2512.05964); needs weights with `trained_delay`
Each but `naive` leaves out of a chunk what was executed since its observation; `naive` leaves out what has passed.

jerk: the second difference of the actions, which are displacements, without the gripper's, as the root mean square of
its length, in the units of the action; `at borders` where a chunk begins, `within` everywhere else.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.server.served import paragraph
from predimem.agent.clock import TimeConfig
from predimem.agent.config import AgentConfig
from predimem.agent.dual_system import DualSystemConfig
from predimem.agent.recording import TraceRecorder
from predimem.core.seeds import EVALUATION_SEEDS_FROM
from predimem.evaluation.analysis.metrics import wilson_interval
from predimem.evaluation.run.benchmark_player import BenchmarkPlayer
from predimem.evaluation.run.config import PlayConfig
from predimem.evaluation.run.machine import machine, revision

TASKS = ("mikasa:RememberColor9-VLA-v0", "arena:1", "arena:4", "arena:8", "arena:13")
ACTORS = {"mikasa": "actor", "arena": "arena-actor"}
HZ = 20.0
NAIVE = DualSystemConfig(execute_steps=4, plan_every_steps=10)
MODES = {
    "synchronous": replace(NAIVE, chunks="wait", align="actions"),
    "naive": NAIVE,
    "guided": replace(NAIVE, chunks="guided", align="actions"),
    "trained": replace(NAIVE, chunks="trained", align="actions"),
}
AGENT = "measured"
HEAD = ("tasks", "latency, ms", "execution", "n", "success", "95 %", "stale", "held", "jerk at borders", "within")


def figures(ticks: list[dict[str, Any]], latency_steps: int) -> dict[str, Any]:
    """Of one episode: shares of stale and of held steps, and sums and counts of the squared jerk."""
    actions = np.array([tick["action"] for tick in ticks], np.float64)[:, :-1]
    held = np.array([tick["held_action"] for tick in ticks])
    asked = [i for i, tick in enumerate(ticks) if tick["s1_latency_s"] is not None]
    borders = {i + latency_steps for i in asked[1:]}
    sums = {"border": [0.0, 0], "within": [0.0, 0]}
    for i in range(2, len(actions)):
        if not held[i - 2 : i + 1].any():
            kind = sums["border" if i in borders else "within"]
            kind[0] += float(np.sum((actions[i] - 2 * actions[i - 1] + actions[i - 2]) ** 2))
            kind[1] += 1
    moved = max(1, int((~held).sum()))
    stale = sum(tick["stale_action"] for tick in ticks)
    return {"stale": stale / moved, "held": float(held.mean()) if len(held) else 0.0, "jerk": sums}


def play(task: str, mode: str, latency_ms: int, seeds: list[int], weights: dict[str, str], out: Path) -> None:
    benchmark, _, name = task.partition(":")
    steps = round(latency_ms * HZ / 1000)
    actor = weights.get(benchmark, ACTORS[benchmark])
    path = str(Path(actor).resolve()) if benchmark in weights else actor
    config = PlayConfig(
        benchmark=benchmark,
        actor_camera_every=1,
        time=TimeConfig(s1_latency_steps=steps, s2_latency_steps=4),
        agent=MODES[mode],
        agent_configs={AGENT: AgentConfig(planner="oracle", actor=path)},
    )
    player = BenchmarkPlayer(config)
    try:
        for seed in seeds:
            recorder = TraceRecorder()
            result = player.play(name, AGENT, seed, [recorder])
            if result.status == "error":
                raise RuntimeError(f"{task}, {mode}, {latency_ms} ms, seed {seed}: {result.message}")
            line = {"task": task, "mode": mode, "latency_ms": latency_ms, "seed": seed, "actor": actor}
            line |= {"revision": str(revision()[0])[:7], "success": result.status == "success", "steps": result.steps}
            line |= figures(recorder.trace["ticks"], steps)
            with out.open("a") as file:
                file.write(json.dumps(line) + "\n")
    finally:
        player.close()


def rows(lines: list[dict[str, Any]]) -> list[list[str]]:
    """A row for each benchmark, latency and execution, of the episodes that were played with each execution there."""
    played: dict[tuple[str, int, str], dict[tuple[str, int], dict[str, Any]]] = defaultdict(dict)
    for line in lines:
        benchmark = line["task"].partition(":")[0]
        played[benchmark, line["latency_ms"], line["mode"]][line["task"], line["seed"]] = line
    order = {mode: i for i, mode in enumerate(MODES)}
    table = []
    for (benchmark, latency_ms, mode), episodes in sorted(played.items(), key=lambda g: (*g[0][:2], order[g[0][2]])):
        others = [e for (*place, _), e in played.items() if place == [benchmark, latency_ms]]
        common = set.intersection(*(set(e) for e in others))
        group = [episodes[key] for key in sorted(common)]
        if not group:
            continue
        done = sum(line["success"] for line in group)
        low, high = wilson_interval(done, len(group))
        jerk = []
        for kind in ("border", "within"):
            total, count = (sum(line["jerk"][kind][i] for line in group) for i in (0, 1))
            jerk.append(f"{(total / count) ** 0.5:.3f}" if count else "-")
        share = [f"{100 * float(np.mean([line[name] for line in group])):.1f} %" for name in ("stale", "held")]
        success = [f"{done / len(group):.2f}", f"{low:.2f} to {high:.2f}"]
        tasks = ", ".join(sorted({task.partition(":")[2] for task, _ in common}, key=lambda task: (len(task), task)))
        table.append([f"{benchmark}: {tasks}", str(latency_ms), mode, str(len(group)), *success, *share, *jerk])
    return table


def write_table(lines: list[dict[str, Any]], path: Path) -> None:
    here, noted = machine(), sorted({line["revision"] for line in lines if "revision" in line})
    without = sum("revision" not in line for line in lines)
    played = ", ".join([*noted, *([f"not recorded for {without} episodes"] if without else [])])
    body = [HEAD, ["---"] + ["---:"] * (len(HEAD) - 1), *rows(lines)]
    text = "# S1's latency and the borders of chunks\n\n"
    first = min(line["seed"] for line in lines)
    used = {line["task"].partition(":")[0]: line["actor"] for line in lines}
    other = ", ".join(f"`{actor}` for {name}" for name, actor in used.items() if actor != ACTORS[name]) or "none"
    text += paragraph(
        f"""Made with `python -m benchmarks.smooth_chunks --out FILE --table docs/benchmarks/smooth_chunks.md`, whose
        code says what is measured. Time is simulated, so the machine's speed does not matter to the figures. The
        shipped actors, but for the weights that are named here: {other}. {here["cpu"]}; table of revision
        {str(revision()[0])[:7]}; revisions at which episodes were played: {played}; seeds from {first} on. Intervals
        are Wilson's, for all episodes of a row alike."""
    )
    text += "\n\n"
    path.write_text(text + "\n".join(f"| {' | '.join(row)} |" for row in body) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="JSON lines, one for each episode; is continued")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), help="benchmark:task")
    parser.add_argument("--modes", nargs="+", choices=list(MODES), default=[m for m in MODES if m != "trained"])
    parser.add_argument("--latencies-ms", type=int, nargs="+", default=[0, 100, 200, 300, 400, 500])
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--seed-start", type=int, default=EVALUATION_SEEDS_FROM)
    parser.add_argument("--actor", action="append", default=[], metavar="BENCHMARK=FOLDER", help="other weights")
    parser.add_argument(
        "--table", type=Path, help="Markdown file that is written of what is in --out; nothing is played"
    )
    args = parser.parse_args()
    lines = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    if args.table:
        write_table(lines, args.table)
        return
    weights = dict(given.split("=", 1) for given in args.actor)
    for line in lines:
        name = line["task"].partition(":")[0]
        if line["actor"] != (actor := weights.get(name, ACTORS[name])):
            parser.error(f"{args.out} has episodes of {name} with the actor {line['actor']}, not {actor}: use another")
    there = {(line["task"], line["mode"], line["latency_ms"], line["seed"]) for line in lines}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    wanted = range(args.seed_start, args.seed_start + args.episodes)
    cells = [(t, m, ms) for t in args.tasks for ms in args.latencies_ms for m in args.modes]
    for task, mode, latency_ms in tqdm(cells, unit="cell"):
        seeds = [seed for seed in wanted if (task, mode, latency_ms, seed) not in there]
        if seeds:
            play(task, mode, latency_ms, seeds, weights, args.out)


if __name__ == "__main__":
    main()
