"""Images for browsers."""

from __future__ import annotations

import io

import numpy as np


def jpeg(image: np.ndarray) -> bytes:
    """image: uint8 [H, W, 3]. Colours are not thinned out: these images are small, and colours are what matters."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "JPEG", quality=92, subsampling=0)
    return buffer.getvalue()
