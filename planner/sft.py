"""ms-swift plug-in: our model class and its template. Loaded by `swift sft --external_plugins`.

ms-swift only needs to be told which class to load and which token stands for an image; the objective is
in the model's `forward`.
"""

from __future__ import annotations

from typing import Any

from swift.model import Model, ModelArch, ModelGroup, ModelMeta, register_model
from swift.model.models.qwen import Qwen2VLLoader, Qwen3VLLoader
from swift.template import register_template
from swift.template.templates.qwen import Qwen3VLTemplate, QwenTemplateMeta

from planner.model import PrediMemForConditionalGeneration

NAME = "predimem_vl"


class PrediMemLoader(Qwen3VLLoader):
    """Loads a Qwen3-VL checkpoint into our class."""

    def get_model(self, model_dir: str, config: Any, processor: Any, model_kwargs: dict[str, Any]) -> Any:
        self.auto_model_cls = PrediMemForConditionalGeneration
        # Not Qwen3VLLoader's: it replaces the inner model's forward to allow text-only samples under
        # DeepSpeed, and thereby drops the precomputed image features. All our samples have images.
        return Qwen2VLLoader.get_model(self, model_dir, config, processor, model_kwargs)


class PrediMemTemplate(Qwen3VLTemplate):
    """Qwen3-VL's template, with the image token of whatever tokenizer the checkpoint has."""

    def init_processor(self, processor: Any) -> None:
        super().init_processor(processor)
        if processor is not None:
            self.image_token_id = processor.tokenizer.convert_tokens_to_ids("<|image_pad|>")
            self.video_token_id = processor.tokenizer.convert_tokens_to_ids("<|video_pad|>")


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
