"""The stages of an episode: what they are, and how a video lists them beside its images."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from PIL import ImageDraw, ImageFont

from predimem.core.subtask_labels import calls

PASSED, UNDONE, FAILED, TO_COME = "+", "-", "x", "."
PANEL_PX = 330
ROW_PX = 26

_COLOURS = {
    PASSED: (84, 190, 120),
    UNDONE: (232, 170, 64),
    FAILED: (228, 92, 84),
    TO_COME: (110, 112, 120),
}
_WORDS = {UNDONE: "undone: ", FAILED: "failed: "}


class Stage(NamedTuple):
    """state: one of PASSED, UNDONE, FAILED and TO_COME."""

    label: str
    state: str


@dataclass(frozen=True)
class StageFacts:
    """What explains whether a stage was passed.

    skill, target, object: what has to be done, to what or where, and with what
    memory: why the image does not show that this stage is due; empty where it does
    budget_steps: how many control steps the stage may take
    evidence: the earlier stages of which something has to be remembered to know that this one is due
    """

    label: str
    skill: str = ""
    target: str = ""
    object: str = ""
    memory: str = ""
    budget_steps: int = 0
    evidence: tuple[int, ...] = ()

    def is_called(self, name: str) -> bool:
        """See `predimem.core.subtask_labels.calls`."""
        return calls(name, self.label)


def facts_of(info: Mapping[str, object]) -> tuple[StageFacts, ...]:
    """The stages that a step's `info` explains (`stage_facts`); empty where it has none."""
    entries = json.loads(str(info.get("stage_facts", "[]")))
    return tuple(StageFacts(**entry | {"evidence": tuple(entry["evidence"])}) for entry in entries)


def stages_of(info: Mapping[str, object]) -> tuple[Stage, ...]:
    """The stages that a step's `info` tells (`stage_labels`, `stage_states`); empty where it has none."""
    labels = str(info.get("stage_labels", "")).splitlines()
    return tuple(Stage(label, state) for label, state in zip(labels, str(info.get("stage_states", "")), strict=True))


def stage_text(stage: Stage, letters: int = 42) -> str:
    """What the panel says of a stage."""
    return textwrap.shorten(_WORDS.get(stage.state, "") + stage.label, letters, placeholder=" …")


def draw_stages(draw: ImageDraw.ImageDraw, x: float, y: float, stages: tuple[Stage, ...]) -> None:
    """Draw one line for each stage, from (x, y) on; the first stage to come is the one that is due."""
    running = all(stage.state != FAILED for stage in stages)
    due = next((i for i, stage in enumerate(stages) if running and stage.state == TO_COME), None)
    for i, stage in enumerate(stages):
        top = y + ROW_PX * i
        _draw_mark(draw, x, top + 3, stage.state)
        bright = (236, 236, 232) if i == due else _COLOURS[stage.state]
        draw.text((x + 24, top), stage_text(stage), bright, ImageFont.load_default(15))


def draw_stage_marks(draw: ImageDraw.ImageDraw, x: float, y: float, stages: tuple[Stage, ...]) -> None:
    """Draw one mark for each stage in one row from (x, y) on, and how many were passed: where there is no room for
    their names."""
    for i, stage in enumerate(stages):
        _draw_mark(draw, x + 20 * i, y, stage.state)
    passed = sum(stage.state == PASSED for stage in stages)
    words = f"{passed} of {len(stages)} stages passed"
    draw.text((x + 20 * len(stages) + 6, y - 2), words, _COLOURS[TO_COME], ImageFont.load_default(15))


def _draw_mark(draw: ImageDraw.ImageDraw, x: float, y: float, state: str) -> None:
    """A tick, a cross, an arrow back or an empty box, 14 px: the built-in font has no such signs."""
    colour = _COLOURS[state]
    if state == PASSED:
        draw.line((x, y + 8, x + 5, y + 13, x + 14, y + 1), fill=colour, width=3)
    elif state == FAILED:
        draw.line((x + 1, y + 1, x + 13, y + 13), fill=colour, width=3)
        draw.line((x + 1, y + 13, x + 13, y + 1), fill=colour, width=3)
    elif state == UNDONE:
        draw.line((x + 14, y + 7, x, y + 7, x + 6, y + 1), fill=colour, width=3)
        draw.line((x, y + 7, x + 6, y + 13), fill=colour, width=3)
    else:
        draw.rectangle((x + 1, y + 1, x + 13, y + 13), outline=colour, width=1)
