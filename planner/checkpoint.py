"""`predimem.json` lies beside a planner's Hugging Face files and says what its weights were trained for.

The runtime builds its memory bank and its prompts from this file, so that they cannot drift from the
training. The rest of the folder is a stock Qwen3-VL checkpoint; only a planner that was never trained has a seed
here in place of weights there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from memory_bank import MemoryConfig
from memory_bank.own import HostedMemory
from planner.prompt import FOLLOWS_MEMORY, PromptConfig, check_agreement, follow_memory
from planner.tiny.tokenizer_config import TokenizerConfig
from predimem.core.config import ConfigError, differences, from_dict, to_dict
from predimem.core.faults import SetupError
from predimem.core.interfaces import FullMemory

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

    @property
    def known_subtasks(self) -> frozenset[str] | None:
        """All that it was trained to name; None where its record does not list it, as after a training that began with
        a pretrained model, or where it plans ahead."""
        known = self._known
        if known is None or not known.subtasks or self.prompt.plan_ahead:
            return None
        return frozenset(known.all_subtasks())

    @property
    def _known(self) -> TokenizerConfig | None:
        base = self.training.get("config", {}).get("base", {})
        if base.get("pretrained") is not None or "tokenizer" not in base:
            return None
        try:
            return from_dict(TokenizerConfig, base["tokenizer"])
        except ConfigError:  # of another version
            return None


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


def changed_spec(spec: PlannerSpec, memory: Mapping[str, Any], prompt: Mapping[str, Any]) -> PlannerSpec:
    """The spec with another memory and prompt than the planner was trained with.

    memory, prompt: the fields that differ. The prompt follows the memory, as in a recipe. Raises ConfigError for an
    unknown field, for a prompt that contradicts its memory, and for one that the weights cannot read.
    """
    old_memory, old_prompt = to_dict(spec.memory), to_dict(spec.prompt)
    if memory.get("implementation", spec.memory.implementation) != spec.memory.implementation:
        old_memory["options"] = {}  # they are those of the other class
    follows = {name: memory[name] for name in FOLLOWS_MEMORY if name in memory}
    new_memory = from_dict(MemoryConfig, old_memory | dict(memory), "memory")
    new_prompt = from_dict(PromptConfig, old_prompt | follows | dict(prompt), "prompt")
    try:
        check_agreement(new_prompt, new_memory)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    if new_prompt.image_patch_size != spec.prompt.image_patch_size:
        raise ConfigError(
            f"prompt: image_patch_size is {spec.prompt.image_patch_size}, the vision tower's; it cannot be changed"
        )
    if new_prompt.crop != spec.prompt.crop:
        raise ConfigError(f"prompt: crop is {spec.prompt.crop}, as the planner was trained; it cannot be changed")
    unknown = [camera for camera in new_prompt.cameras if camera not in spec.prompt.cameras]
    if unknown:
        known = ", ".join(spec.prompt.cameras)
        raise ConfigError(f"prompt: cameras: the planner was trained with {known}, and knows no {unknown[0]!r}")
    return replace(spec, memory=new_memory, prompt=new_prompt)


def check_sessions_are_seen(memory: FullMemory, prompt: PromptConfig) -> None:
    """Raises ConfigError where a memory shows earlier sessions in a section that the planner's prompt does not have."""
    if isinstance(memory, HostedMemory) and memory.shows_sessions and not prompt.past_sessions:
        raise ConfigError(
            "the memory shows earlier sessions, and the planner's prompt has no section for them: set memory: options: "
            "{shown_as: keyframes}, or prompt: {past_sessions: true} for a planner that knows the section"
        )


def untrained_prompt(spec: PlannerSpec, changed: PlannerSpec) -> str:
    """How the prompt of `changed` differs from the one that the weights were trained with; empty where it does not."""
    return ", ".join(differences(to_dict(spec.prompt), to_dict(changed.prompt)))


def draw_model(config: Any, seed: int) -> Any:
    """A stock Qwen3-VL in float32 whose weights are drawn from `seed`. config: a Qwen3VLConfig.

    On a CPU; the same numbers as a tiny base of the same config and seed without a pretrained tower.
    """
    import torch
    from transformers import Qwen3VLForConditionalGeneration

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen3VLForConditionalGeneration(config)
