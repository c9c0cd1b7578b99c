"""Draws the keyframe states of planners: the first two principal components, coloured by subtask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.planner_head import states
from benchmarks.planner_head.config import HeadStudy
from benchmarks.planner_head.figures import read_lines

MANY_LABELS = 20  # more than there are colours: then kinds of subtasks are told apart, by their first words
PANEL_IN, DPI = 3.2, 130


def draw_states(study: HeadStudy) -> list[Path]:
    """One PNG for each share of the demonstrations that has states: a row for each weight, a column for each seed."""
    lines = read_lines(Path(study.out) / states.PIECE / "episodes.jsonl")
    of_planner: dict[str, dict[str, Any]] = {}
    for line in lines:
        of_planner.setdefault(line["training"], {})[line["episode"]] = line["keyframes"]
    drawn = []
    for share in study.training_shares:
        its = {t: of_planner[t.name].values() for t in study.trainings if t.share == share and t.name in of_planner}
        points = {t: [keyframe for episode in episodes for keyframe in episode] for t, episodes in its.items()}
        points = {t: keyframes for t, keyframes in points.items() if keyframes}
        if points:
            drawn.append(Path(study.out) / f"states-share-{share:g}.png")
            _draw(study, points, drawn[-1])
    return drawn


def principal_components(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """([N, 2], the shares of the variance of the two) of vectors [N, D], D at least 2; the shares are 0 where all are
    the same."""
    centred = vectors - vectors.mean(0)
    _, scales, directions = np.linalg.svd(centred, full_matrices=False)
    scales, directions = np.append(scales, 0.0)[:2], directions[:2]
    projected = np.zeros((len(vectors), 2))
    projected[:, : len(directions)] = centred @ directions.T
    return projected, scales**2 / max(float(np.square(centred).sum()), 1e-12)


def coloured_by(labels: list[str]) -> list[str]:
    """Labels as they are told apart by colours: as they are, or their first words where they are too many."""
    return labels if len(set(labels)) <= MANY_LABELS else [label.split()[0] for label in labels]


def _draw(study: HeadStudy, points: dict[Any, list[Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    every = [subtask for keyframes in points.values() for _, subtask, _ in keyframes]
    names = sorted(set(coloured_by(every)))
    shown = dict(zip(every, coloured_by(every), strict=True))
    colours = {name: pyplot.get_cmap("tab20")(i % MANY_LABELS) for i, name in enumerate(names)}
    weights, seeds = sorted({t.weight for t in points}), sorted({t.seed for t in points})
    size = (PANEL_IN * len(seeds) + 1.8, PANEL_IN * len(weights))
    figure, axes = pyplot.subplots(len(weights), len(seeds), figsize=size, squeeze=False, layout="constrained")
    for axis in axes.flat:
        axis.set_axis_off()
    for training, keyframes in points.items():
        axis = axes[weights.index(training.weight)][seeds.index(training.seed)]
        axis.set_axis_on()
        projected, shares = principal_components(np.array([state for _, _, state in keyframes]))
        axis.scatter(*projected.T, s=9, c=[colours[shown[subtask]] for _, subtask, _ in keyframes], linewidths=0)
        axis.set_title(f"weight {training.weight:g}, seed {training.seed}", fontsize=9)
        axis.set_xlabel(f"{100 * shares[0]:.0f} % of the variance", fontsize=8)
        axis.set_ylabel(f"{100 * shares[1]:.0f} %", fontsize=8)
        axis.set(xticks=[], yticks=[])
    marks = [Line2D([], [], marker="o", ls="", ms=4, color=colours[name], label=name) for name in names]
    figure.legend(handles=marks, loc="outside right upper", fontsize=7, frameon=False)
    figure.savefig(path, dpi=DPI)
    pyplot.close(figure)
