"""Which of MIKASA-Robo's tasks run here, and how often their scripts succeed: a Markdown table.

    python -m benchmarks.mikasa_families [--episodes 20] [--out docs/benchmarks/mikasa_families.md]

Plays the script with the true subtask, without rendering, in one process. Success is the suite's own, or the family's
stricter one where it has one: in Remember*-Long a touch counts only once there is something to choose from. What has
been played is kept in the journal, and the same command goes on after Ctrl-C; `--again TASK` plays tasks anew. What the
shipped weights were trained on is read from `mikasa_trained_on.yaml`.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from predimem.core.config import read_yaml
from predimem.envs.mikasa import light_bulb
from predimem.envs.mikasa.expert import expert
from predimem.envs.mikasa.families.registry import family_of
from predimem.envs.mikasa.suite import MikasaEnvironment, benchmark_version, tasks
from predimem.evaluation.analysis.metrics import wilson_interval
from predimem.evaluation.run.machine import machine, revision

FIRST_SEED = 900_000
TRAINED_ON = Path(__file__).with_name("mikasa_trained_on.yaml")
HEADER = (
    "| Task | Steps | Runs here | Family | Script succeeds | of | Its 95 % interval, % | Median steps | Trained on | "
    "With what, or why not |\n| --- | ---: | --- | --- | ---: | ---: | --- | ---: | --- | --- |"
)
Entry = dict[str, Any]


class Journal:
    """What has been found so far, a JSON object a line: whether a task starts, and each episode of its script."""

    def __init__(self, path: Path, again: Sequence[str] = ()):
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.entries: list[Entry] = [entry for entry in map(json.loads, lines) if entry["task"] not in again]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(entry) + "\n" for entry in self.entries))

    def add(self, **entry: Any) -> None:
        self.entries.append(entry)
        with self._path.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def start(self, task: str) -> Entry | None:
        return next((e for e in self.entries if e["task"] == task and "runs" in e), None)

    def episodes(self, task: str, seeds: Iterable[int]) -> dict[int, Entry]:
        wanted = set(seeds)
        return {e["seed"]: e for e in self.entries if e["task"] == task and e.get("seed") in wanted}


def examine(task: str, seeds: range, journal: Journal) -> None:
    """Add to the journal what it does not say yet about a task. Raises what an environment raises that has started."""
    if journal.start(task) is not None and (
        family_of(task) is None or len(journal.episodes(task, seeds)) == len(seeds)
    ):
        return
    try:
        environment = MikasaEnvironment(task, images=False)
    except (ValueError, OSError) as error:
        journal.add(task=task, runs=f"no: {_missing(task) or error}", steps=_horizon(task))
        return
    if journal.start(task) is None:
        environment.reset(FIRST_SEED)
        environment.step(environment.hold_action(None))
        bulbs = light_bulb.has_bulb(task) and light_bulb.is_missing()
        journal.add(task=task, runs=f"yes, {light_bulb.NOTE}" if bulbs else "yes", steps=environment.horizon)
    if environment.family is not None:
        for seed in sorted(set(seeds) - set(journal.episodes(task, seeds))):
            success, steps = play(environment, seed)
            journal.add(task=task, seed=seed, success=success, steps=steps)
    environment.close()


def play(environment: MikasaEnvironment, seed: int) -> tuple[bool, int]:
    """Whether the script succeeds, and after how many control steps the episode ended."""
    environment.reset(seed)
    script = expert(environment)
    script.reset()
    for step in range(environment.horizon):
        result = environment.step(script.action())
        if result.success or result.terminated:
            return result.success, step + 1
    return False, environment.horizon


def row(task: str, seeds: range, journal: Journal, trained_on: Mapping[str, Mapping[str, str]]) -> str:
    start, episodes = journal.start(task) or {}, journal.episodes(task, seeds).values()
    family = family_of(task)
    won = [episode["steps"] for episode in episodes if episode["success"]]
    interval = wilson_interval(len(won), len(episodes)) if episodes else None
    script = (
        [str(len(won)), str(len(episodes)), f"{100 * interval.low:.0f} to {100 * interval.high:.0f}"]
        if interval
        else ["", "", ""]
    )
    median = f"{statistics.median(won):.0f}" if won else ""
    word = trained_on[max(fits, key=len)] if (fits := [key for key in trained_on if task.startswith(key)]) else {}
    cells = [
        task.removesuffix("-VLA-v0"),
        str(start.get("steps", "")),
        start.get("runs", "not tried"),
        family.name if family else "none",
        *script,
        median,
        word.get("trained_on", ""),
        word.get("why", ""),
    ]
    return f"| {' | '.join(cells)} |"


def _missing(task: str) -> str:
    from mani_skill.utils import assets
    from mani_skill.utils.registration import REGISTERED_ENVS

    spec: Any = REGISTERED_ENVS[task]
    lacking = [asset for asset in spec.asset_download_ids or [] if not assets.is_data_source_downloaded(asset)]
    return f"needs ManiSkill's assets {', '.join(lacking)}" if lacking else ""


def _horizon(task: str) -> int:
    from mani_skill.utils.registration import REGISTERED_ENVS

    spec: Any = REGISTERED_ENVS[task]
    return int(spec.max_episode_steps)


def page(seeds: range, journal: Journal) -> str:
    trained_on = read_yaml(TRAINED_ON)
    names = tasks()
    running = sum(str((journal.start(task) or {}).get("runs", "")).startswith("yes") for task in names)
    scripted = sum(family_of(task) is not None for task in names)
    return f"""# MIKASA-Robo's tasks

Made with `python -m benchmarks.mikasa_families` ({benchmark_version()}) on {machine()["cores"]} cores of an
{machine()["cpu"]}, revision {(revision()[0] or "unknown")[:7]}. {running} of the {len(names)} tasks of the
suite run here, and a script plays {scripted} of them. The script knows the simulator's true state and is told the true
subtask; the seeds are {seeds[0]} to {seeds[-1]}, and nothing is rendered. **Steps** are those after which an episode
ends, **median steps** those after which the script has succeeded. In Remember*-Long the suite also counts a touch of
the cue itself; here a touch counts only once there is something to choose from. **Trained on** says whether shipped
weights were trained with demonstrations of the task, and names them. How often they solve it is on
[the results page](../results.md#mikasa-robo-remembercolor).

{HEADER}
{chr(10).join(row(task, seeds, journal, trained_on) for task in names)}
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", help="which tasks to examine; default: all")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--journal", type=Path, default=Path("runs/mikasa_families.jsonl"))
    parser.add_argument("--again", nargs="+", default=[], metavar="TASK", help="forget what was played of these tasks")
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks/mikasa_families.md"))
    args = parser.parse_args(arguments)
    import torch

    torch.set_num_threads(1)
    seeds = range(FIRST_SEED, FIRST_SEED + args.episodes)
    unknown = sorted({*(args.tasks or ()), *args.again} - set(tasks()))
    if unknown:
        parser.error(f"unknown task {unknown[0]}: `predimem tasks --benchmark mikasa` lists all")
    journal = Journal(args.journal, args.again)
    for task in args.tasks or tasks():
        examine(task, seeds, journal)
        print(row(task, seeds, journal, read_yaml(TRAINED_ON)), flush=True)
    args.out.write_text(page(seeds, journal))


if __name__ == "__main__":
    main()
