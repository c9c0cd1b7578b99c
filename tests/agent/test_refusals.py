"""A subtask that S1 refuses: the tick says so for as long as the action is carried out."""

from predimem.agent.clock import SimulatedClock
from predimem.core.types import ActionChunk, AmbiguousLabel, Observation
from tests.agent.fakes import CountingEnvironment, StepPlanner, StepPolicy
from tests.agent.test_dual_system import play


class RefusingPolicy(StepPolicy):
    """Refuses `phase 0`, as one that could mean two things, with chunks of one action."""

    def infer(self, observation: Observation, subtask: str) -> ActionChunk:
        action = super().infer(observation, subtask).actions[:1]
        why = AmbiguousLabel(subtask, ("the left one", "the right one"), (f"{subtask}: left", f"{subtask}: right"))
        return ActionChunk(observation.step, action, subtask, why if subtask == "phase 0" else None)


def test_a_refusal_is_told_at_each_step_at_which_its_action_is_carried_out():
    clock = SimulatedClock(s1_latency_steps=0, s2_latency_steps=2)
    _, trace, _ = play(CountingEnvironment(horizon=8), StepPlanner(every=4), RefusingPolicy(), clock)
    told = [tick["refusal"] for tick in trace["ticks"]]
    # what was asked at 4 is there at 6
    assert [t is not None for t in told] == [False, False, True, True, True, True, False, False]
    assert told[2] == {
        "label": "phase 0",
        "meanings": ("the left one", "the right one"),
        "clear": ("phase 0: left", "phase 0: right"),
    }
