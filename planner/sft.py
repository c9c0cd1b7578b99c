"""The ms-swift plug-in with our model class and its template. `swift sft --external_plugins` loads it.

ms-swift only needs to know which class to load and which token stands for an image; the objective is in the model's
`forward`. Where the environment names a table of features, samples carry its rows in place of pixels.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from swift.metrics import eval_metrics_map
from swift.metrics.base import EvalMetrics
from swift.model import Model, ModelArch, ModelGroup, ModelMeta, register_model
from swift.model.models.qwen import Qwen2VLLoader, Qwen3VLLoader
from swift.template import register_template
from swift.template.base import Template
from swift.template.templates.qwen import Qwen3VLTemplate, QwenTemplateMeta
from swift.template.utils import findall

from planner.answer_metrics import answer_scores
from planner.feature_shards import FeatureShards, is_sharded
from planner.model import PrediMemForConditionalGeneration
from planner.swift_command import FEATURES, METRIC
from planner.tiny.feature_table import FeatureTable

NAME = "predimem_vl"


def _table() -> FeatureTable | FeatureShards | None:
    if FEATURES not in os.environ:
        return None
    folder = Path(os.environ[FEATURES])
    return FeatureShards(folder) if is_sharded(folder) else FeatureTable(folder)


TABLE = _table()


class PrediMemLoader(Qwen3VLLoader):
    """Loads a Qwen3-VL checkpoint into our class."""

    def get_model(self, model_dir: str, config: Any, processor: Any, model_kwargs: dict[str, Any]) -> Any:
        self.auto_model_cls = PrediMemForConditionalGeneration
        # Not Qwen3VLLoader's: it replaces the inner model's forward to allow text-only samples under
        # DeepSpeed, and thereby drops the precomputed image features. All our samples have images.
        model: Any = Qwen2VLLoader.get_model(self, model_dir, config, processor, model_kwargs)
        if TABLE is not None:
            model.read_features_from(TABLE)
        return model


class PrediMemTemplate(Qwen3VLTemplate):
    """Qwen3-VL's template, with the image token of whatever tokenizer the checkpoint has."""

    def init_processor(self, processor: Any) -> None:
        super().init_processor(processor)
        if processor is not None:
            self.image_token_id = processor.tokenizer.convert_tokens_to_ids("<|image_pad|>")
            self.video_token_id = processor.tokenizer.convert_tokens_to_ids("<|video_pad|>")

    @staticmethod
    def _load_image(image: Any, load_images: bool) -> Any:
        """The image; with a table of features its path, because the image itself is then not needed."""
        return Qwen3VLTemplate._load_image(image, load_images) if TABLE is None else _path(image)

    def replace_tag(self, media_type: Any, index: int, inputs: Any) -> list[Any]:
        if TABLE is None:
            return super().replace_tag(media_type, index, inputs)
        return ["<|vision_start|><|image_pad|><|vision_end|>"]

    def _encode(self, inputs: Any) -> dict[str, Any]:
        if TABLE is None:
            return super()._encode(inputs)
        encoded = Template._encode(self, inputs)
        ids, labels = encoded["input_ids"], encoded["labels"]
        places, mask = findall(ids, self.image_token_id), [False] * len(ids)
        rows = [TABLE.rows[path] for path in inputs.images]
        pads = [[self.image_token_id] * TABLE.tokens(row) for row in rows]
        extended: Any = self._extend_tokens(ids, labels, None, places, pads.__getitem__, mm_mask=mask)
        encoded["input_ids"], encoded["labels"], _, mask = extended
        encoded["mm_token_type_ids"] = self.create_mm_token_type_ids(encoded["input_ids"], mask)
        encoded["pixel_values"] = torch.tensor(rows)
        encoded["image_grid_thw"] = torch.tensor([TABLE.grid_thw(row) for row in rows])
        return encoded


class PlannerMetrics(EvalMetrics):
    """`planner.answer_metrics` at every validation."""

    def compute_metrics(self, eval_prediction: Any) -> dict[str, float]:
        tokenizer: Any = self.trainer.template.tokenizer
        scores = answer_scores(eval_prediction.predictions, eval_prediction.label_ids, tokenizer.decode)
        return asdict(scores)

    def preprocess_logits_for_metrics(self, logits: Any, labels: torch.Tensor) -> torch.Tensor:
        """[B, K, V] -> [B, K]: the most likely tokens, without keeping the logits of the whole validation set."""
        return (logits[0] if isinstance(logits, list | tuple) else logits).argmax(-1)


def _path(image: Any) -> str:
    return image["path"] if isinstance(image, dict) else image


eval_metrics_map[METRIC] = PlannerMetrics
register_template(QwenTemplateMeta(NAME, template_cls=PrediMemTemplate, default_system=None))
register_model(
    ModelMeta(
        NAME,
        [ModelGroup([Model("predimem/planner", "predimem/planner")], NAME)],
        PrediMemLoader,
        model_arch=ModelArch.qwen3_vl,
        is_multimodal=True,  # else --freeze_vit and --freeze_aligner are silently ignored
        architectures=["PrediMemForConditionalGeneration", "Qwen3VLForConditionalGeneration"],
        tags=["vision"],
    )
)
