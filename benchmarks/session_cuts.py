"""How well a history is cut into its sessions where no boundaries were recorded (`memory_bank.retrieval.cut_sessions`).

    python -m benchmarks.session_cuts --out runs/interference/offline

Histories are those of the interference benchmark with seven distractors, as one row of frames. The similarity below
which a cut is made is chosen on sessions of training seeds, and counted on those of evaluation seeds. Writes `cuts.md`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from benchmarks.session_retrieval import made_by
from memory_bank.retrieval.cutting import MOST_ALIKE, cut_sessions
from predimem.core.types import History
from predimem.envs.interference.families import FAMILIES
from predimem.envs.interference.sessions import FIRST_SEEDS
from predimem.evaluation.analysis.metrics import wilson_interval
from predimem.pipelines.interference import EmbeddedPool, embedded_pool

CONDITION = "k7"
TRIED = [round(float(cosine), 2) for cosine in np.arange(-0.9, 0.96, 0.05)]
Row = tuple[np.ndarray, list[int]]  # embeddings without their mean, and where sessions begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", default="runs/interference/sessions")
    parser.add_argument("--out", type=Path, default=Path("runs/interference/offline"))
    parser.add_argument("--episodes", type=int, default=40, help="histories of each family")
    parser.add_argument("--pool", type=int, default=8, help="recorded sessions of each value, evaluation")
    parser.add_argument("--training-pool", type=int, default=10, help="the same of those that the cosine is chosen on")
    parser.add_argument("--image-px", type=int, default=128)
    given = parser.parse_args()
    torch.set_num_threads(1)
    training = embedded_pool(given.sessions, given.image_px, given.training_pool, "training")
    mean = training.all_frames().mean(0)
    chosen_on = rows_of(training, mean, FIRST_SEEDS["training"] + 9_000, given.episodes)
    cosine = max(TRIED, key=lambda tried: f1(*counted(chosen_on, tried)))
    pool = embedded_pool(given.sessions, given.image_px, given.pool, "evaluation")
    asked = rows_of(pool, mean, FIRST_SEEDS["evaluation"], given.episodes)
    given.out.mkdir(parents=True, exist_ok=True)
    lines = ["| Cosine | Boundaries | Found, % | Cuts | Right, % |", "| ---: | ---: | ---: | ---: | ---: |"]
    lines += [line(tried, *counted(asked, tried)) for tried in sorted({cosine, MOST_ALIKE})]
    text = "\n".join(lines) + f"\n\nChosen on training seeds: {cosine}. {made_by()}\n"
    (given.out / "cuts.md").write_text(text)
    print(text)


def rows_of(pool: EmbeddedPool, mean: np.ndarray, first_seed: int, episodes: int) -> list[Row]:
    histories = [
        pool.history(family, CONDITION, first_seed + i)[0] for family in FAMILIES.values() for i in range(episodes)
    ]
    return [row_of(history, mean) for history in histories]


def row_of(history: History, mean: np.ndarray) -> Row:
    embeddings = [session.embeddings for session in history.sessions if session.embeddings is not None]
    starts = np.cumsum([0, *(len(of_one) for of_one in embeddings)])[:-1].tolist()
    return np.concatenate(embeddings) - mean, starts


def counted(rows: Sequence[Row], cosine: float) -> tuple[int, int, int]:
    """(boundaries between sessions, cuts, cuts that are at a boundary)"""
    boundaries = cuts = right = 0
    for embeddings, starts in rows:
        true, made = set(starts[1:]), {cut.start for cut in cut_sessions(embeddings, most_alike=cosine)} - {0}
        boundaries, cuts, right = boundaries + len(true), cuts + len(made), right + len(true & made)
    return boundaries, cuts, right


def f1(boundaries: int, cuts: int, right: int) -> float:
    return 2 * right / max(1, boundaries + cuts)


def line(cosine: float, boundaries: int, cuts: int, right: int) -> str:
    shares = []
    for n in (boundaries, cuts):
        low, high = wilson_interval(right, n)
        shares.append(f"{100 * right / max(1, n):.1f} [{100 * low:.0f}, {100 * high:.0f}]")
    return f"| {cosine} | {boundaries} | {shares[0]} | {cuts} | {shares[1]} |"


if __name__ == "__main__":
    main()
