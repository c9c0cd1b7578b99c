"""Writes what a study has found so far as Markdown: figures, paired differences, prediction errors, what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.planner_head import replay, states
from benchmarks.planner_head.config import WITHOUT, HeadStudy, Training
from benchmarks.planner_head.errors import OFFSETS, Auc, Frames, auc_over_trainings, profile
from benchmarks.planner_head.figures import (
    FIGURES,
    Difference,
    neighbour_counts,
    paired,
    played_counts,
    pooled,
    read_lines,
    replay_counts,
    spread,
)
from benchmarks.server.served import paragraph, table
from predimem.core.files import write_text
from predimem.evaluation.run.journal import EvaluationJournal

T = TypeVar("T")
VARIED = ("share of the demonstrations", "weight of L_Pre")
NOTHING = "–"
ERROR, UNCHANGED = 2, 3  # where they stand in a frame of `states.StatesReader`
PLAY = "play"


@dataclass(frozen=True)
class Found:
    """What there is of each planner.

    counts: (piece, episode) -> its counts (`figures.Counts`).
    frames: episode -> its frames, as `states.StatesReader` gives them.
    made: piece -> where its records were made, as (revision, machine), each once.
    """

    counts: dict[Training, dict[Any, Any]]
    frames: dict[Training, dict[str, list[list[Any]]]]
    made: dict[str, list[tuple[str, str]]]


def write_table(study: HeadStudy) -> Path:
    """Write `out`/table.md; its path."""
    path = Path(study.out) / "table.md"
    write_text(path, as_markdown(study, read_found(study)))
    return path


def read_found(study: HeadStudy) -> Found:
    """All records that are there, those of planners that the study no longer has left out."""
    by_name = {training.name: training for training in study.trainings}
    lines = {
        piece: [line for line in read_lines(Path(study.out) / piece / "episodes.jsonl") if line["training"] in by_name]
        for piece in (replay.PIECE, states.PIECE)
    }
    latest = {piece: list({(x["training"], x["episode"]): x for x in its}.values()) for piece, its in lines.items()}
    found = Found({t: {} for t in study.trainings}, {t: {} for t in study.trainings}, {})
    for line in latest[replay.PIECE]:
        found.counts[by_name[line["training"]]][replay.PIECE, line["episode"]] = replay_counts(line["scores"])
    for name, training in by_name.items():
        own = [line for line in latest[states.PIECE] if line["training"] == name]
        found.counts[training].update({(states.PIECE, e): c for e, c in neighbour_counts(own).items()})
        found.frames[training].update({line["episode"]: line["frames"] for line in own})
    played = read_lines(Path(study.out) / PLAY / EvaluationJournal.name)
    for agent, episodes in played_counts(line["episode"] for line in played if "episode" in line).items():
        if agent in by_name:
            found.counts[by_name[agent]].update({(PLAY, *key): counts for key, counts in episodes.items()})
    for piece, its in latest.items():
        found.made[piece] = _each_once((x["revision"], x["dirty"], x["machine"]) for x in its)
    runs = [line["run"] for line in played if "run" in line]
    found.made[PLAY] = _each_once((run["revision"], run["dirty"], run["machine"]["cpu"]) for run in runs)
    return found


def as_markdown(study: HeadStudy, found: Found) -> str:
    """All tables. Shares of the demonstrations of which nothing is there yet are named at the end alone."""
    begun = {t.share for t in study.trainings if found.counts[t]} or set(study.training_shares)
    cells = list(dict.fromkeys((t.share, t.weight) for t in study.trainings if t.share in begun))
    parts = [
        f"# What the predictive head does ({study.closed_loop.benchmark})",
        paragraph(_head(study, found)),
        "## Figures",
        _figures(found, cells),
        paragraph(
            "In %: mean ± standard deviation over trainings, and how many there are. The subtask accuracy is over all "
            "answers on held-out episodes, with the planner's own memory; at changes, over those near a change of "
            "subtask. Keyframes are compared with those that the planner was taught to nominate. TSR and "
            f"CSR are those of closed loop with the actor `{study.actor}`. Neighbours alike: keyframes whose nearest "
            "state, of another episode, is of their subtask."
        ),
    ]
    if WITHOUT in study.predictive_weights and len(study.predictive_weights) > 1:
        parts += [
            "## Against no head",
            _differences(found, cells),
            paragraph(
                "Percentage points more than the planners of the same share of demonstrations and training seed with "
                "weight 0, on the episodes of both; 95 % interval by Student's t over training seeds, and how many "
                "there are. It speaks of further trainings on the same data and episodes, not of other episodes."
            ),
        ]
    parts.append("## Prediction errors at keyframes")
    frames = [frame for its in found.frames.values() for episode in its.values() for frame in episode]
    if frames and not any(nominated for _, nominated, *_ in frames):
        parts.append(
            paragraph(
                "None: in these episodes no frame is to be nominated that another one comes before, so that none is "
                "foreseen. Neighbours are missing for the same reason."
            )
        )
        return "\n\n".join(part for part in (*parts, _missing(study, found)) if part) + "\n"
    parts += [
        _errors(found, cells),
        paragraph(
            "AUC: the probability that a frame that is to be nominated has a larger error than another one; 0.5 is "
            "chance. 95 % intervals by a bootstrap over trainings and episodes. The error is L_Pre on held-out "
            "episodes, that of the head or, for comparison, that of saying that nothing changes."
        ),
        _profiles(found, cells),
        paragraph(
            "Mean error of the head, by how many frames of the window's spacing a frame comes after the nearest "
            "keyframe, as a multiple of that of frames further away."
        ),
    ]
    missing = _missing(study, found)
    return "\n\n".join(part for part in (*parts, missing) if part) + "\n"


def percent(value: tuple[float, float | None, int] | None) -> str:
    """Such as "81.2 ± 1.4 (3)"."""
    if value is None:
        return NOTHING
    mean, deviation, n = value
    return f"{100 * mean:.1f}{'' if deviation is None else f' ± {100 * deviation:.1f}'} ({n})"


def points(difference: Difference | None) -> str:
    """Such as "+1.3 [-0.4, +3.0] (3)"."""
    if difference is None:
        return NOTHING
    mean, low, high, n = difference
    interval = "" if low is None or high is None else f" [{100 * low:+.1f}, {100 * high:+.1f}]"
    return f"{100 * mean:+.1f}{interval} ({n})"


def _head(study: HeadStudy, found: Found) -> str:
    trained = sum(1 for its in found.counts.values() if its)
    parts = []
    for piece, made in found.made.items():
        episodes = sum(_number(found, training, piece) for training in study.trainings)
        places = ", ".join(f"revision {code} on {cpu}" for code, cpu in made)
        parts += [f"{piece} ({episodes} episodes) at {places}"] if made else []
    where = "; ".join(parts)
    return (
        "Made with `python -m benchmarks.planner_head --config FILE`, where FILE is a study of configs/studies, of "
        f"{trained} of {len(study.trainings)} planners, trained by `{study.recipe}` with the changes of the study. "
        f"{where[:1].upper()}{where[1:]}{'.' if where else ''}"
    )


def _figures(found: Found, cells: Sequence[tuple[float, float]]) -> str:
    rows = []
    for share, weight in cells:
        its = [pooled(episodes) for episodes in _of(found.counts, share, weight).values()]
        rows.append([f"{share:g}", f"{weight:g}", *(percent(spread([one[name] for one in its])) for name in FIGURES)])
    return table([*VARIED, *FIGURES], rows)


def _differences(found: Found, cells: Sequence[tuple[float, float]]) -> str:
    rows = []
    for share, weight in cells:
        if weight != WITHOUT:
            pair = _of(found.counts, share, weight), _of(found.counts, share, WITHOUT)
            rows.append([f"{share:g}", f"{weight:g}", *(points(paired(*pair, name)) for name in FIGURES)])
    return table([*VARIED, *FIGURES], rows)


def _errors(found: Found, cells: Sequence[tuple[float, float]]) -> str:
    rows = []
    for share, weight in cells:
        its = list(_of(found.frames, share, weight).values())
        by_head, by_change = (auc_over_trainings(signal(its, x), np.random.default_rng(0)) for x in (ERROR, UNCHANGED))
        size = by_head or by_change
        seen = [NOTHING, NOTHING] if size is None else [str(size.keyframes), str(size.frames)]
        rows.append([f"{share:g}", f"{weight:g}", *seen, _auc(by_head), _auc(by_change)])
    return table([*VARIED, "keyframes", "frames", "AUC of the head", "AUC of no change"], rows)


def _profiles(found: Found, cells: Sequence[tuple[float, float]]) -> str:
    rows = []
    for share, weight in cells:
        its = profile(signal(list(_of(found.frames, share, weight).values()), ERROR))
        shown = [f"{its[offset]:.2f}" if offset in its else NOTHING for offset in OFFSETS]
        if its:
            rows.append([f"{share:g}", f"{weight:g}", *shown])
    return table([*VARIED, *(f"{offset:+d}" if offset else "0" for offset in OFFSETS)], rows)


def signal(trainings: Sequence[Mapping[str, Sequence[Sequence[Any]]]], which: int) -> list[dict[str, Frames]]:
    """One error of the frames of `states.StatesReader`, of each training and episode; trainings without it left out."""
    found: list[dict[str, Frames]] = [
        {episode: [(frame[1], frame[which]) for frame in its] for episode, its in one.items()} for one in trainings
    ]
    return [one for one in found if one and all(error is not None for its in one.values() for _, error in its)]


def _auc(found: Auc | None) -> str:
    return NOTHING if found is None else f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _of(of_trainings: Mapping[Training, T], share: float, weight: float) -> dict[int, T]:
    """Training seed -> what there is of its planner."""
    chosen = {t.seed: its for t, its in of_trainings.items() if (t.share, t.weight) == (share, weight)}
    return {seed: its for seed, its in chosen.items() if its}


def _missing(study: HeadStudy, found: Found) -> str:
    """Which planners have fewer episodes of a piece than others."""
    lines = []
    for piece in (replay.PIECE, states.PIECE, PLAY):
        wanted = study.played if piece == PLAY else study.trainings
        n = {training: _number(found, training, piece) for training in wanted}
        most = max(n.values())
        shares = [share for share in dict.fromkeys(t.share for t in n) if not any(n[t] for t in n if t.share == share)]
        fewer = [f"all planners of a share of {share:g}" for share in shares if most]
        fewer += [f"{t.name} ({n[t]} of {most} episodes)" for t in n if n[t] < most and t.share not in shares]
        if fewer or not most:
            lines.append(f"- {piece}: {', '.join(fewer) or 'everything'}")
    return "## Missing\n\n" + "\n".join(lines) if lines else ""


def _number(found: Found, training: Training, piece: str) -> int:
    """How many episodes of a piece there are of a planner."""
    if piece == states.PIECE:
        return len(found.frames[training])
    return sum(key[0] == piece for key in found.counts[training])


def _each_once(made: Any) -> list[tuple[str, str]]:
    named = [(f"{str(code)[:7]}{' with changes' if dirty else ''}", cpu) for code, dirty, cpu in made]
    return list(dict.fromkeys(named))
