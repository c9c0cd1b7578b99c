"""`predimem.json` lies beside a planner's Hugging Face files and says what its weights were trained for.

The runtime builds its memory bank and its prompts from this file, so that they cannot drift from the
training. The rest of the folder is a stock Qwen3-VL checkpoint; only a planner that was never trained has a seed
here in place of weights there.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from memory_bank import MemoryConfig
from planner.prompt import PromptConfig, check_agreement, follow_memory
from predimem.core.config import ConfigError, from_dict
from predimem.core.faults import SetupError

FILE_NAME = "predimem.json"
FORMAT = "predimem-planner"
VERSION = 1


class PlannerCheckpointError(SetupError, ValueError):
    """A planner folder that cannot be used: says what is missing or broken, and how to mend it."""


@dataclass(frozen=True)
class PlannerSpec:
    """What a planner's weights were trained for.

    prompt, memory: as in training.
    max_new_tokens: the longest answer decoded.
    training: where the weights come from (config, seed, figures), for the record.
    drawn_seed: the folder holds no weights: they are drawn at random from this seed (`draw_model`).
    """

    prompt: PromptConfig = field(default_factory=PromptConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    max_new_tokens: int = 64
    training: dict[str, Any] = field(default_factory=dict)
    drawn_seed: int | None = None

    complete_data = staticmethod(follow_memory)

    def __post_init__(self) -> None:
        check_agreement(self.prompt, self.memory)


def write_spec(folder: str | Path, spec: PlannerSpec) -> None:
    data = {"format": FORMAT, "version": VERSION, **asdict(spec)}
    (Path(folder) / FILE_NAME).write_text(json.dumps(data, indent=2) + "\n")


def read_spec(folder: str | Path) -> PlannerSpec:
    """Raises PlannerCheckpointError if the folder has no readable `predimem.json` of this version."""
    path = Path(folder) / FILE_NAME
    if not path.is_file():
        raise PlannerCheckpointError(f"{path} not found: {folder} is no planner made by `predimem train planner`")
    try:
        data = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise PlannerCheckpointError(f"{path} is not JSON ({error}): export the planner again") from error
    if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
        raise PlannerCheckpointError(f"{path} is not a {FORMAT} file: export the planner again")
    version = data.pop("version", None)
    if version != VERSION:
        raise PlannerCheckpointError(f"{path} has version {version}; this code reads {VERSION}")
    try:
        return from_dict(PlannerSpec, data, where=str(path))
    except (ConfigError, ValueError) as error:
        raise PlannerCheckpointError(f"{error}: export the planner again") from error


def draw_model(config: Any, seed: int) -> Any:
    """A stock Qwen3-VL in float32 whose weights are drawn from `seed`. config: a Qwen3VLConfig.

    On a CPU; the same numbers as a tiny base of the same config and seed without a pretrained tower.
    """
    import torch
    from transformers import Qwen3VLForConditionalGeneration

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen3VLForConditionalGeneration(config)
