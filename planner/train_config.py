"""What a training of S2 is told; the recipes are in `configs/planner/`."""

from __future__ import annotations

from dataclasses import dataclass, field

from memory_bank import MemoryConfig
from planner.dataset import DatasetConfig
from planner.model import ObjectiveConfig
from planner.prompt import PromptConfig, check_agreement, follow_memory
from planner.swift_command import SftConfig
from planner.tiny.base import BaseConfig
from planner.tiny.vision_config import VisionConfig


@dataclass(frozen=True)
class TrainConfig:
    """A whole training. The defaults are the paper's; the recipes are in `configs/planner/`.

    episodes: a folder of episodes, or several.
    out: the folder for everything that the training makes.
    seed: the seed of the data and of the weights that are drawn.
    prompt: how the memory is put into words and images.
    memory: which memory the planner has.
    predictive_weight, answer_weight, cache_features: see `ObjectiveConfig`; its other fields follow from the prompt and
        the tokenizer.
    feature_table: run the tower once over every image of the training set. The features of a tower of our own are kept
        in `vision.directory`, with the images, for all trainings that share it, and it is exported as a file of its
        own; those of a pretrained one lie in `features` in the output folder (`planner.feature_shards`).
    base: the checkpoint that training starts from.
    vision: the pretraining of a tiny tower; null leaves the tower as it is in the base.
    dataset: which samples are drawn from the episodes.
    sft: how ms-swift trains.
    max_new_tokens: the longest answer that is decoded.
    export_dtype: the number format of the exported weights.
    continue_from: the folder of an exported planner of the same size, or with fewer layers of the language model. A
        tiny base begins with its weights, those of the tower included: the tower is then not trained, and
        `vision.directory` holds features alone.
    """

    episodes: str | tuple[str, ...] = "runs/data/mikasa"
    out: str = "runs/train/planner"
    seed: int = 0
    prompt: PromptConfig = field(default_factory=PromptConfig)
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    predictive_weight: float = 0.1
    answer_weight: float = 1.0
    cache_features: bool = False
    feature_table: bool = False
    base: BaseConfig = field(default_factory=BaseConfig)
    vision: VisionConfig | None = None
    dataset: DatasetConfig = field(default_factory=DatasetConfig)
    sft: SftConfig = field(default_factory=SftConfig)
    max_new_tokens: int = 64
    export_dtype: str = "float16"
    continue_from: str | None = None

    complete_data = staticmethod(follow_memory)

    def __post_init__(self) -> None:
        check_agreement(self.prompt, self.memory)
        if self.prompt.plan_ahead != bool(self.dataset.plan_ahead):
            raise ValueError(
                f"prompt.plan_ahead is {self.prompt.plan_ahead} and dataset.plan_ahead is "
                f"{list(self.dataset.plan_ahead)}: a planner is asked to plan ahead where its labels do"
            )
        if self.prompt.past_sessions:
            raise ValueError(
                "prompt: past_sessions: episode files hold no earlier sessions to learn from; set it false"
            )
        if self.base.pretrained is not None and self.vision is not None:
            raise ValueError("vision pretraining is for a tiny base: set vision: null for a pretrained one")
        if self.base.pretrained is not None and self.continue_from is not None:
            raise ValueError("base.pretrained and continue_from both say where to start from: give one of them")
        if self.feature_table and self.vision is None and self.base.pretrained is None:
            raise ValueError(
                "feature_table needs a tower that was trained: set vision, for one of our own, or base.pretrained"
            )
        if self.export_dtype not in ("float16", "bfloat16", "float32"):
            raise ValueError(f"export_dtype must be float16, bfloat16 or float32, got {self.export_dtype!r}")

    @property
    def objective(self) -> ObjectiveConfig:
        return ObjectiveConfig(
            cameras=len(self.prompt.cameras),
            window=self.prompt.recent_window,
            predictive_weight=self.predictive_weight,
            answer_weight=self.answer_weight,
            cache_features=self.cache_features,
        )
