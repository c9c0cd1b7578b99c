"""Images that are painted when they are first needed: labels of the groceries, wood, tiles, a microwave's front.

Every painter returns uint8 [height, width, 3], sRGB, the first row on top; its edges meet where it is repeated.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from predimem.envs.arena.scene.patterns import pattern

PATTERN = "pattern "  # the beginning of a pattern's name, before its number
Colour = tuple[int, int, int]
WHITE, BLACK = (250, 250, 248), (28, 26, 26)


def paint(name: str) -> np.ndarray:
    """The image of that name: a key of `PAINTERS`, or `PATTERN` and a number."""
    if name.startswith(PATTERN):
        return pattern(int(name.removeprefix(PATTERN)))
    return np.asarray(PAINTERS[name]().convert("RGB"))


def _canvas(width: int, height: int, colour: Colour) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image = Image.new("RGB", (width, height), colour)
    return image, ImageDraw.Draw(image)


def _word(draw: ImageDraw.ImageDraw, centre: tuple[float, float], text: str, height: int, colour: Colour) -> None:
    draw.text(centre, text, colour, ImageFont.load_default(height), anchor="mm", stroke_width=1)


def _disc(draw: ImageDraw.ImageDraw, x: float, y: float, radius: float, colour: Colour) -> None:
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), colour)


def _cookies() -> Image.Image:
    image, draw = _canvas(128, 96, (36, 84, 200))
    _word(draw, (64, 15), "COOKIES", 22, WHITE)
    _disc(draw, 64, 59, 34, (232, 180, 104))
    for x, y in ((52, 45), (74, 43), (64, 60), (46, 66), (84, 62), (66, 80)):
        _disc(draw, x, y, 6, (82, 44, 20))
    return image


def _butter() -> Image.Image:
    image, draw = _canvas(128, 96, (252, 212, 40))
    draw.ellipse((6, 26, 121, 70), (255, 240, 170))
    _word(draw, (64, 48), "BUTTER", 25, (150, 84, 10))
    return image


def _popcorn() -> Image.Image:
    image, draw = _canvas(128, 128, (208, 20, 32))
    for k in range(4):
        draw.rectangle((32 * k + 12, 0, 32 * k + 19, 127), WHITE)
    for x, y in ((14, 14), (38, 8), (62, 16), (88, 8), (112, 14), (26, 24), (50, 26), (76, 26), (100, 24)):
        _disc(draw, x, y, 12, (255, 244, 206))
        _disc(draw, x + 3, y + 3, 3, (240, 196, 84))
    draw.rectangle((6, 62, 121, 98), (208, 20, 32))
    _word(draw, (64, 80), "POPCORN", 23, WHITE)
    return image


def _cream_cheese() -> Image.Image:
    image, draw = _canvas(128, 96, (40, 178, 164))
    draw.ellipse((10, 12, 117, 84), WHITE)
    _word(draw, (64, 37), "cream", 25, (16, 110, 100))
    _word(draw, (64, 60), "cheese", 25, (16, 110, 100))
    return image


def _chocolate_pudding() -> Image.Image:
    image, draw = _canvas(128, 96, (78, 42, 22))
    draw.rectangle((0, 70, 127, 95), (196, 40, 120))
    _word(draw, (64, 82), "PUDDING", 20, WHITE)
    for radius, colour in ((30, (246, 226, 190)), (21, (120, 66, 34)), (12, (246, 226, 190))):
        draw.ellipse((64 - 1.4 * radius, 36 - radius, 64 + 1.4 * radius, 36 + radius), colour)
    return image


def _tomato_sauce() -> Image.Image:
    image, draw = _canvas(256, 96, (196, 24, 22))
    for k in range(4):
        x = 32 + 64 * k
        _disc(draw, x, 60, 27, (252, 240, 214))
        _disc(draw, x, 63, 19, (226, 40, 30))
        for dx in (-8, 0, 8):
            draw.polygon([(x, 50), (x + dx - 4, 40), (x + dx + 4, 40)], (40, 130, 50))
        _word(draw, (x, 16), "TOMATO", 15, WHITE)
    return image


def _milk() -> Image.Image:
    image, draw = _canvas(96, 128, WHITE)
    for box in ((-14, 34, 26, 66), (50, 20, 84, 44), (66, 76, 110, 104), (20, 84, 46, 100)):
        draw.ellipse(box, BLACK)
    draw.rectangle((0, 108, 95, 127), (30, 110, 220))
    draw.rectangle((0, 48, 95, 76), (30, 110, 220))
    _word(draw, (48, 62), "MILK", 28, WHITE)
    return image


def _orange_juice() -> Image.Image:
    image, draw = _canvas(96, 128, (250, 142, 20))
    _disc(draw, 48, 80, 36, (255, 244, 220))
    _disc(draw, 48, 80, 31, (255, 168, 40))
    for k in range(4):
        dx, dy = 31 * np.cos(k * np.pi / 4), 31 * np.sin(k * np.pi / 4)
        draw.line((48 - dx, 80 - dy, 48 + dx, 80 + dy), (255, 244, 220), 3)
    draw.ellipse((50, 34, 84, 50), (50, 150, 50))
    _word(draw, (48, 18), "JUICE", 26, WHITE)
    return image


def _wine() -> Image.Image:
    image, draw = _canvas(192, 64, (244, 236, 214))
    for k in range(3):
        x = 32 + 64 * k
        for dx, dy in ((-10, 0), (0, 0), (10, 0), (-5, 9), (5, 9), (0, 18)):
            _disc(draw, x + dx, 32 + dy, 6, (108, 22, 74))
        draw.line((x, 26, x, 16), (60, 100, 40), 3)
    draw.rectangle((0, 0, 191, 6), (150, 24, 44))
    draw.rectangle((0, 57, 191, 63), (150, 24, 44))
    return image


def _named(name: str, ground: Colour, band: Colour, ink: Colour) -> Callable[[], Image.Image]:
    """The plain label of a thing that no task names: its name on a band."""

    def painted() -> Image.Image:
        image, draw = _canvas(128, 96, ground)
        draw.rectangle((0, 28, 127, 68), band)
        _word(draw, (64, 48), name, 24, ink)
        return image

    return painted


def _microwave_front() -> Image.Image:
    """The window on the left, the panel on the right, which is the hinge's side."""
    image, draw = _canvas(192, 128, (196, 199, 204))
    draw.rectangle((3, 3, 188, 124), (62, 64, 70))
    draw.rectangle((26, 20, 134, 106), (18, 22, 30))
    for x in range(32, 134, 8):  # the metal mesh behind the pane
        draw.line((x, 22, x, 104), (40, 46, 56))
    for y in range(26, 106, 8):
        draw.line((28, y, 132, y), (40, 46, 56))
    draw.polygon([(40, 104), (70, 22), (84, 22), (54, 104)], (58, 68, 82))
    draw.rectangle((144, 12, 182, 32), (10, 40, 26))
    _word(draw, (163, 22), "12:00", 13, (90, 250, 140))
    for row in range(4):
        for column in range(3):
            x, y = 150 + 13 * column, 46 + 15 * row
            draw.rectangle((x - 5, y - 5, x + 4, y + 5), (214, 216, 220))
    draw.rectangle((145, 104, 181, 116), (70, 180, 90))
    return image


def _wood(colour: Colour, seed: int) -> Image.Image:
    """Grain that runs from left to right; it repeats without a seam."""
    rng = np.random.default_rng(seed)
    x, y = np.meshgrid(np.arange(64) / 64, np.arange(64) / 64)
    grain = np.zeros((64, 64))
    for k in (3, 5, 9, 14, 23):
        phase, bend = rng.uniform(0, 2 * np.pi, 2)
        grain += np.sin(2 * np.pi * k * y + phase + 0.8 * np.sin(2 * np.pi * x + bend)) / np.sqrt(k)
    shade = 1 + 0.07 * grain + rng.normal(0, 0.015, (64, 64))
    return Image.fromarray((np.array(colour) * shade[..., None]).clip(0, 255).astype(np.uint8))


def _stone() -> Image.Image:
    speckle = np.random.default_rng(5).normal(0, 5, (64, 64, 1))
    return Image.fromarray((np.array((176, 172, 164)) + speckle).clip(0, 255).astype(np.uint8))


def _tiles() -> Image.Image:
    image, draw = _canvas(64, 64, (222, 232, 230))
    draw.rectangle((0, 0, 63, 2), (150, 160, 160))
    draw.rectangle((0, 0, 2, 63), (150, 160, 160))
    return image


def _floor() -> Image.Image:
    image, draw = _canvas(64, 64, (150, 118, 92))
    draw.rectangle((0, 0, 31, 31), (168, 134, 106))
    draw.rectangle((32, 32, 63, 63), (168, 134, 106))
    return image


def _wicker() -> Image.Image:
    image, draw = _canvas(32, 32, (150, 104, 52))
    for k in range(2):
        for row in range(2):
            x, y = 16 * k + (row % 2) * 8, 16 * row
            draw.rounded_rectangle((x + 1, y + 2, x + 13, y + 13), 4, (214, 166, 92))
    return image


PAINTERS: dict[str, Callable[[], Image.Image]] = {
    "cookies": _cookies,
    "butter": _butter,
    "popcorn": _popcorn,
    "cream_cheese": _cream_cheese,
    "chocolate_pudding": _chocolate_pudding,
    "tomato_sauce": _tomato_sauce,
    "milk": _milk,
    "orange_juice": _orange_juice,
    "wine": _wine,
    "tea": _named("TEA", (112, 66, 168), (236, 224, 250), (70, 30, 120)),
    "soap": _named("SOAP", (250, 150, 196), WHITE, (190, 40, 110)),
    "oats": _named("OATS", (124, 138, 58), (240, 236, 200), (70, 80, 24)),
    "mustard": _named("MUSTARD", (20, 30, 70), (244, 206, 30), BLACK),
    "microwave_front": _microwave_front,
    "wood": lambda: _wood((158, 104, 60), 1),
    "wood_light": lambda: _wood((206, 160, 104), 2),
    "wood_dark": lambda: _wood((104, 66, 40), 3),
    "wood_pale": lambda: _wood((226, 196, 150), 4),
    "stone": _stone,
    "tiles": _tiles,
    "floor": _floor,
    "wicker": _wicker,
}
