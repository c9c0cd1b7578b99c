"""Published figures of MIKASA-Robo, to stand beside ours, and what limits the comparison."""

from __future__ import annotations

from predimem.envs.benchmark import Published, PublishedMeans

PAPER = "MIKASA paper (Cherepanov et al.), Table 4"
NOTE = (
    "Mean ± standard error over 100 episodes; for offline RL over three trainings, with 100 episodes each, on the "
    "suite's RL tasks with sparse rewards. The paper fine-tuned the VLAs on 250 demonstrations of a PPO oracle a "
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

OFFLINE_RL = "MIKASA paper (Cherepanov et al.), offline RL on 32 tasks"
_OFFLINE_METHODS = ("RATE", "Decision Transformer", "behaviour cloning", "CQL", "Diffusion Policy")
# Each method's success and standard error, in the order of _OFFLINE_METHODS.
_OFFLINE_RL: dict[str, tuple[tuple[float, float], ...]] = {
    "ShellGameTouch": ((0.92, 0.01), (0.53, 0.07), (0.28, 0.01), (0.16, 0.04), (0.18, 0.02)),
    "ShellGamePush": ((0.78, 0.06), (0.62, 0.14), (0.27, 0.01), (0.25, 0.01), (0.22, 0.03)),
    "ShellGamePick": ((0.02, 0.01), (0.00, 0.00), (0.01, 0.01), (0.00, 0.00), (0.01, 0.00)),
    "InterceptSlow": ((0.23, 0.02), (0.40, 0.02), (0.37, 0.06), (0.25, 0.01), (0.33, 0.05)),
    "InterceptMedium": ((0.32, 0.02), (0.56, 0.01), (0.31, 0.14), (0.03, 0.01), (0.68, 0.02)),
    "InterceptFast": ((0.30, 0.04), (0.36, 0.04), (0.03, 0.02), (0.02, 0.02), (0.21, 0.05)),
    "InterceptGrabSlow": ((0.09, 0.03), (0.00, 0.00), (0.28, 0.18), (0.03, 0.00), (0.03, 0.01)),
    "InterceptGrabMedium": ((0.09, 0.03), (0.00, 0.00), (0.11, 0.02), (0.08, 0.04), (0.03, 0.01)),
    "InterceptGrabFast": ((0.14, 0.03), (0.11, 0.03), (0.09, 0.02), (0.08, 0.03), (0.18, 0.02)),
    "RotateLenientPos": ((0.11, 0.04), (0.01, 0.01), (0.15, 0.03), (0.16, 0.02), (0.11, 0.02)),
    "RotateLenientPosNeg": ((0.29, 0.03), (0.05, 0.02), (0.22, 0.01), (0.12, 0.02), (0.14, 0.05)),
    "RotateStrictPos": ((0.03, 0.02), (0.05, 0.04), (0.01, 0.00), (0.03, 0.01), (0.06, 0.02)),
    "RotateStrictPosNeg": ((0.08, 0.01), (0.05, 0.03), (0.04, 0.02), (0.04, 0.02), (0.15, 0.01)),
    "TakeItBack": ((0.42, 0.24), (0.08, 0.04), (0.33, 0.10), (0.04, 0.01), (0.05, 0.02)),
    "RememberColor3": ((0.65, 0.04), (0.01, 0.01), (0.27, 0.03), (0.29, 0.01), (0.32, 0.01)),
    "RememberColor5": ((0.13, 0.03), (0.07, 0.05), (0.12, 0.01), (0.15, 0.02), (0.10, 0.02)),
    "RememberColor9": ((0.09, 0.02), (0.01, 0.01), (0.12, 0.02), (0.15, 0.01), (0.17, 0.01)),
    "RememberShape3": ((0.21, 0.04), (0.05, 0.04), (0.31, 0.04), (0.20, 0.10), (0.32, 0.05)),
    "RememberShape5": ((0.17, 0.04), (0.04, 0.04), (0.18, 0.01), (0.15, 0.00), (0.21, 0.04)),
    "RememberShape9": ((0.05, 0.00), (0.05, 0.02), (0.10, 0.02), (0.14, 0.01), (0.11, 0.02)),
    "RememberShapeAndColor3x2": ((0.14, 0.02), (0.04, 0.02), (0.13, 0.02), (0.11, 0.05), (0.14, 0.02)),
    "RememberShapeAndColor3x3": ((0.08, 0.03), (0.06, 0.06), (0.09, 0.02), (0.09, 0.02), (0.16, 0.01)),
    "RememberShapeAndColor5x3": ((0.07, 0.02), (0.01, 0.01), (0.09, 0.01), (0.09, 0.02), (0.11, 0.03)),
}
for _name in ("BunchOfColors", "SeqOfColors", "ChainOfColors"):  # all five methods fail on all of these
    _OFFLINE_RL |= {f"{_name}{size}": ((0.0, 0.0),) * len(_OFFLINE_METHODS) for size in (3, 5, 7)}

MEANS = PublishedMeans(
    (
        Published("Chameleon", 0.751, "as reported by its authors"),
        Published("SimpleMemVLA", 0.740, "as reported by its authors"),
        Published("GMP", 0.678, "as reported by its authors"),
        Published("MemoryVLA", 0.412, "five-task protocol, as reported in the literature"),
        Published("π0", 0.294, "five-task protocol, as reported in the literature"),
    ),
    FIVE_TASK_NOTE,
)


def published(task: str) -> tuple[Published, ...]:
    """Every published result for one task, best first; empty where there is none."""
    name = task.removesuffix("-v0").removesuffix("-VLA")
    rows = []
    if name in FIVE_TASKS:
        column = FIVE_TASKS.index(name)
        rows = [Published(m, cells[column][0], PAPER, cells[column][1]) for m, cells in _TABLE_4.items()]
    for method, (success, sem) in zip(_OFFLINE_METHODS, _OFFLINE_RL.get(name, ()), strict=False):
        rows.append(Published(method, success, OFFLINE_RL, sem))
    return tuple(sorted(rows, key=lambda row: -row.success))
