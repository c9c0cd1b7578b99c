"""The labels and names of things in long tasks: labels are those of the 26 tasks, to the letter."""

from __future__ import annotations

# The first, second, ... time that an object is picked up in an episode.
PICK = {
    "cookies": ("pick cookies",),
    "butter": ("pick butter",),
    "popcorn": ("pick popcorn",),
    "cream_cheese": ("pick cream cheese", "pick cream"),
    "chocolate_pudding": ("pick chocolate", "pick chocolate pudding"),
    "tomato_sauce": ("pick tomato sauce", "pick tomato"),
    "milk": ("pick milk",),
    "orange_juice": ("pick orange juice",),
    "wine_bottle": ("pick wine bottle",),
}
_IN_CONTAINER = {
    "basket": {
        "cookies": "place cookies into basket",
        "butter": "place butter into basket",
        "popcorn": "place popcorn into basket",
        "cream_cheese": "place cream into basket",
        "chocolate_pudding": "place pudding into basket",
        "tomato_sauce": "place tomato into basket",
    },
    "plate": {
        "butter": "place butter plate2",
        "cream_cheese": "place cream cheese plate2",
        "chocolate_pudding": "place chocolate pudding plate2",
    },
    "shelf": {
        "butter": "place butter cabinet2",
        "chocolate_pudding": "place chocolate cabinet2",
        "tomato_sauce": "place tomato sauce cabinet2",
        "milk": "place milk cabinet2",
        "orange_juice": "place orange juice cabinet2",
    },
}
_IN_DRAWER = {
    "cookies": "place cookies: {which} drawer",
    "butter": "place butter into {which} drawer",
    "chocolate_pudding": "place chocolate: {which} drawer",
}
CONTAINERS = {"basket": "basket", "plate": "plate", "shelf": "shelf cabinet"}
INTO = {"basket": "into", "plate": "onto", "shelf": "into"}
IN = {"basket": "in", "plate": "on", "shelf": "in"}
OUT_OF = {"basket": "out of", "plate": "off", "shelf": "out of"}


def spoken(name: str) -> str:
    """What people call an object."""
    return name.replace("_", " ")


def which_drawer(drawer: str) -> str:
    return drawer.removesuffix("_drawer")


def pick_label(object: str, times: int = 1) -> str:
    """times: how often it was picked up in the episode, this time included."""
    return PICK[object][times - 1]


def container_label(object: str, kind: str, side: str) -> str:
    """kind: of `CONTAINERS`; side: left or right."""
    return f"{_IN_CONTAINER[kind][object]}: {kind} {side}"


def drawer_label(object: str, drawer: str) -> str:
    return _IN_DRAWER[object].format(which=which_drawer(drawer))
