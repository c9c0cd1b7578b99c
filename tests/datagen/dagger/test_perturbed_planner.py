"""What a perturbed oracle planner says, and when the oracle takes over from a learned planner."""

from collections import Counter
from dataclasses import replace

import numpy as np

from datagen.dagger.config import DisturbanceConfig, OracleSpellConfig
from datagen.dagger.faulty_policy import Event
from datagen.dagger.perturbed_planner import AFTER_POUR_STEPS, POUR_SPELL_STEPS, PerturbedOracle, PlannerOrOracle
from datagen.dagger.worker import CALM
from datagen.experts.scripted.policy import ScriptedPolicy
from predimem.core.types import MemorySnapshot, Plan
from predimem.envs.arena.scene.environment import ArenaEnv
from tests.datagen.experts import arena

SUBTASK_STEPS = 150


def said_by(env: ArenaEnv, config: DisturbanceConfig, seed: int = 0) -> tuple[list[str], PerturbedOracle]:
    """What is said at each step of an episode in which every subtask takes as long as another."""
    source = PerturbedOracle(env, ScriptedPolicy(env), config, np.random.default_rng(seed))
    said = []
    for step in range(SUBTASK_STEPS * env.task.stages):
        source.update(step, step // SUBTASK_STEPS, 0)
        said.append(source.plan(MemorySnapshot("", step, "", ())).subtask or "")
    return said, source


def test_the_oracle_planner_and_each_of_its_disturbances() -> None:
    env = arena(10, 0)
    labels = [subtask.label for subtask in env.variant().subtasks]
    due = [label for label in labels for _ in range(SUBTASK_STEPS)]
    assert said_by(env, CALM)[0] == due

    late, _ = said_by(env, replace(CALM, late_share=1.0, late_s=(2.0, 2.0)))
    delays = [late.index(label) - due.index(label) for label in labels]
    assert delays == [0, 40, AFTER_POUR_STEPS, AFTER_POUR_STEPS], "after a pour it must not be poured again"

    early, source = said_by(env, replace(CALM, premature_share=1.0, premature_s=(1.0, 1.0)))
    assert [event.kind for event in source.events] == ["premature"] * 3
    for event, label in zip(source.events, labels[1:], strict=True):
        length = POUR_SPELL_STEPS if label.startswith("pour") else 20
        wrong = [t for t, (said, true) in enumerate(zip(early, due, strict=True)) if said == label != true]
        assert wrong == list(range(event.start, event.start + length))

    wrong, source = said_by(env, replace(CALM, wrong_per_minute=30.0))
    assert len(source.events) > 2 and {event.kind for event in source.events} == {"wrong"}
    known = {subtask.label for variant in env.task.variants for subtask in variant.subtasks}
    for event in source.events:
        assert wrong[event.start] in known and wrong[event.start] != due[event.start]
        assert event.end - event.start <= (POUR_SPELL_STEPS if wrong[event.start].startswith("pour") else 40)
    assert said_by(env, replace(CALM, wrong_per_minute=30.0))[0] == wrong, "the same seed says the same"
    env.close()


def test_the_oracle_planner_waits_on_after_a_pause_and_nowhere_else() -> None:
    env = arena("long-12", 0)
    (pause,) = env.variant().pauses
    labels = [subtask.label for subtask in env.variant().subtasks]
    said, source = said_by(env, replace(CALM, waits_on_share=1.0, waits_on_s=(4.0, 4.0)))
    assert said == [
        labels[stage - 1] if stage == pause.stage and step < 80 else labels[stage]
        for stage in range(len(labels))
        for step in range(SUBTASK_STEPS)
    ]
    over = pause.stage * SUBTASK_STEPS
    assert source.events == [Event("waited on", over, over + 80)]

    _, source = said_by(env, replace(CALM, late_share=1.0, late_s=(1.0, 1.0), waits_on_share=1.0))
    kinds = Counter(event.kind for event in source.events)
    assert kinds == {"late switch": len(labels) - 2, "waited on": 1}, "one of both at each switch"
    env.close()


class Stubborn:
    """A planner that always says the same and nominates what it is asked at."""

    def plan(self, snapshot: MemorySnapshot) -> Plan:
        return Plan(snapshot.episode_id, snapshot.step, "dance", (snapshot.step,))


def test_the_oracle_takes_over_from_a_planner_for_its_share_and_to_rescue() -> None:
    def taken_over(config: OracleSpellConfig, overtime: int) -> list[bool]:
        source = PlannerOrOracle(Stubborn(), ("pick", "place"), config, np.random.default_rng(0))
        told = []
        for step in range(20_000):
            source.update(step, step // 10_000, overtime)
            told.append(source.plan(MemorySnapshot("", step, "", ())).subtask != "dance")
            assert source.arrived() == (step,), "what it nominates counts, whoever is heard"
        return told

    assert 0.15 < np.mean(taken_over(OracleSpellConfig(share=0.25), -1)) < 0.35
    assert not any(taken_over(OracleSpellConfig(share=0.0), 99))
    assert all(taken_over(OracleSpellConfig(share=0.0), 100)), "5 s over time"
    assert not any(taken_over(OracleSpellConfig(share=0.0, rescue_after_s=None), 10_000))
