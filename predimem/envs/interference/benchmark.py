"""The benchmark of memory under interference as a `predimem.envs.benchmark.Benchmark`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from predimem.core.interfaces import Environment
from predimem.core.suggestions import did_you_mean
from predimem.envs.arena import suite
from predimem.envs.benchmark import Benchmark, EnvironmentOptions, EnvironmentRequest, Experts
from predimem.envs.interference.conditions import CONDITIONS, KINDS, NEWER, OLDER, Condition, condition_of
from predimem.envs.interference.environment import InterferenceEnvironment
from predimem.envs.interference.families import FAMILIES, Family
from predimem.envs.interference.sessions import VERSION, SessionPool
from predimem.envs.interference.videos import FAMILIES as VIDEO_TASKS
from predimem.envs.interference.videos import VERSION as VIDEO_VERSION
from predimem.envs.interference.videos import VIDEO_EVERY, VideoInterferenceEnvironment, VideoPool
from predimem.envs.robomme import package
from predimem.envs.robomme.suite import Rendering, RobommeEnvironment
from predimem.rendering.vulkan import use_driver

CONFIG = "configs/eval/interference.yaml"
EXPERTS = "datagen.experts.interference"


@dataclass(frozen=True)
class InterferenceOptions(EnvironmentOptions):
    """sessions: the folder in which recorded sessions are kept; what is missing there is recorded.

    pool: how many recorded sessions of each value, or videos of each of RoboMME's tasks, there are to draw from.
    image_px: the width and height of images. rendering: of RoboMME's tasks, as in the benchmark `robomme`.
    """

    sessions: str = "runs/interference/sessions"
    pool: int = 8
    image_px: int = 128
    rendering: Rendering = "fast"

    def __post_init__(self) -> None:
        if self.pool < 1:
            raise ValueError(f"pool has to be at least 1, got {self.pool}")


class InterferenceBenchmark(Benchmark):
    """A task is `<family>-<condition>`, such as `drawer-k7`.

    A family is one of the arena's, or a task of RoboMME with a conditioning video. Those have to be named, and need
    RoboMME's package.
    """

    name = "interference"
    config = CONFIG
    options = InterferenceOptions
    experts = Experts(policies={"skills": f"{EXPERTS}:skills"}, subtask=f"{EXPERTS}:true_subtask")
    long_episodes = True
    heeds_requests = True
    environments_kept = 1

    def __init__(self) -> None:
        self._pools: dict[tuple[str, int], SessionPool] = {}
        self._videos: dict[tuple[str, int, Rendering], VideoPool] = {}

    def version(self) -> str:
        """With RoboMME's where it is installed: an evaluation that was begun without it begins anew."""
        videos = f", videos {VIDEO_VERSION}, {package.own_version()}" if package.is_installed() else ""
        return f"interference {VERSION}, {suite.benchmark_version()}{videos}"

    def all_tasks(self) -> tuple[str, ...]:
        return tuple(f"{family}-{condition}" for condition in CONDITIONS for family in FAMILIES)

    def in_conditions(self, tasks: Sequence[str], conditions: Sequence[str]) -> tuple[str, ...]:
        """tasks: families."""
        families = list(tasks) or list(FAMILIES)
        return tuple(self.task_name(f"{family}-{name}") for name in conditions for family in families)

    def describe(self, task: str) -> str:
        family, condition = parse(task)
        remember = "what RoboMME's video shows" if isinstance(family, str) else family.remember
        distractors = f"{condition.k} {KINDS[condition.kind]}" if condition.k else "the lesson alone"
        return f"{remember}; {distractors if condition.lesson else 'no history'}"

    def task_name(self, task: str) -> str:
        family, condition = parse(task)
        return f"{family if isinstance(family, str) else family.name}-{condition.name}"

    def make_environment(self, task: str, options: InterferenceOptions, request: EnvironmentRequest) -> Environment:
        family, condition = parse(task)
        if isinstance(family, str):
            inner = RobommeEnvironment(family, options.image_px, options.rendering, VIDEO_EVERY)
            where = (options.sessions, options.image_px, options.rendering)
            if where not in self._videos:
                self._videos[where] = VideoPool(*where)
            return VideoInterferenceEnvironment(family, condition, self._videos[where], options.pool, inner)
        control_mode = "pd_joint_pos" if request.privileged else "pd_ee_delta_pose"
        key = (options.sessions, options.image_px)
        if key not in self._pools:
            self._pools[key] = SessionPool(*key)
        return InterferenceEnvironment(
            family, condition, self._pools[key], options.pool, control_mode, options.image_px
        )

    def subtasks(self, task: str) -> Sequence[str] | None:
        """What a planner may answer; of RoboMME's tasks that is not known beforehand."""
        family, _ = parse(task)
        return None if isinstance(family, str) else family.answers

    def horizon(self, task: str) -> int:
        family, _ = parse(task)
        return package.MAX_STEPS if isinstance(family, str) else max(test.horizon for test in family.tests)

    def categories(self, tasks: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """By condition: the same families with other histories."""
        found: dict[str, list[str]] = {}
        for task in tasks:
            found.setdefault(parse(task)[1].name, []).append(self.task_name(task))
        return found

    def prepare(self, images: bool) -> None:
        """Sessions are recorded with images, whether agents look or not. Raises VulkanError without a renderer."""
        use_driver()


def parse(task: str) -> tuple[Family | str, Condition]:
    """(family of the arena, or the name of RoboMME's task; condition). Raises ValueError for a task that is not
    `<family>-<condition>`."""
    families = (*FAMILIES, *VIDEO_TASKS)
    name, _, condition = task.partition("-")
    if not condition:
        raise ValueError(
            f"unknown task {task!r}; expected <family>-<condition>, such as drawer-k7; families: "
            f"{', '.join(families)}; conditions: {', '.join(CONDITIONS)}"
        )
    if name not in families:
        raise ValueError(f"unknown family {name!r}; there are: {', '.join(families)}{did_you_mean(name, families)}")
    found = condition_of(condition)
    if name in VIDEO_TASKS and found.kind == NEWER:
        raise ValueError(
            f"{task}: a test of RoboMME takes place in the scene of its own video, so that no newer video can count in "
            f"its place; expected another condition, such as k3-{OLDER}"
        )
    return FAMILIES.get(name, name), found


INTERFERENCE = InterferenceBenchmark()
