"""The words of the report that a newcomer does not know, each with what is shown when the mouse rests on it."""

from __future__ import annotations

from markupsafe import Markup

TERMS = {
    "S1": "System 1, the low-level policy: it turns the newest observation and subtask into the next actions, many "
    "times a second, and never waits for S2",
    "S2": "System 2, the planner: a vision-language model that looks at recent images and at the keyframes, names the "
    "subtask that is due and nominates images to remember",
    "subtask": "one part of the task that S1 can carry out by itself, such as opening a drawer; S2 names it",
    "keyframe": "an older image that S2 nominated and that the memory bank keeps, because it shows what matters later",
    "memory bank": "what is remembered of an episode: the last few images, and the keyframes",
    "control step": "one exchange of an observation for an action; there are 20 in a second",
    "fresh": "the action was computed for the subtask that S2 names now",
    "stale": "the action was computed for the subtask before: S2 has just changed its mind, and S1's next actions are "
    "not there yet",
    "held": "there was no action for this control step, so the robot held still, as it does until S2's first answer",
    "plan age": "control steps since the observation that S2's present answer is about",
    "chunk": "the actions for the next control steps, which S1 gives in one answer",
    "stage": "one subtask as the benchmark judges it; stages have to be passed in their order",
    "TSR": "task success rate: the share of episodes in which all stages were passed and none was undone",
    "CSR": "cumulative success rate: the mean share of stages that were passed and still held at the end",
    "interval": "the range in which the true rate lies with 95 % confidence, given so many episodes",
    "invalid answer": "an answer of S2 that is not valid JSON; the robot keeps to the subtask before",
    "refusal": "S2's words could mean several subtasks of this task, so the scripted skills hold still until it says "
    "which",
    "homing": "the hand did not get on with its subtask and went back to where it was first, and S1 began anew",
    "wrong first touch": "the share of episodes in which the robot first touched another object than the right one",
    "state aliasing": "the image looks as it did before, and the robot goes back to what it has already done",
    "constraint forgetting": "the robot goes on to what is possible and leaves out what the instruction asks for first",
    "error": "the episode crashed; it is counted apart and is in no success rate",
    "seed": "the number that an episode is drawn from: the same seed gives all agents the same scene",
    "scripted skills": "a stand-in for S1: programmed motions that know where everything is, but not what is due",
}


def term(text: str, name: str | None = None) -> Markup:
    """The text with its explanation, as HTML. name: the entry of `TERMS`, where the text is not its name."""
    explanation = TERMS[name or text]
    return Markup('<abbr title="{}">{}</abbr>').format(explanation, text)
