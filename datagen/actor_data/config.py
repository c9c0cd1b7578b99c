"""Which data are made to train the actor on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from datagen.generation import ArenaDataConfig, check_at_least
from predimem.core.config import ConfigError
from predimem.core.seeds import ACTOR_DATA_SEEDS
from predimem.core.weight_files import model_folder
from predimem.envs.arena.subtasks import Skill


@dataclass(frozen=True)
class ActorDataConfig(ArenaDataConfig):
    """Which states are labelled by the memoryless expert, or by an actor.

    sampling: "frames", independent states that are set without physics, or "rollouts", short episodes in physics.
    skills: the skills with which an episode may begin.
    hard_share, hard_skills: of the independent states so many begin with one of these skills instead, where the task
        has one: those that an actor finds hardest.
    frames: images of an episode of independent states.
    chunk_steps: the length of a label, in control steps.
    policy: the folder of the weights, or the name of shipped ones, of the actor that plays the roll-outs and labels
        what the expert does not; null: the expert does both.
    expert_labels: patterns of what the expert labels, as in `Labelled.motions`: where a thing has to be picked up
        before it is placed or poured from, that is "pick ...". Elsewhere the actor's own chunk is the label, and in a
        roll-out there is none where the subtask fails: it keeps what it does there while it learns the rest (learning
        without forgetting, arXiv:1606.09282).

    The other fields are about roll-outs.
    execute_steps: how much of a chunk is played before the next image.
    latency_steps: control steps from a look of an actor to the first action of its chunk that is played, as
    `s1_latency_steps` in an evaluation.
    subtask_steps: how long one subtask may take.
    after_steps: after a success a subtask goes on for up to so long, drawn at random, since planners learn to name the
    next one when the motion has ended.
    chain_share: the share of roll-outs that go on with the next subtask after a success.
    noise: is added to the expert's actions in spells (1 = 0.1 m).
    expert_share: where an actor plays, the share of the looks after which the label's chunk is played, so that the
    states after a mistake that the actor does not mend by itself are seen too.
    """

    kind: Literal["actor_data"] = "actor_data"
    sampling: Literal["frames", "rollouts"] = "frames"
    out: str = "runs/data/actor_data/frames"
    skills: tuple[str, ...] = tuple(skill.value for skill in Skill)
    hard_share: float = 0.0
    hard_skills: tuple[str, ...] = (Skill.PLACE.value, Skill.OPEN.value, Skill.CLOSE.value, Skill.POUR.value)
    episodes: int = 4
    first_seed: int = ACTOR_DATA_SEEDS.start
    frames: int = 16
    chunk_steps: int = 16
    execute_steps: int = 8
    latency_steps: int = 0
    subtask_steps: int = 200
    after_steps: int = 50
    chain_share: float = 0.5
    noise: float = 0.25
    policy: str | None = None
    expert_share: float = 0.0
    expert_labels: tuple[str, ...] = ("*",)

    def models(self) -> dict[str, str]:
        return {} if self.policy is None else {"policy": self.policy}

    def for_workers(self) -> ActorDataConfig:
        config = super().for_workers()
        return config if self.policy is None else replace(config, policy=str(model_folder(self.policy).resolve()))

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, 1, "frames", "chunk_steps", "execute_steps", "subtask_steps")
        check_at_least(self, 0, "after_steps", "latency_steps")
        for name in ("hard_share", "chain_share", "expert_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} must be in [0, 1], got {getattr(self, name)}")
        unknown = {*self.skills, *self.hard_skills} - set(Skill)
        if unknown:
            known = ", ".join(Skill)
            raise ConfigError(f"skills and hard_skills are among {known}; got {', '.join(sorted(unknown))}")
        if self.policy is None and (self.expert_share or self.expert_labels != ("*",)):
            raise ConfigError("expert_share and expert_labels are for data of an actor: name its weights in `policy`")
        if self.expert_share and self.sampling != "rollouts":
            raise ConfigError(f"expert_share: nothing is played with `sampling: {self.sampling}`, say rollouts")
        if self.execute_steps > self.chunk_steps:
            raise ConfigError(f"execute_steps {self.execute_steps} is more than chunk_steps {self.chunk_steps}")
