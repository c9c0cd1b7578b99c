"""Which part of a camera's image the planner is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

Crop = Mapping[str, Sequence[float]]  # camera -> (left, top, right, bottom), as fractions of its image


def check_crop(crop: Crop) -> None:
    """Raises ValueError for a part that is empty or not inside the image."""
    for camera, part in crop.items():
        if len(part) != 4 or not (0 <= part[0] < part[2] <= 1 and 0 <= part[1] < part[3] <= 1):
            raise ValueError(
                f"the crop of {camera} must be left, top, right and bottom as fractions of the image, with left < "
                f"right and top < bottom, got {list(part)}"
            )


def cropped(image: np.ndarray, camera: str, crop: Crop) -> np.ndarray:
    """uint8 [H, W, 3] -> the part that is shown, uint8 [h, w, 3]; the image itself where nothing is cropped."""
    if camera not in crop:
        return image
    height, width = image.shape[:2]
    left, top, right, bottom = crop[camera]
    return image[round(top * height) : round(bottom * height), round(left * width) : round(right * width)]
