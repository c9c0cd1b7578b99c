"""The families that PrediMem knows, and which of them a task belongs to."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from predimem.envs.mikasa.families.blink_count import BLINK_COUNT
from predimem.envs.mikasa.families.family import Family
from predimem.envs.mikasa.families.gather_recall import GATHER_RECALL
from predimem.envs.mikasa.families.intercept import INTERCEPT
from predimem.envs.mikasa.families.take_it_back import TAKE_IT_BACK
from predimem.envs.mikasa.families.timed_transfer import TIMED_TRANSFER
from predimem.envs.mikasa.families.touch_many import BUNCH, CHAIN, SEQ
from predimem.envs.mikasa.families.touch_one import FIND_IMPOSTER, REMEMBER

FAMILIES: tuple[Family, ...] = (
    REMEMBER,
    FIND_IMPOSTER,
    BUNCH,
    SEQ,
    CHAIN,
    INTERCEPT,
    BLINK_COUNT,
    TIMED_TRANSFER,
    GATHER_RECALL,
    TAKE_IT_BACK,
)


@functools.cache
def _by_task() -> Mapping[str, Family]:
    return {task: family for family in FAMILIES for task in family.tasks}


def family_of(task: str) -> Family | None:
    """The family of a task, by its id; None where no script plays it."""
    return _by_task().get(task)
