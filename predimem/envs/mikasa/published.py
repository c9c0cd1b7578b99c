"""Published figures of MIKASA-Robo, to stand beside ours, and what limits the comparison."""

from __future__ import annotations

from predimem.envs.benchmark import Published, PublishedMeans

PAPER = "MIKASA paper (Cherepanov et al.), Table 4"
NOTE = (
    "Mean ± standard error over 100 episodes. The paper fine-tuned on 250 demonstrations of a PPO oracle a "
    "task, with 60 steps an episode and a cue and a gap of 5 steps each in RememberColor (90 steps in the "
    "other two tasks); the suite's -VLA tasks evaluated here have their own horizon and draw the lengths of "
    "cue and gap for each episode."
)
FIVE_TASKS = ("ShellGameTouch", "InterceptMedium", "RememberColor3", "RememberColor5", "RememberColor9")
FIVE_TASK_NOTE = (
    "Mean over five tasks (" + ", ".join(FIVE_TASKS) + "), 100 episodes each: not directly comparable "
    "with a mean over other tasks, such as the one above."
)

_TABLE_4: dict[str, tuple[tuple[float, float], ...]] = {
    "Octo-small": ((0.46, 0.05), (0.39, 0.04), (0.45, 0.06), (0.17, 0.03), (0.11, 0.03)),
    "OpenVLA (K=4)": ((0.12, 0.05), (0.06, 0.02), (0.21, 0.00), (0.09, 0.02), (0.08, 0.02)),
    "OpenVLA (K=8)": ((0.47, 0.05), (0.14, 0.03), (0.59, 0.04), (0.16, 0.03), (0.06, 0.02)),
    "SpatialVLA (K=4)": ((0.23, 0.04), (0.27, 0.04), (0.27, 0.05), (0.17, 0.03), (0.11, 0.03)),
    "π0 (K=4)": ((0.33, 0.05), (0.42, 0.03), (0.35, 0.04), (0.22, 0.04), (0.15, 0.02)),
}

MEANS = PublishedMeans(
    (
        Published("Chameleon", 0.751, "as reported by its authors"),
        Published("SimpleMemVLA", 0.740, "as reported by its authors"),
        Published("MemoryVLA", 0.412, "five-task protocol, as reported in the literature"),
        Published("π0", 0.294, "five-task protocol, as reported in the literature"),
    ),
    FIVE_TASK_NOTE,
)


def published(task: str) -> tuple[Published, ...]:
    """Every published result for one task, best first; empty where there is none."""
    name = task.removesuffix("-v0").removesuffix("-VLA")
    if name not in FIVE_TASKS:
        return ()
    column = FIVE_TASKS.index(name)
    rows = [Published(m, cells[column][0], PAPER, cells[column][1]) for m, cells in _TABLE_4.items()]
    return tuple(sorted(rows, key=lambda row: -row.success))
