"""The benchmark of memory under interference as a `predimem.envs.benchmark.Benchmark`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from predimem.core.interfaces import Environment
from predimem.envs.arena import suite
from predimem.envs.benchmark import Benchmark, EnvironmentOptions, EnvironmentRequest, Experts
from predimem.envs.interference.conditions import CONDITIONS, KINDS, Condition, condition_of
from predimem.envs.interference.environment import InterferenceEnvironment
from predimem.envs.interference.families import FAMILIES, Family, family_of
from predimem.envs.interference.sessions import VERSION, SessionPool
from predimem.rendering.vulkan import use_driver

CONFIG = "configs/eval/interference.yaml"


@dataclass(frozen=True)
class InterferenceOptions(EnvironmentOptions):
    """sessions: the folder in which recorded sessions are kept; what is missing there is recorded.

    pool: how many recorded sessions of each value there are to draw from. image_px: the width and height of images.
    """

    sessions: str = "runs/interference/sessions"
    pool: int = 8
    image_px: int = 128

    def __post_init__(self) -> None:
        if self.pool < 1:
            raise ValueError(f"pool has to be at least 1, got {self.pool}")


class InterferenceBenchmark(Benchmark):
    """A task is `<family>-<condition>`, such as `drawer-k7`."""

    name = "interference"
    config = CONFIG
    options = InterferenceOptions
    experts = Experts(policies={"skills": "datagen.experts.interference:skills"})
    long_episodes = True
    heeds_requests = True
    environments_kept = 1

    def __init__(self) -> None:
        self._pools: dict[tuple[str, int], SessionPool] = {}

    def version(self) -> str:
        return f"interference {VERSION}, {suite.benchmark_version()}"

    def all_tasks(self) -> tuple[str, ...]:
        return tuple(f"{family}-{condition}" for condition in CONDITIONS for family in FAMILIES)

    def in_conditions(self, tasks: Sequence[str], conditions: Sequence[str]) -> tuple[str, ...]:
        """tasks: families."""
        families = [family_of(name).name for name in tasks] or list(FAMILIES)
        return tuple(f"{family}-{condition_of(name).name}" for name in conditions for family in families)

    def describe(self, task: str) -> str:
        family, condition = parse(task)
        distractors = f"{condition.k} {KINDS[condition.kind]}" if condition.k else "the lesson alone"
        return f"{family.remember}; {distractors if condition.lesson else 'no history'}"

    def task_name(self, task: str) -> str:
        family, condition = parse(task)
        return f"{family.name}-{condition.name}"

    def make_environment(self, task: str, options: InterferenceOptions, request: EnvironmentRequest) -> Environment:
        family, condition = parse(task)
        control_mode = "pd_joint_pos" if request.privileged else "pd_ee_delta_pose"
        key = (options.sessions, options.image_px)
        sessions = self._pools.setdefault(key, SessionPool(*key))
        return InterferenceEnvironment(family, condition, sessions, options.pool, control_mode, options.image_px)

    def subtasks(self, task: str) -> Sequence[str]:
        """What a planner may answer."""
        return parse(task)[0].answers

    def horizon(self, task: str) -> int:
        return max(test.horizon for test in parse(task)[0].tests)

    def categories(self, tasks: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """By condition: the same families with other histories."""
        found: dict[str, list[str]] = {}
        for task in tasks:
            found.setdefault(parse(task)[1].name, []).append(self.task_name(task))
        return found

    def prepare(self, images: bool) -> None:
        """Sessions are recorded with images, whether agents look or not. Raises VulkanError without a renderer."""
        use_driver()


def parse(task: str) -> tuple[Family, Condition]:
    """Raises ValueError for a task that is not `<family>-<condition>`."""
    family, _, condition = task.partition("-")
    if not condition:
        raise ValueError(
            f"unknown task {task!r}; expected <family>-<condition>, such as drawer-k7; families: "
            f"{', '.join(FAMILIES)}; conditions: {', '.join(CONDITIONS)}"
        )
    return family_of(family), condition_of(condition)


INTERFERENCE = InterferenceBenchmark()
