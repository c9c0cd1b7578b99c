"""Published figures of RoboMME, to stand beside ours, and what limits the comparison."""

from __future__ import annotations

from predimem.envs.benchmark import Published, PublishedMeans

LEADERBOARD = "RoboMME's leaderboard of March 2026 (Dai et al., arXiv:2603.04639)"
NOTE = (
    "Success over the 50 test episodes of a task, several runs of one multi-task model each; 1,300 steps an episode. "
    "All but Human fine-tuned models of billions of parameters on RoboMME's 100 demonstrations of each of its 16 "
    "tasks, on RoboMME's fork of ManiSkill with wrist images of 256 px. Rows with Oracle were told the true subgoal. "
    "Agents of ours with scripted skills know the true poses and are no comparison with learned actors, but with "
    "GroundSG+Oracle, whose actor was told where to reach."
)
TASKS = (
    "BinFill", "PickXtimes", "SwingXtimes", "StopCube", "VideoUnmask", "ButtonUnmask", "VideoUnmaskSwap",
    "ButtonUnmaskSwap", "PickHighlight", "VideoRepick", "VideoPlaceButton", "VideoPlaceOrder", "MoveCube", "InsertPeg",
    "PatternLock", "RouteStick",
)  # fmt: skip

_TABLE: dict[str, tuple[float, ...]] = {
    "Human": (96, 100, 80, 78, 90, 92, 92, 90, 92, 92, 98, 90, 90, 98, 84, 86),
    "GroundSG+Oracle": (
        85.78, 100, 100, 49.67, 98.78, 95, 99.22, 80.22, 83.33, 97.33, 100, 100, 87.78, 15.56, 97, 55.56,
    ),
    "MemER (keyframes)": (
        56.67, 79.33, 59.33, 0, 81.33, 72, 38, 21.33, 70.67, 25.33, 30, 26, 82.67, 6.67, 16.67, 12,
    ),
    "FrameSamp+Modul": (
        39.56, 87.33, 92, 42, 32.67, 25.11, 24.44, 18.22, 22.89, 30.44, 60, 32, 77.78, 7.56, 53.56, 66.67,
    ),
    "FrameSamp+Expert": (
        57.33, 86.22, 94.67, 28.89, 31.78, 25.78, 22.89, 20.22, 19.11, 23.11, 30, 24.22, 83.11, 13.56, 17.11, 2,
    ),
    "TokenDrop+Modul": (
        34.44, 83.56, 86, 5.33, 28.22, 29.33, 28.44, 21.33, 21.33, 22, 59.56, 36, 62, 7.11, 32.44, 51.56,
    ),
    "GroundSG+QwenVL": (
        52, 92.67, 7.33, 0, 88.67, 24, 30.67, 14, 15.11, 25.33, 54, 31.78, 71.56, 3.33, 6.67, 6,
    ),
    "SAM2Act": (40, 76, 25.33, 0, 27.33, 32, 18, 26.67, 17.33, 5.33, 24.67, 20, 29.33, 0, 0, 0),
    "π0.5": (
        30, 42.89, 35.56, 6.67, 20.44, 22.22, 18.67, 6.67, 11.33, 0.44, 31.11, 25.78, 26, 1.56, 2.89, 4.67,
    ),
}  # fmt: skip

MEANS = PublishedMeans(
    (
        Published("SimpleMemVLA (native video)", 0.883, "as reported by its authors"),
        Published("EvoMem-VLA", 0.820, "second-hand"),
        *(
            Published(method, round(sum(cells) / len(cells) / 100, 4), LEADERBOARD)
            for method, cells in sorted(_TABLE.items(), key=lambda row: -sum(row[1]))
        ),
        Published("SimpleMemVLA (retrieval instead of video)", 0.315, "as reported by its authors"),
    ),
    "Mean over all 16 tasks, 50 test episodes each: not directly comparable with a mean over fewer tasks, such as the "
    "one above.",
)


def published(task: str) -> tuple[Published, ...]:
    """Every published result for one task, best first; empty for an unknown task."""
    if task not in TASKS:
        return ()
    column = TASKS.index(task)
    rows = [Published(method, cells[column] / 100, LEADERBOARD) for method, cells in _TABLE.items()]
    return tuple(sorted(rows, key=lambda row: -row.success))
