"""Prints docs/arena-tasks.md, a table of the declared tasks: `python -m predimem.envs.arena.tasks`."""

from __future__ import annotations

from collections import Counter

from predimem.envs.arena.task import CATEGORIES, Task, memory_ratio
from predimem.envs.arena.tasks import TASKS

PAPER_MEMORY_SUBTASKS, PAPER_SUBTASKS = 104, 151  # RoboMemArena (arXiv:2605.10921), §10

PAGE = """# The tasks of the arena

Made by `python -m predimem.envs.arena.tasks > docs/arena-tasks.md` from the files in `predimem/envs/arena/tasks/`;
not to be edited by hand. Ids, titles, categories and subtask labels are those released with RoboMemArena; what stands
behind a colon in a label is ours: the target, where the words leave it open.

{counts}.

The seed of an episode draws one of the task's variants, all equally likely, and the positions. What is marked "told"
is named in the instruction; everything else the robot has to find out by itself. Each subtask is one stage, and stages
pass in order. The horizon is in control steps at 20 Hz.

## Which subtasks depend on memory

The rubric is the paper's (section 10): a subtask depends on memory if what decides it is not to be seen when it
begins, so that it has to come from earlier observations or from what was done before.

- **occlusion**: what decides is shut in a drawer, or in the microwave, whose left half the cameras hardly see even
  when it is open. What lies in an open drawer, in a basket, on a plate or in the pan counts as seen.
- **counting**: how often it was poured. The image is the same before the first pour, between the two and after the
  second, so both pours and the subtask after them depend on it.
- **transferring**: which of two identical containers is the source. Nothing on them tells.
- **sequence**: the outcome of an earlier step: which basket was the marked one, when the first object covers the mark,
  or that it was poured, when the image is again as it was at first.

The first subtask never depends on memory. Of a drawer search, opening and closing the first drawer do not; the other 7
of its 9 subtasks do, as in the paper.

**{memory} of {total} subtasks depend on memory ({share:.1%}); the paper says {paper_memory} of {paper_total}
({paper_share:.1%}).**

Ours sums over the {total} labels that were released, not over {paper_total}, and the paper does not publish its
decisions one by one. Ours is lower because a subtask is not counted where the scene shows what is needed: the three
tasks that fill the middle drawer, which stays open, have none.

It can be argued either way in the transferring tasks and with the baskets: the objects stay in sight there, so that a
policy that knows the order by heart could also infer the source from what has been moved, and the basket from what
lies in it. Without these {arguable} it is {strict} of {total} ({strict_share:.1%}).

## All tasks

| id | title | Gymnasium id | category | variants | stages | memory-dependent | what has to be remembered | horizon |
|---|---|---|---|---|---|---|---|---|
{rows}

## Stages

Of each task's first variant; in the others the names of drawers differ. In brackets why a subtask depends on memory.

{stages}
"""


def page() -> str:
    """The whole page, in Markdown."""
    categories = Counter(task.category for task in TASKS)
    memory, total = memory_ratio(TASKS)
    inferable = [t for t in TASKS if t.category == "transferring" or "basket_left" in t.fixtures]
    arguable = memory_ratio(tuple(inferable))[0]
    return PAGE.format(
        counts=f"{len(TASKS)} tasks: " + ", ".join(f"{categories[c]} {c}" for c in CATEGORIES),
        memory=memory,
        total=total,
        share=memory / total,
        paper_memory=PAPER_MEMORY_SUBTASKS,
        paper_total=PAPER_SUBTASKS,
        paper_share=PAPER_MEMORY_SUBTASKS / PAPER_SUBTASKS,
        arguable=arguable,
        strict=memory - arguable,
        strict_share=(memory - arguable) / total,
        rows="\n".join(_row(task) for task in TASKS),
        stages="\n".join(_stages(task) for task in TASKS),
    )


def _row(task: Task) -> str:
    reasons = Counter(s.memory for s in task.variants[0].subtasks if s.memory)
    cells = (
        task.task_id,
        task.title,
        f"`{task.env_id}`",
        task.category,
        f"{len(task.variants)}: {task.drawn}" if task.drawn else "1",
        task.stages,
        ", ".join(f"{n} {reason}" for reason, n in reasons.items()) or "none",
        task.remember or "nothing: it stays in sight",
        task.horizon,
    )
    return f"| {' | '.join(map(str, cells))} |"


def _stages(task: Task) -> str:
    """One line: the subtasks of the first variant, with the reason of those that depend on memory."""
    labels = (f"{s.label} ({s.memory})" if s.memory else s.label for s in task.variants[0].subtasks)
    return f"- **{task.task_id}** “{task.variants[0].instruction}” → {' → '.join(labels)}"


if __name__ == "__main__":
    print(page(), end="")
