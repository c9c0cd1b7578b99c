"""Qwen3-VL with PrediMem's predictive-coding head and S2's objective (RoboMemArena, arXiv:2605.10921, §4, Eq. 6).

The head is a two-layer MLP on the final hidden states of the image tokens of o_t. It predicts what
the frozen vision tower's merger gives for the next timestep of the same camera:

    L_Pre = MSE(Ẑ_{t+1}, sg(Z_{t+1})) + (1 - cos(Ẑ_{t+1}, sg(Z_{t+1})))
    L_S2  = L_text + 0.1 · L_Pre

Both are computed in `forward`, so that any trainer that minimises `outputs.loss` trains S2. Without
`labels` the model is plain Qwen3-VL: the head is a training aid and no part of an exported planner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import Qwen3VLConfig, Qwen3VLForConditionalGeneration
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLCausalLMOutputWithPast

from planner.tiny.feature_cache import FeatureCache
from planner.tiny.feature_table import FeatureTable
from predimem.core.config import from_dict

CONFIG_KEY = "predictive_coding"


@dataclass(frozen=True)
class ObjectiveConfig:
    """S2's objective. It is kept in the Hugging Face config under the key `predictive_coding`.

    cameras: how many images a timestep has; they are adjacent.
    window: how many timesteps a full recent window has.
    predictive_weight: the factor of L_Pre; 0 trains without a head.
    answer_weight: how much more a label token of `answer_token_ids` counts in L_text than any other. 1 is the paper's
        loss. More is a training-only aid for tiny models, which would otherwise spend their gradient on the JSON
        skeleton.
    answer_token_ids: the tokens that decide an answer.
    cache_features: whether the frozen tower's features of every image are kept (16 KiB for each at tiny size). That
        saves a third of a training step on a CPU; it is not for large models.
    """

    cameras: int = 2
    window: int = 5
    predictive_weight: float = 0.1
    answer_weight: float = 1.0
    answer_token_ids: tuple[int, ...] = ()
    cache_features: bool = False

    def __post_init__(self) -> None:
        if self.cameras < 1 or self.window < 1:
            raise ValueError(f"cameras and window must be at least 1, got {self.cameras} and {self.window}")
        if self.predictive_weight < 0 or self.answer_weight <= 0:
            raise ValueError("predictive_weight must not be negative and answer_weight must be positive")

    def to_hf(self) -> dict[str, Any]:
        """As plain data, for `config.json`."""
        return asdict(self) | {"answer_token_ids": list(self.answer_token_ids)}


def objective_of(config: Qwen3VLConfig) -> ObjectiveConfig:
    """The objective stored in a Hugging Face config. Raises ValueError if there is none."""
    stored = getattr(config, CONFIG_KEY, None)
    if stored is None:
        raise ValueError(
            f"the model's config.json has no {CONFIG_KEY!r}: make the base checkpoint with "
            "`predimem train planner`, which writes it"
        )
    return from_dict(ObjectiveConfig, stored, where=f"config.json: {CONFIG_KEY}")


@dataclass
class PlannerOutput(Qwen3VLCausalLMOutputWithPast):
    """Plain Qwen3-VL's output, and L_Pre, a field of its own: training in several processes takes an output apart and
    makes it anew from its fields."""

    aux_loss: Tensor | None = None


class PrediMemForConditionalGeneration(Qwen3VLForConditionalGeneration):
    """Qwen3-VL with S2's loss. The vision tower, its mergers included, gets no gradient.

    The model expects padded batches with one sample in a row (no packing). The images of a row are those of the
    keyframes, followed by those of the recent window; the cameras of a timestep are adjacent.
    """

    def __init__(self, config: Qwen3VLConfig):
        super().__init__(config)
        self.objective = objective_of(config)
        if self.objective.predictive_weight > 0:
            text, vision = cast(Any, config.text_config), cast(Any, config.vision_config)
            width, target = text.hidden_size, vision.out_hidden_size
            self.predictive_head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, target))
        self.post_init()
        self.model.visual.requires_grad_(False)
        self._features: Any = FeatureCache(self.model) if self.objective.cache_features else None

    def read_features_from(self, table: FeatureTable) -> None:
        """From now on `pixel_values` are rows of `table`, int64 [images]."""
        self._features = table

    @property
    def visual(self) -> nn.Module:
        return self.model.visual

    @property
    def language_model(self) -> nn.Module:
        return self.model.language_model

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        pixel_values: Tensor | None = None,
        image_grid_thw: Tensor | None = None,
        logits_to_keep: int | Tensor = 0,
        **kwargs: Any,
    ) -> Qwen3VLCausalLMOutputWithPast:
        """Plain Qwen3-VL without `labels`; with them, `loss` is L_S2 and `aux_loss` is L_Pre.

        input_ids, attention_mask, labels: int64 [B, L], labels -100 where no loss is wanted;
        with logits_to_keep the labels may be cut to the positions kept. pixel_values and
        image_grid_thw: as the Qwen3-VL processor gives them, the images of all rows in order.
        """
        if labels is None or input_ids is None or pixel_values is None or image_grid_thw is None:
            return cast(Any, super()).forward(
                input_ids=input_ids,
                attention_mask=attention_mask,
                labels=labels,
                pixel_values=pixel_values,
                image_grid_thw=image_grid_thw,
                logits_to_keep=logits_to_keep,
                **kwargs,
            )
        with torch.no_grad():
            get_features = self.model.get_image_features if self._features is None else self._features
            features = cast(Any, get_features)(pixel_values, image_grid_thw, return_dict=True)
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            image_grid_thw=image_grid_thw,
            mm_encoder_outputs={"image": features},
            **kwargs,
        )
        hidden = outputs.last_hidden_state
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        logits = self.lm_head(hidden[:, kept, :])
        loss = text_loss(logits, labels, self.objective)
        predictive = None
        if self.objective.predictive_weight > 0:
            predictive = self._predictive_loss(hidden, input_ids, features.pooler_output)
            loss = loss + self.objective.predictive_weight * predictive
        parts: dict[str, Any] = {"loss": loss, "logits": logits, "rope_deltas": outputs.rope_deltas}
        return PlannerOutput(**parts, aux_loss=None if predictive is None else predictive.detach())

    def _predictive_loss(self, hidden: Tensor, input_ids: Tensor, features: Sequence[Tensor]) -> Tensor:
        """L_Pre. hidden: [B, L, D]; features: per image the merger's output [n, Z]."""
        is_image = input_ids == self.config.image_token_id
        tokens = [len(feature) for feature in features]
        pairs = predictive_pairs(
            images_per_row(is_image.sum(1).tolist(), tokens), self.objective.cameras, self.objective.window
        )
        states = hidden[is_image].split(tokens)  # per image [n, D]
        if not pairs:
            return self.predictive_head(states[0][:1]).sum() * 0.0  # keeps the head in every graph
        predicted = self.predictive_head(torch.cat([states[source] for source, _ in pairs]))
        return predictive_coding_loss(predicted, torch.cat([features[target] for _, target in pairs]))


def predictive_coding_loss(predicted: Tensor, target: Tensor) -> Tensor:
    """Eq. 6 over tokens [N, Z], in float32; no gradient flows into the target."""
    predicted, target = predicted.float(), target.detach().float()
    cosine = F.cosine_similarity(predicted, target, dim=-1)
    return F.mse_loss(predicted, target) + (1.0 - cosine).mean()


def text_loss(logits: Tensor, labels: Tensor, objective: ObjectiveConfig) -> Tensor:
    """Next-token cross-entropy over the label tokens, those of `answer_token_ids` weighted up.

    logits [B, K, V], labels [B, K] unshifted. The sum is divided by the number of label tokens.
    """
    targets = labels[:, 1:].reshape(-1)
    losses = F.cross_entropy(
        logits[:, :-1].reshape(-1, logits.shape[-1]).float(), targets, ignore_index=-100, reduction="none"
    )
    if objective.answer_weight != 1.0:
        deciding = torch.isin(targets, targets.new_tensor(objective.answer_token_ids))
        losses = torch.where(deciding, losses * objective.answer_weight, losses)
    return losses.sum() / (targets != -100).sum().clamp(min=1)


def images_per_row(tokens_per_row: Sequence[int], tokens_per_image: Sequence[int]) -> list[int]:
    """How many images each row of the batch holds, given the counts of image tokens."""
    counts, image = [], 0
    for row, tokens in enumerate(tokens_per_row):
        first = image
        while tokens > 0 and image < len(tokens_per_image):
            tokens -= tokens_per_image[image]
            image += 1
        if tokens != 0:
            raise ValueError(f"row {row} has image tokens that belong to no whole image: truncated prompt?")
        counts.append(image - first)
    return counts


def predictive_pairs(images: Sequence[int], cameras: int, window: int) -> list[tuple[int, int]]:
    """(source, target) image indices over the batch: same camera, next timestep, inside the window.

    `images` is the number of images in each row. The recent window is the last `window` timesteps of
    a row, or all of them while an episode is younger: a prompt with keyframes has a full window.
    """
    pairs, first = [], 0
    for count in images:
        if count % cameras:
            raise ValueError(f"a sample has {count} images, which is no multiple of {cameras} cameras")
        end = first + count
        start = end - cameras * min(window, count // cameras)
        pairs += [(image, image + cameras) for image in range(start, end - cameras)]
        first = end
    return pairs
