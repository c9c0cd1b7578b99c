"""A cache of the features of a frozen vision tower: each distinct image is computed once.

In training on stored episodes many samples show the same frame, and a frozen tower gives the same features each time.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.models.qwen3_vl.modeling_qwen3_vl import (
    BaseModelOutputWithDeepstackFeatures,
    Qwen3VLModel,
)


class FeatureCache:
    """It is called like `Qwen3VLModel.get_image_features`. It remembers everything, and serves one process."""

    def __init__(self, model: Qwen3VLModel):
        self._model: list[Any] = [model]  # in a list, so that no module registers it twice
        self._known: dict[int, list[Tensor]] = {}  # hash of the patches -> merged, deepstack 0, 1, ...

    def __len__(self) -> int:
        return len(self._known)

    @torch.no_grad()
    def __call__(self, pixel_values: Tensor, image_grid_thw: Tensor, **_: Any) -> Any:
        """pixel_values [patches, C], image_grid_thw [images, 3]: features of every image in order."""
        images = pixel_values.split(image_grid_thw.prod(-1).tolist())
        keys = [hash(image.numpy().tobytes()) for image in images]
        new = {key: i for i, key in enumerate(keys) if key not in self._known}
        if new:
            index = list(new.values())
            output = self._model[0].get_image_features(
                torch.cat([images[i] for i in index]), image_grid_thw[index], return_dict=True
            )
            per_image = zip(output.pooler_output, *output.deepstack_features, strict=True)
            for key, parts in zip(new, per_image, strict=True):
                self._known[key] = [part.clone() for part in parts]  # a slice would keep its whole batch
        merged, *deepstack = (list(parts) for parts in zip(*(self._known[key] for key in keys), strict=True))
        features: dict[str, Any] = {"pooler_output": merged, "deepstack_features": deepstack}
        return BaseModelOutputWithDeepstackFeatures(**features)
