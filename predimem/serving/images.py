"""A camera's image as a client sent it: checked, and if it cannot be used, how the client mends it."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np

from predimem.serving.limits import LimitsConfig
from predimem.serving.refusal import Refusal


def read_image(name: str, found: Any, size: tuple[int, int], limits: LimitsConfig) -> np.ndarray:
    """uint8 [H, W, 3], RGB. size: (H, W). Raises Refusal (`malformed`) that says how to mend it."""
    if isinstance(found, bytes):
        found = _decode(name, found, size, limits)
    if not isinstance(found, np.ndarray):
        mend = {
            list: "; send a NumPy array: np.asarray(image, np.uint8)",
            str: "; send the bytes of the file as they are, without base64",
        }.get(type(found), "")
        raise Refusal(
            "malformed", f"{name}: expected a uint8 array or a PNG or JPEG file, got {type(found).__name__}{mend}"
        )
    if found.dtype != np.uint8 or found.shape != (*size, 3):
        raise Refusal(
            "malformed",
            f"{name}: expected uint8 {[*size, 3]} (height, width, RGB), got {found.dtype} {list(found.shape)}"
            f"{_mend(found, size)}",
        )
    return found


def _mend(found: np.ndarray, size: tuple[int, int]) -> str:
    """ "; cause: expression" for each thing that is wrong with an array, in the order in which they are mended."""
    causes, shape = [], found.shape
    if len(shape) == 4:
        causes.append("it is a batch of images: send the newest one, image[-1]")
        shape = shape[1:]
    if len(shape) == 3 and shape[0] in (1, 3, 4) and shape[2] not in (3, 4):
        causes.append("its channels come first (CHW): image.transpose(1, 2, 0)")
        shape = (*shape[1:], shape[0])
    if len(shape) == 2 or (len(shape) == 3 and shape[2] == 1):
        causes.append("it has one channel: np.stack([image.reshape(image.shape[:2])] * 3, -1)")
        shape = (*shape[:2], 3)
    if len(shape) == 3 and shape[2] == 4:
        causes.append("it has a fourth channel: image[..., :3]")
        shape = (*shape[:2], 3)
    if len(shape) != 3:
        return ""
    if found.dtype.kind == "f":
        low, high = (float(np.nanmin(found)), float(np.nanmax(found))) if found.size else (0.0, 255.0)
        unit = low >= -1.001 and high <= 1.001
        if unit and low < 0:
            causes.append("its values go from -1 to 1: (127.5 * (image + 1)).round().astype(np.uint8)")
        elif unit:
            causes.append("its values go from 0 to 1: (255 * image).round().astype(np.uint8)")
        else:
            causes.append("its values are floats: image.round().clip(0, 255).astype(np.uint8)")
    elif found.dtype != np.uint8:
        causes.append("its values are no uint8: image.clip(0, 255).astype(np.uint8)")
    if shape[:2] != size:
        height, width = size
        resize = f"openpi_client.image_tools.resize_with_pad(image, {height}, {width})"
        causes.append(f"its size is another one: resize it on the robot, which saves bandwidth, too: {resize}")
    return "".join(f"; {cause}" for cause in causes)


def _decode(name: str, data: bytes, size: tuple[int, int], limits: LimitsConfig) -> np.ndarray:
    """The size is known from the head of the file, before any memory is spent on the image."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as image:
                width, height = image.size
                if width * height * 3 > limits.array_bytes:
                    raise _too_large(name, f"{width} x {height} pixels", size)
                if image.mode[:1] in "IF":
                    raise Refusal(
                        "malformed", f"{name}: a file of 8 bits a channel is expected, got Pillow's mode {image.mode}"
                    )
                return np.asarray(image.convert("RGB"))
    except Refusal:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise _too_large(name, f"more than {Image.MAX_IMAGE_PIXELS} pixels", size) from None
    except Exception:  # Pillow raises many types on damaged files
        raise Refusal("malformed", f"{name}: not a PNG or JPEG file that can be read") from None


def _too_large(name: str, pixels: str, size: tuple[int, int]) -> Refusal:
    """The file claims so many, however few bytes it has; none of them was decoded."""
    height, width = size
    return Refusal("malformed", f"{name}: {pixels} are more than is allowed; send {width} x {height} (width x height)")
