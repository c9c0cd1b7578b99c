"""`predimem data plot`: one episode of the arena over time, to see where its keyframes come from.

From top to bottom: the subtasks, the speed of the TCP with the threshold of Eq. 3, the opening of the gripper with
that of Eq. 2, the frames that the equations flag, one lane for each reason, and images at keyframes. The
keyframes, which are the onsets of runs of flagged frames, go through all of it as vertical lines.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datagen.export.arena_state import DIM, OPENING, POSITION
from datagen.inspect.statistics import memory_of_spans
from datagen.keyframes import KeyframeConfig, gripper_transitions, kinematic_inflections, velocities
from predimem.core.config import from_dict
from predimem.core.episodes import Episode
from predimem.core.files import AtomicWrite

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CAMERA = "agentview_rgb"
IMAGES = 9
WIDTH_IN, HEIGHT_IN, DPI = 10.0, 6.2, 160
LETTER_IN, LINES = 0.062, 4  # of a label in a subtask's band
INK, FAINT = "#1b1d22", "#70757e"
CAPTION = (
    "Marks: all flagged frames (gripper: Eq. 2; slow, turn: Eq. 3), by control step. Lines and images: keyframes, "
    "the onsets of\nruns of flagged frames, in the colour of what happens in the run."
)
PLAIN, REMEMBERED = ("#e4e8ee", "#f1f3f6"), ("#f6c65b", "#fadb96")  # bands, alternating; dark on light in grey as well


@dataclass(frozen=True)
class Kind:
    """Why a frame is flagged. Colours of Okabe and Ito, told apart by the colour-blind; marks differ in shape too."""

    name: str
    colour: str
    mark: str
    flagged: np.ndarray


def flagged_kinds(episode: Episode, config: KeyframeConfig) -> tuple[Kind, ...]:
    """The frames that Eq. 2 and the two halves of Eq. 3 flag, bool [T] each, before runs are merged."""
    velocity = velocities(episode.state[:, POSITION], episode.control_hz)
    slow = np.linalg.norm(velocity, axis=1) < config.speed_epsilon_m_s
    closed = episode.state[:, OPENING] < config.gripper_closed_below_m
    turned = kinematic_inflections(velocity, config) & ~slow
    return (
        Kind("gripper", "#d55e00", "v", gripper_transitions(closed)),
        Kind("slow", "#0072b2", "|", slow),
        Kind("turn", "#009e73", "D", turned),
    )


def keyframe_config(path: Path) -> KeyframeConfig:
    """The thresholds that the keyframes of an episode file were found with: of the `config.json` of its data set,
    two folders up; the default ones where there is none. Raises ConfigError if they are faulty."""
    config = path.parent.parent / "config.json"
    noted = json.loads(config.read_text()) if config.is_file() else {}
    return from_dict(KeyframeConfig, noted.get("keyframes", {}), where=f"{config}: keyframes")


def plot_episode(episode: Episode, out: str | Path, config: KeyframeConfig | None = None) -> None:
    """Write the image (the suffix of `out` says which kind, such as .png), atomically.

    config: the thresholds that the keyframes were found with. Raises ValueError for an episode whose state is not
    the arena's, or a kind of image that cannot be written.
    """
    from matplotlib.figure import Figure

    if episode.state.shape[1] != DIM:
        raise ValueError(
            f"only episodes of the arena can be plotted, which have a state of {DIM} numbers; "
            f"{episode.task} seed {episode.seed} has {episode.state.shape[1]}"
        )
    out = Path(out)
    figure = Figure((WIDTH_IN, HEIGHT_IN), dpi=DPI)
    if out.suffix[1:] not in figure.canvas.get_supported_filetypes():
        raise ValueError(f"cannot write {out.suffix or 'an image without a suffix'}: give --out a name such as x.png")
    draw(figure, episode, config or KeyframeConfig())
    with AtomicWrite(out, f".partial{out.suffix}") as partial:
        figure.savefig(partial)


def draw(figure: Figure, episode: Episode, config: KeyframeConfig) -> None:
    grid = figure.add_gridspec(
        5, 1, height_ratios=(0.9, 1.7, 1.0, 0.75, 1.75), hspace=0.09, left=0.1, right=0.945, top=0.87, bottom=0.085
    )
    bands = figure.add_subplot(grid[0])
    speed, gripper, lanes = (figure.add_subplot(grid[row], sharex=bands) for row in (1, 2, 3))
    kinds = flagged_kinds(episode, config)
    _head(figure, episode)
    _draw_bands(bands, (speed, gripper), episode)
    _draw_speed(speed, episode, config)
    _draw_gripper(gripper, episode, config)
    _draw_lanes(lanes, kinds)
    for step in episode.keyframes:
        for axes in (speed, gripper, lanes):
            axes.axvline(step, color=_colour_of(kinds, step), linewidth=1.1, alpha=0.75, zorder=1.5)
    bands.set_xlim(0, len(episode))
    _draw_images(figure, grid[4], lanes, episode, kinds)


def spread_out(steps: Sequence[int], length: int, count: int) -> list[int]:
    """At most `count` of the steps, over the whole episode: those next to evenly spaced ones."""
    left = sorted(steps)
    chosen = []
    for wanted in (np.arange(min(count, len(left))) + 0.5) * length / max(count, 1):
        chosen.append(min(left, key=lambda step: abs(step - wanted)))
        left.remove(chosen[-1])
    return sorted(chosen)


def _head(figure: Figure, episode: Episode) -> None:
    seconds = len(episode) / episode.control_hz
    outcome = "" if episode.success else ", failed"
    title = f"{episode.task}, seed {episode.seed}: {len(episode)} steps, {seconds:.0f} s, "
    title += f"{len(episode.subtasks)} subtasks, {len(episode.keyframes)} keyframes{outcome}"
    figure.text(0.012, 0.972, title, fontsize=11, fontweight="bold", color=INK, va="top")
    words = textwrap.shorten(episode.instruction, 150, placeholder=" …")
    figure.text(0.012, 0.928, words, fontsize=8.5, color=FAINT, va="top")
    figure.text(0.012, 0.012, CAPTION, fontsize=7.5, color=FAINT, va="bottom")


def _draw_bands(bands: Axes, others: Sequence[Axes], episode: Episode) -> None:
    """Subtask spans; what depends on memory is amber and says why."""
    memory = memory_of_spans(episode) or ("",) * len(episode.subtasks)
    inch_per_step = WIDTH_IN * 0.845 / len(episode)
    for i, (span, reason) in enumerate(zip(episode.subtasks, memory, strict=True)):
        colour = (REMEMBERED if reason else PLAIN)[i % 2]
        bands.axvspan(span.start, span.end, color=colour, linewidth=0)
        for axes in others:
            axes.axvspan(span.start, span.end, color=colour, linewidth=0, alpha=0.35, zorder=0)
        middle = (span.start + span.end) / 2
        wide_in = (span.end - span.start) * inch_per_step
        label, upright = _fitted(span.label, wide_in)
        look: dict[str, Any] = {"ha": "center", "color": INK, "clip_on": True}
        height = 0.5 if upright or not reason else 0.6
        bands.text(middle, height, label, fontsize=8, va="center", rotation=90 * upright, linespacing=1.0, **look)
        if reason and not upright and wide_in > LETTER_IN * len(reason):
            bands.text(middle, 0.05, reason, fontsize=7, va="bottom", style="italic", **look)
    bands.set_ylim(0, 1)
    bands.set_yticks([])
    bands.tick_params(bottom=False, labelbottom=False)
    bands.set_ylabel("subtask", rotation=0, ha="right", va="center", fontsize=8.5, color=INK)
    if any(memory):
        bands.set_title("amber: depends on memory", fontsize=8.5, color="#9a6a00", loc="right", pad=2)
    _plain(bands)


def _fitted(label: str, wide_in: float) -> tuple[str, bool]:
    """The label in lines that fit a band, and whether it has to stand upright instead."""
    letters = int(wide_in / LETTER_IN)
    lines = textwrap.wrap(label, letters, break_long_words=False) if letters > 0 else []
    if lines and len(lines) <= LINES and max(map(len, lines)) <= letters:
        return "\n".join(lines), False
    shortest = 13
    lines = textwrap.wrap(label, shortest, max_lines=max(1, int(wide_in / 0.12)), placeholder="…")
    return "\n".join(lines), True


def _draw_speed(axes: Axes, episode: Episode, config: KeyframeConfig) -> None:
    speed = np.linalg.norm(velocities(episode.state[:, POSITION], episode.control_hz), axis=1)
    axes.plot(speed, color=INK, linewidth=1.0)
    _threshold(axes, config.speed_epsilon_m_s, f"ε = {config.speed_epsilon_m_s:g}")
    axes.set_ylim(0, max(float(speed.max()), 2 * config.speed_epsilon_m_s) * 1.06)
    _label(axes, "TCP speed\nm/s")


def _draw_gripper(axes: Axes, episode: Episode, config: KeyframeConfig) -> None:
    opening_cm = 100 * episode.state[:, OPENING]
    axes.plot(opening_cm, color=INK, linewidth=1.0)
    _threshold(axes, 100 * config.gripper_closed_below_m, "closed\nbelow")
    axes.set_ylim(0, max(float(opening_cm.max()), 8.0) * 1.1)
    _label(axes, "gripper\ncm")


def _draw_lanes(axes: Axes, kinds: Sequence[Kind]) -> None:
    """A mark for each frame that is flagged."""
    for row, kind in enumerate(kinds):
        steps = np.flatnonzero(kind.flagged)
        size = 34 if kind.mark == "|" else 16
        axes.scatter(steps, np.full(len(steps), -row), s=size, marker=kind.mark, color=kind.colour, linewidths=0.8)
    axes.set_ylim(0.6 - len(kinds), 0.6)
    axes.set_yticks([-row for row in range(len(kinds))], [kind.name for kind in kinds], fontsize=8.5)
    for tick, kind in zip(axes.get_yticklabels(), kinds, strict=True):
        tick.set_color(kind.colour)
    axes.tick_params(length=0, labelsize=8.5)
    axes.tick_params(axis="x", length=2.5, pad=2)
    for tick in axes.get_xticklabels():
        tick.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.8})
    _plain(axes, bottom=True)


def _draw_images(figure: Figure, cell: Any, lanes: Axes, episode: Episode, kinds: Sequence[Kind]) -> None:
    from matplotlib.patches import ConnectionPatch

    camera = CAMERA if CAMERA in episode.images else next(iter(episode.images), "")
    steps = spread_out(episode.keyframes, len(episode), IMAGES)
    if not camera or not steps:
        return
    strip = cell.subgridspec(1, IMAGES, wspace=0.05)
    for column, step in enumerate(steps):
        axes = figure.add_subplot(strip[column + (IMAGES - len(steps)) // 2])
        axes.imshow(episode.images[camera][step], aspect="equal", interpolation="lanczos")
        axes.set_anchor("S")
        axes.set_xticks([])
        axes.set_yticks([])
        colour = _colour_of(kinds, step)
        for spine in axes.spines.values():
            spine.set(color=colour, linewidth=1.6)
        axes.set_xlabel(f"{step}", fontsize=8.5, color=colour, labelpad=2)
        figure.add_artist(
            ConnectionPatch(
                (step, 0.6 - len(kinds)), (0.5, 1.0), "data", "axes fraction", axesA=lanes, axesB=axes,
                color=colour, linewidth=0.9, alpha=0.75, zorder=0,
            )
        )  # fmt: skip


def _colour_of(kinds: Sequence[Kind], keyframe: int) -> str:
    """Of the first kind that flags a frame of the run that begins with the keyframe."""
    rest = np.any([kind.flagged for kind in kinds], axis=0)[keyframe:]
    end = keyframe + (len(rest) if rest.all() else int(rest.argmin()))
    order = (kinds[0], kinds[2], kinds[1])  # in runs that are slow anyway, a change of the gripper says more
    return next((kind.colour for kind in order if kind.flagged[keyframe:end].any()), FAINT)


def _threshold(axes: Axes, value: float, words: str) -> None:
    axes.axhline(value, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.text(1.006, value, words, fontsize=7.5, color=FAINT, va="center", transform=axes.get_yaxis_transform())


def _label(axes: Axes, words: str) -> None:
    axes.set_ylabel(words, rotation=0, ha="right", va="center", fontsize=8.5, color=INK, labelpad=6)
    axes.tick_params(labelsize=8, length=2.5)
    axes.tick_params(axis="x", bottom=False, labelbottom=False)
    _plain(axes)


def _plain(axes: Axes, bottom: bool = False) -> None:
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom" and bottom)
