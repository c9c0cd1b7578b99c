"""`predimem data stats`: what a folder of episodes holds, task by task, and what was discarded on the way.

Read from the episodes themselves and from `journal.jsonl` beside them, where there is one: a line for each
attempt with `task`, `seed`, `kept`, `cause`, `seconds` and `report` (`retries`: subtask -> how often it was tried
again, `stage_seconds`: stage of the work -> s). Only a few numbers of each episode are held, and no images.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from predimem.core.episode_folder import list_episodes
from predimem.core.episode_reader import load_episode
from predimem.core.episodes import Episode
from predimem.core.progress import watched
from predimem.core.subtask_labels import released
from predimem.envs.arena.tasks import task_of

JOURNAL = "journal.jsonl"
Attempts = Mapping[tuple[str, int], Mapping[str, Any]]


@dataclass(frozen=True)
class Facts:
    """One episode in numbers. memory_subtasks, retries: None where nothing tells. images: taken, of all cameras."""

    task: str
    seed: int
    steps: int
    seconds: float
    subtasks: int
    keyframes: int
    memory_subtasks: int | None
    retries: int | None
    images: int
    bytes: int


def data_statistics(root: str | Path, verify: bool = True, progress: bool = True) -> dict[str, Any]:
    """Plain JSON data: `tasks` (name -> figures, see `summarise`) and `all`, the same over all episodes.

    verify: hold every file to its checksum, which reads all of it. Raises EpisodeError for a damaged file or
    none at all, and ValueError for a damaged journal.
    """
    root = Path(root)
    attempts = read_journal(root / JOURNAL)
    paths = list_episodes(root)
    facts = [facts_of(path, attempts, verify) for path in watched(paths, len(paths), "episodes", shown=progress)]
    names = sorted({fact.task for fact in facts} | {task for task, _ in attempts}, key=_order)
    tasks = {
        name: summarise([f for f in facts if f.task == name], [a for (task, _), a in attempts.items() if task == name])
        for name in names
    }
    return {"episodes": str(root), "tasks": tasks, "all": summarise(facts, list(attempts.values()))}


def read_journal(path: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """(task, seed) -> its last attempt; empty where there is no journal. Lines of other kinds are passed over.

    A last line without its end is still being written, and is left out. Raises ValueError for other damage.
    """
    attempts: dict[tuple[str, int], dict[str, Any]] = {}
    if not path.is_file():
        return attempts
    with path.open() as file:
        for number, line in enumerate(file, 1):
            if not line.endswith("\n"):
                break
            try:
                entry = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{path} is damaged in line {number} ({error}): mend or remove that line") from None
            if isinstance(entry, dict) and {"task", "seed", "kept"} <= entry.keys():
                attempts[entry["task"], entry["seed"]] = entry
    return attempts


def facts_of(path: Path, attempts: Attempts, verify: bool = True) -> Facts:
    episode = load_episode(path, verify=verify)
    attempt = attempts.get((episode.task, episode.seed), {})
    memory = memory_of_spans(episode)
    return Facts(
        task=episode.task,
        seed=episode.seed,
        steps=len(episode),
        seconds=len(episode) / episode.control_hz if episode.control_hz else 0.0,  # independent states have no rate
        subtasks=len(episode.subtasks),
        keyframes=len(episode.keyframes),
        memory_subtasks=None if memory is None else sum(map(bool, memory)),
        retries=_retries({**episode.metadata, **(attempt.get("report") or {})}.get("retries")),
        images=sum(int(frames.stored.sum()) for frames in episode.images.values()),
        bytes=path.stat().st_size,
    )


def memory_of_spans(episode: Episode) -> tuple[str, ...] | None:
    """Why each subtask span depends on memory (`predimem.envs.arena.subtasks.Memory`), "" where it does not.

    As the recorder noted it (`metadata["spans_memory"]`), else as the arena's task of that name declares it;
    None where neither is to be had.
    """
    noted = episode.metadata.get("spans_memory")
    if isinstance(noted, Sequence) and len(noted) == len(episode.subtasks):
        return tuple(str(reason or "") for reason in noted)
    try:
        variants = task_of(episode.task).variants
    except ValueError:
        return None
    for variant in variants:
        declared = {released(subtask.label): subtask.memory or "" for subtask in variant.subtasks}
        labels = [released(span.label) for span in episode.subtasks]
        if all(label in declared for label in labels):
            return tuple(declared[label] for label in labels)
    return None


def summarise(facts: Sequence[Facts], attempts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of a group of episodes and of the attempts (journal lines) that they come from.

    Shares are in [0, 1]; means are over kept episodes, but `work_seconds` and `stage_seconds` over attempts; sd is
    the sample's; None stands for what is not known.
    """
    from scipy.stats import binomtest

    kept = sum(bool(attempt["kept"]) for attempt in attempts)
    interval = binomtest(kept, len(attempts)).proportion_ci(0.95, method="wilson") if attempts else None
    told = [f for f in facts if f.memory_subtasks is not None]
    retries = [f.retries for f in facts if f.retries is not None]
    subtasks, keyframes = sum(f.subtasks for f in facts), sum(f.keyframes for f in facts)
    return {
        "episodes": len(facts),
        "attempted": len(attempts) or None,
        "kept": kept if attempts else None,
        "yield": kept / len(attempts) if attempts else None,
        "yield_low": float(interval.low) if interval else None,
        "yield_high": float(interval.high) if interval else None,
        "causes": _causes(attempts),
        "steps": _spread([f.steps for f in facts]),
        "seconds": _mean([f.seconds for f in facts]),
        "subtasks": subtasks,
        "subtasks_per_episode": _share(subtasks, len(facts)),
        "memory_share": _share(sum(f.memory_subtasks or 0 for f in told), sum(f.subtasks for f in told)),
        "keyframes": keyframes,
        "keyframes_per_episode": _share(keyframes, len(facts)),
        "keyframes_per_subtask": _share(keyframes, subtasks),
        "retries_per_episode": _mean(retries),
        "retried_share": _share(sum(n > 0 for n in retries), len(retries)),
        "images": sum(f.images for f in facts),
        "bytes": sum(f.bytes for f in facts),
        "work_seconds": _mean([a["seconds"] for a in attempts if a.get("seconds") is not None]),
        "stage_seconds": _stage_seconds(attempts),
    }


def _order(name: str) -> tuple[int, str]:
    """The arena's tasks by their numbers, the others behind them."""
    try:
        return task_of(name).task_id, name
    except ValueError:
        return 10**9, name


def _retries(noted: Any) -> int | None:
    if isinstance(noted, Mapping):
        return sum(int(n) for n in noted.values())
    return int(noted) if isinstance(noted, int) else None


def _causes(attempts: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Why attempts were discarded, the most frequent cause first."""
    causes = (str(a.get("cause") or "unknown").splitlines()[0] for a in attempts if not a["kept"])
    return dict(Counter(causes).most_common())


def _stage_seconds(attempts: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Stage -> mean seconds of an attempt, the longest first."""
    total: Counter[str] = Counter()
    reports = [(a.get("report") or {}).get("stage_seconds") for a in attempts]
    for report in reports:
        total.update(report or {})
    timed = sum(bool(report) for report in reports)
    return {stage: seconds / timed for stage, seconds in total.most_common()}


def _spread(values: Sequence[int]) -> dict[str, float] | None:
    if not values:
        return None
    sd = stdev(values) if len(values) > 1 else 0.0
    return {"mean": fmean(values), "sd": sd, "min": min(values), "max": max(values)}


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
