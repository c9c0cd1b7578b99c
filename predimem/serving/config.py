"""What `predimem serve` reads: models, robot, time, limits and access. The defaults serve the shipped weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, ClassVar, Literal

from actor.engine.config import EngineConfig
from memory_bank.store import Retention, is_address
from planner.caches import CacheConfig
from planner.endpoint import EndpointConfig
from predimem.agent.clock import TimeConfig
from predimem.agent.config import INSTRUCTION, check_actor_options, is_remote
from predimem.agent.dual_system import DualSystemConfig
from predimem.core.own_code import is_place
from predimem.core.placement import Placement
from predimem.serving.known_tasks import TasksConfig
from predimem.serving.limits import LimitsConfig
from predimem.serving.robot import RobotConfig

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class ModelsConfig:
    """Which models are served.

    weights: a folder with the folders that `planner` and `actor` name; null: the shipped ones.
    planner, actor: names of folders of weights, or their paths. The actor may be a server of openpi's protocol
    (`ws://host:port`), which `actor_options` say how to ask (`actor.remote.RemoteConfig`). The planner `instruction`
    stands for none; the subtask is then the whole task.
    device: where both run (`cpu`, `cuda`, ...).
    planner_on, actor_on: where one of them runs in place of `device`, and with how many bits, such as
    `{device: "cuda:1", dtype: bfloat16}`.
    planner_endpoint: an OpenAI-compatible server that serves the planner, such as `{url: "http://localhost:8000/v1"}`
    (`planner.endpoint.EndpointConfig`). The planner's folder is then read for all but its weights.
    constrained: the planner's answers are kept to the JSON asked for, and to the subtasks that it was trained to name.
    A planner that is the place of your own code (`my_planner.py:MyPlanner`) is called with `planner_options`.
    seed: of S1's noise.
    memory, prompt: what differs from those that the planner was trained with, as in an agent config.
    engine: how the actor's model is run (`actor.engine.config`).
    planner_caches: how much the planner remembers between its answers, to save time (`planner.caches`).
    """

    weights: str | None = None
    planner: str = "planner"
    planner_options: dict[str, Any] = field(default_factory=dict)
    actor: str = "actor"
    actor_options: dict[str, Any] = field(default_factory=dict)
    device: str = "cpu"
    torch_threads: int = 1
    seed: int = 0
    memory: dict[str, Any] = field(default_factory=dict)
    prompt: dict[str, Any] = field(default_factory=dict)
    engine: EngineConfig = field(default_factory=lambda: EngineConfig("fused"))
    planner_caches: CacheConfig = field(default_factory=CacheConfig)
    planner_on: Placement | None = None
    actor_on: Placement | None = None
    planner_endpoint: EndpointConfig | None = None
    constrained: bool = False

    def __post_init__(self) -> None:
        check_actor_options(self.actor, self.actor_options)
        if self.planner == INSTRUCTION and (self.memory or self.prompt):
            raise ValueError(f"models: the planner {INSTRUCTION!r} has no memory and no prompt")
        if self.prompt and is_place(self.planner):
            raise ValueError("models: prompt: a planner of your own writes its own prompt; give it planner_options")
        if self.planner == INSTRUCTION or is_place(self.planner):
            for name in ("planner_on", "planner_endpoint", "constrained"):
                if getattr(self, name):
                    raise ValueError(f"models: {name}: it is for a planner with weights, not for {self.planner!r}")
        if self.planner_endpoint is not None and (self.planner_on is not None or self.constrained):
            raise ValueError(
                "models: planner_endpoint: the server decides where its planner runs: leave planner_on out, and say "
                "`constrained` within planner_endpoint"
            )

    def placement(self, model: Placement | None) -> Placement:
        """Where a model runs whose own placement is `model`."""
        return Placement(self.device) if model is None else model


@dataclass(frozen=True)
class BatchConfig:
    """Requests of several sessions in one forward pass.

    size: how many requests there are in it at most.
    wait_s: how long one waits for company. With 0 a batch is what came while the model was busy with the last one.
    """

    size: int = 8
    wait_s: float = 0.0

    def __post_init__(self) -> None:
        if self.size < 1 or self.wait_s < 0:
            raise ValueError(f"batches: size has to be at least 1 and wait_s not negative, got {self}")


@dataclass(frozen=True)
class PlannerProcessConfig:
    """The planner's own process.

    timeout_s: an answer that takes longer counts as hung, and the process is restarted.
    build_s: how long loading the model may take.
    restart_s: the pause before a restart, doubled each time in a row up to a minute.
    log_dir: where the process's own output goes; null: the state folder, or a temporary one.
    """

    timeout_s: float = 20.0
    build_s: float = 600.0
    restart_s: float = 1.0
    log_dir: str | None = None


@dataclass(frozen=True)
class AccessConfig:
    """Who may connect.

    api_key_file: a file with the key that clients send (`Authorization: Api-Key ...`); addresses other than loopback
    need one.
    tls_certificate, tls_key: PEM files; null: no TLS.
    """

    api_key_file: str | None = None
    tls_certificate: str | None = None
    tls_key: str | None = None

    def __post_init__(self) -> None:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("access: tls_certificate and tls_key go together")


@dataclass(frozen=True)
class StateConfig:
    """What is kept of episodes.

    dir: a folder where episodes are kept so that they survive a restart; null: in memory alone.
    store: in place of it a database, `postgresql://user@host/database`, such as for servers on many machines.
    sync: wait for the disk, so that they survive a power cut too, not only a kill.
    image_every_steps: besides keyframes, one image of so many control steps is kept, for looking at past episodes.
    trajectory: the state, the action and the wall-clock time of every observation are kept too, for looking at them.
    days, gib, episodes, episodes_per_robot: how long they are kept (`memory_bank.store.Retention`); null: no limit.
    journal: of the folder's database: `wal`, or `rollback` where processes of several machines share the folder.
    embed: the planner whose frozen vision tower gives every kept keyframe an embedding, such as `arena-planner`, in the
    background, so that keyframes are found by image; null: none (`predimem memory embed` does it afterwards).
    """

    FORMER_NAMES: ClassVar[dict[str, str]] = {"picture_every_steps": "image_every_steps"}

    dir: str | None = None
    store: str | None = None
    sync: bool = True
    image_every_steps: int = 20
    trajectory: bool = True
    days: float | None = None
    gib: float | None = 50.0
    episodes: int | None = None
    episodes_per_robot: int | None = None
    journal: Literal["wal", "rollback"] = "wal"
    embed: str | None = None

    def __post_init__(self) -> None:
        if self.image_every_steps < 1:
            raise ValueError(f"state: image_every_steps has to be at least 1, got {self.image_every_steps}")
        if self.dir is not None and self.store is not None:
            raise ValueError("state: dir and store (--state-dir and --store) name two places; leave one out")
        try:
            _ = self.retention
        except ValueError as error:
            raise ValueError(f"state: {error}") from None

    @property
    def place(self) -> str | None:
        """Where episodes are kept: a folder, or the address of a database."""
        return self.dir if self.store is None else self.store

    @property
    def folder(self) -> str | None:
        """The place, where it is a folder."""
        return None if self.place is None or is_address(self.place) else self.place

    @property
    def retention(self) -> Retention:
        return Retention(self.days, self.gib, self.episodes, self.episodes_per_robot)


@dataclass(frozen=True)
class ClusterConfig:
    """A Ray cluster of replicas behind one gateway.

    address: of a Ray cluster (`auto`, `host:6379`), `local` for one of this machine; null: one server, no cluster.
    replicas: how many there are; each has an actor and a planner.
    max_replicas: above `replicas`, Ray Serve adds replicas while there are more requests under way than
    `target_ongoing_requests` for each.
    join: an application of this name is there already and gets another gateway.
    """

    address: str | None = None
    replicas: int = 2
    max_replicas: int = 0
    target_ongoing_requests: float = 2.0
    downscale_delay_s: float = 600.0
    cpus_per_replica: float = 1.0
    gpus_per_replica: float = 0.0
    name: str = "predimem"
    join: bool = False

    def __post_init__(self) -> None:
        if self.replicas < 1:
            raise ValueError(f"cluster: replicas has to be at least 1, got {self.replicas}")
        if self.max_replicas and self.max_replicas < self.replicas:
            raise ValueError(f"cluster: max_replicas ({self.max_replicas}) is less than replicas ({self.replicas})")


@dataclass(frozen=True)
class ServeConfig:
    """All that `predimem serve` is told.

    protocol: what clients speak. `openpi`: an observation at a time. `robomme`: RoboMME's challenge, whose client sends
    all that it has seen since its last question, and whose simulation waits for the answer.
    default_prompt: the task of clients that send none; null: they are refused.
    time: `real`, or `simulated` with its latencies, in which the same observations give the same actions on every
    machine.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    protocol: Literal["openpi", "robomme"] = "openpi"
    default_prompt: str | None = None
    models: ModelsConfig = field(default_factory=ModelsConfig)
    robot: RobotConfig = field(default_factory=RobotConfig)
    tasks: TasksConfig = field(default_factory=TasksConfig)
    agent: DualSystemConfig = field(default_factory=DualSystemConfig)
    time: TimeConfig = field(default_factory=lambda: TimeConfig(mode="real"))
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    s1_batches: BatchConfig = field(default_factory=BatchConfig)
    s2_batches: BatchConfig = field(default_factory=BatchConfig)
    s2_process: PlannerProcessConfig = field(default_factory=PlannerProcessConfig)
    access: AccessConfig = field(default_factory=AccessConfig)
    state: StateConfig = field(default_factory=StateConfig)
    cluster: ClusterConfig = field(default_factory=ClusterConfig)

    def __post_init__(self) -> None:
        if self.agent.chunks in ("guided", "trained") and is_remote(self.models.actor):
            raise ValueError(f"agent: chunks: {self.agent.chunks}: a remote actor cannot continue chunks; set replace")
        if not 0 <= self.port < 65536:
            raise ValueError(f"port: expected 0 (any) to 65535, got {self.port}")
        if not is_loopback(self.host) and self.access.api_key_file is None:
            raise ValueError(
                f"host: {self.host} can be reached from other machines; that needs a key: put one into a file and "
                "name it in access: api_key_file (or --api-key-file), or serve on 127.0.0.1"
            )

    @property
    def action_horizon(self) -> int:
        return self.robot.action_horizon or self.agent.execute_steps


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    if host in LOOPBACK_NAMES:
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
