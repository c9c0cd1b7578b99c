"""The memory of a task: which stages have been passed and how often was poured, in N worlds at once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from predimem.envs.arena.predicates import POUR_STEPS, UPRIGHT_COS, Poured
from predimem.envs.arena.task import Task, Variant
from predimem.envs.arena.world import World

if TYPE_CHECKING:
    import torch
    from torch import Tensor

LOST_M = -0.10  # an object below the table top cannot be had back

FAILURES = ("", "a pour that was not due", "an object fell off the table")


@dataclass(eq=False)
class Progress:
    """How far N worlds are; all fields are int64 [N].

    variant: the hidden state.
    stage: how many stages were passed, in their order.
    pours: how many pours there were so far.
    tilt_steps: for how long the bottle has been pouring.
    tilted: 1 from a pour until the bottle is upright again.
    failure: the index into `FAILURES`.
    clipped: how many actions were outside the limits.
    """

    variant: Tensor
    stage: Tensor
    pours: Tensor
    tilt_steps: Tensor
    tilted: Tensor
    failure: Tensor
    clipped: Tensor

    @classmethod
    def fresh(cls, n: int, device: torch.device | str = "cpu") -> Progress:
        import torch

        return cls(*(torch.zeros(n, dtype=torch.int64, device=device) for _ in fields(cls)))

    def reset(self, index: Tensor, variant: Tensor) -> None:
        """Begin new episodes in the worlds `index`, with the hidden states `variant`."""
        for entry in fields(self):
            getattr(self, entry.name)[index] = 0
        self.variant[index] = variant.to(self.variant)

    def advance(self, task: Task, world: World, waiting: bool = False) -> None:
        """One control step: count pours, pass the stage that is due where its predicate holds.

        waiting: the robot has to wait, so that no stage passes.
        """
        import torch

        self._count_pours(task, world)
        passed = torch.zeros_like(self.stage)
        for v, k in set(zip(self.variant.tolist(), self.stage.tolist(), strict=True)):
            if k < task.stages and not waiting:
                due = (self.variant == v) & (self.stage == k)
                passed += (due & task.variants[v].subtasks[k].done(world)).long()
        self.stage += passed
        height = torch.stack([world.position_m[name][:, 2] for name in task.objects])
        self._fail((height < LOST_M).any(dim=0), 2)

    def stages(self, task: Task, world: World) -> Tensor:
        """bool [N, K]: the stages that were passed and have not been undone since."""
        import torch

        standing = self.stage[:, None] > torch.arange(task.stages, device=self.stage.device)
        for v in set(self.variant.tolist()):
            mine = self.variant == v
            for k, lasting in enumerate(task.variants[v].lasting):
                if lasting is not None:
                    standing[:, k] &= ~mine | lasting(world)
        return standing

    def _count_pours(self, task: Task, world: World) -> None:
        for v in set(self.variant.tolist()):
            variant = task.variants[v]
            if variant.pour is None:
                continue
            mine = self.variant == v
            upright = mine & (world.upright(variant.pour.object) >= UPRIGHT_COS)
            self.tilted.masked_fill_(upright, 0)
            self.tilt_steps.masked_fill_(upright, 0)
            if bool((upright == mine).all()):
                continue
            pouring = mine & variant.pour(world)
            self.tilt_steps += pouring.long()
            self.tilt_steps.masked_fill_(mine & ~pouring, 0)
            poured = pouring & (self.tilt_steps >= POUR_STEPS) & (self.tilted == 0)
            self.tilted.masked_fill_(poured, 1)
            self.pours += poured.long()
            self._fail(poured & ~self._pour_due(variant), 1)

    def _pour_due(self, variant: Variant) -> Tensor:
        """bool [N]: the stage that is due is the pour that was just counted."""
        due = self.stage < 0  # nowhere
        for k, subtask in enumerate(variant.subtasks):
            if isinstance(subtask.done, Poured):
                due |= (self.stage == k) & (self.pours == subtask.done.times)
        return due

    def _fail(self, where: Tensor, reason: int) -> None:
        if bool(where.any()):
            self.failure[where & (self.failure == 0)] = reason
