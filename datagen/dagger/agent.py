"""The runtime in which a planner practises."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from datagen.dagger.config import TRUTH
from memory_bank import MemoryBank
from predimem.agent.baselines import PlannedAgent
from predimem.agent.clock import SimulatedClock
from predimem.agent.config import NO_MEMORY, SCRIPTED, SKILLS
from predimem.agent.dual_system import DualSystemAgent, DualSystemConfig
from predimem.agent.worker import PlannerWorker
from predimem.core.interfaces import Planner, Policy
from predimem.core.weight_files import weights_folder


@dataclass(frozen=True)
class PracticeRuntime:
    """The runtime of an evaluation in which data of practice are made (`datagen.dagger.worker.Runtime`).

    driver: `truth`, or a planner: the folder of its weights, or the name of one that is shipped. hand: `skills`,
    `expert`, or likewise an actor. Raises WeightsError where there are none.
    """

    driver: str
    hand: str = SKILLS

    def __post_init__(self) -> None:
        for name, others in ((self.driver, (TRUTH,)), (self.hand, SCRIPTED)):
            if name not in others:
                _folder(name)

    def planner(self) -> Any:
        if self.driver == TRUTH:
            return None
        return _loaded_planner(_folder(self.driver))

    def policy(self) -> Any:
        if self.hand in SCRIPTED:
            return None
        from actor.policy import load_policy

        return load_policy(_folder(self.hand))

    def agent(self, voice: Planner, policy: Policy, hold: np.ndarray, config: Any) -> PlannedAgent:
        """config: `plan_every_steps` and `s2_latency_steps` of it. The skills answer for the very step."""
        learned = self.planner()
        clock = SimulatedClock(0, config.s2_latency_steps)
        bank = MemoryBank(learned.spec.memory if learned else NO_MEMORY)
        settings = DualSystemConfig(plan_every_steps=config.plan_every_steps)
        still = lambda last: hold if last is None else last  # noqa: E731
        return DualSystemAgent(bank, PlannerWorker(voice, clock), policy, clock, still, settings)


def _folder(name: str) -> Path:
    return Path(name) if Path(name).is_dir() else weights_folder(None, name)


@cache
def _loaded_planner(folder: Path) -> Any:
    from planner.decoding import load_planner

    return load_planner(folder, threads=1)
