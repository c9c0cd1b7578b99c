"""How people call the things of the arena.

Names are in lower case, and the usual one is first. A name may fit several things.
"""

from __future__ import annotations

CALLED: dict[str, tuple[str, ...]] = {
    "cookies": ("cookies", "cookie box", "box of cookies", "cookie", "biscuits"),
    "butter": ("butter", "stick of butter"),
    "popcorn": ("popcorn", "box of popcorn"),
    "cream_cheese": ("cream cheese", "cream", "cheese"),
    "chocolate_pudding": ("chocolate pudding", "pudding", "chocolate"),
    "tomato_sauce": ("tomato sauce", "sauce", "tomato", "ketchup"),
    "milk": ("milk",),
    "orange_juice": ("orange juice", "juice"),
    "wine_bottle": ("wine bottle", "wine", "bottle of wine", "red wine"),
    "table": ("table", "tabletop", "table top"),
    "basket_left": ("left basket", "basket"),
    "basket_right": ("right basket", "basket"),
    "drainer": ("drainer", "dish drainer", "bowl drainer", "drying rack", "dish rack"),
    "frying_pan": ("frying pan", "frypan", "fry pan", "pan", "skillet"),
    "mug_red": ("red mug", "red coffee mug", "red cup", "mug", "coffee mug", "cup"),
    "mug_white": ("white mug", "white coffee mug", "white cup", "mug", "coffee mug", "cup"),
    "plate_left": ("left plate", "plate"),
    "plate_right": ("right plate", "plate"),
    "shelf_left": ("left shelf", "left shelf cabinet", "shelf cabinet", "shelf", "cabinet"),
    "shelf_right": ("right shelf", "right shelf cabinet", "shelf cabinet", "shelf", "cabinet"),
    "top_drawer": ("top drawer", "upper drawer", "drawer"),
    "middle_drawer": ("middle drawer", "drawer"),
    "bottom_drawer": ("bottom drawer", "lower drawer", "drawer"),
    "microwave": ("microwave", "microwave oven", "oven", "microwave door", "oven door", "door"),
    **{
        f"{part}_{side}": tuple(f"{side} {half} of the {part.replace('_', ' ')}" for half in ("half", "side"))
        for part in ("top_drawer", "middle_drawer", "bottom_drawer", "microwave")
        for side in ("left", "right")
    },
}  # fmt: skip

# How an object may be called for what it looks like.
FORMS: dict[str, tuple[str, ...]] = {
    "box": ("box", "pack", "package", "packet"),
    "carton": ("carton",),
    "can": ("can", "tin"),
    "bottle": ("bottle",),
}
