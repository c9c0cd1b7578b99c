"""The long tasks: each template says what is in the scene, and which modules are put together.

A template has `COMPOSITIONS` variants, and the seed of an episode draws one of them, as in every task of the arena.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from predimem.core.suggestions import did_you_mean
from predimem.envs.arena.fixtures import DRAWERS
from predimem.envs.arena.long import containers, drawers, microwave, pours
from predimem.envs.arena.long.compose import compose, remembered
from predimem.envs.arena.long.module import Module, drawn, sides
from predimem.envs.arena.task import LONG, Task
from predimem.envs.arena.variant import Variant

COMPOSITIONS = 64
FIRST_ID = 2000  # of tasks: far from the 26 and from those of users
STREAM = 77  # of random numbers
UPPER = ("top_drawer", "middle_drawer")  # beside a shelf cabinet the arm cannot pull the bottom drawer out all the way

Rng = np.random.Generator


@dataclass(frozen=True)
class Template:
    """A kind of long task, of which each index gives a composition.

    modules: from random numbers to the modules of one composition, always with as many subtasks.
    """

    number: int
    title: str
    objects: tuple[str, ...]
    fixtures: tuple[str, ...]
    modules: Callable[[Rng], list[Module]]

    @property
    def name(self) -> str:
        return f"long-{self.number:02d}"

    def composition(self, index: int) -> Variant:
        """One of `COMPOSITIONS`; the same index always gives the same."""
        rng = self._rng(index)
        return compose(self.modules(rng), self.objects, rng)

    def modules_of(self, index: int) -> list[Module]:
        """What a composition is put together from."""
        return self.modules(self._rng(index))

    def remember(self, index: int) -> tuple[str, ...]:
        """What has to be remembered in a composition."""
        return remembered(self.modules_of(index))

    def _rng(self, index: int) -> Rng:
        return np.random.default_rng([STREAM, self.number, index])

    def task(self) -> Task:
        return Task(
            task_id=FIRST_ID + self.number,
            name=self.name,
            title=self.title,
            category=LONG,
            objects=self.objects,
            fixtures=self.fixtures,
            variants=tuple(self.composition(index) for index in range(COMPOSITIONS)),
            drawn=f"{COMPOSITIONS} compositions",
            remember="; ".join(self.remember(0)),
            same_order=False,
        )


def _search(rng: Rng, object: str, occupants: tuple[str, ...], among: tuple[str, ...] = DRAWERS) -> Module:
    order, wanted, empty = drawn(rng, among), drawn(rng, among)[0], bool(rng.integers(2))
    return drawers.search(object, occupants, order, wanted, empty)


def _side(rng: Rng) -> str:
    return sides(rng)[0]


def _apart(rng: Rng, kind: str, objects: tuple[str, str]) -> list[Module]:
    """Two objects go back, one into each container, so that neither gets full."""
    return [containers.put_back(o, kind, side) for o, side in zip(objects, sides(rng), strict=True)]


def _search_and_sauce(rng: Rng) -> list[Module]:
    return [_search(rng, "butter", ("cookies", "popcorn")), pours.sauce_in_two_goes()]


def _search_and_plates(rng: Rng) -> list[Module]:
    goods = drawn(rng, ("cream_cheese", "chocolate_pudding"))
    return [_search(rng, "butter", ("cookies", "popcorn")), *_apart(rng, "plate", (goods[0], goods[1]))]


def _sauce_and_shelves(rng: Rng) -> list[Module]:
    return [
        pours.sauce_from_shelf(_side(rng)),
        drawers.hide("popcorn", "butter", drawn(rng, UPPER)[0]),
        containers.transfer(drawn(rng, ("milk", "orange_juice")), "shelf", _side(rng)),
    ]


def _baskets_and_drawers(rng: Rng) -> list[Module]:
    looked, hidden, decoy = drawn(rng, DRAWERS)
    return [
        drawers.look(looked, decoy, "cookies", bool(rng.integers(2)), "butter", "basket"),
        drawers.hide("cream_cheese", "chocolate_pudding", hidden),
        *_apart(rng, "basket", ("tomato_sauce", "popcorn")),
    ]


def _search_and_wine(rng: Rng) -> list[Module]:
    return [_search(rng, "cookies", ("butter", "popcorn")), pours.wine(drawn(rng, ("red", "white"))[0])]


def _microwave_and_plates(rng: Rng) -> list[Module]:
    return [
        microwave.look("popcorn", bool(rng.integers(2)), "cookies", drawn(rng, DRAWERS)),
        *_apart(rng, "plate", ("cream_cheese", "chocolate_pudding")),
        containers.transfer(("butter",), "plate", _side(rng)),
    ]


def _search_and_shelves(rng: Rng) -> list[Module]:
    return [
        _search(rng, "butter", ("popcorn",), UPPER),
        pours.sauce_from_shelf(_side(rng)),
        containers.put_back(drawn(rng, ("milk", "orange_juice"))[0], "shelf", _side(rng)),
    ]


def _search_and_pan(rng: Rng) -> list[Module]:
    return [_search(rng, "butter", ("cookies", "popcorn")), pours.sauce_over_pudding()]


def _search_and_baskets(rng: Rng) -> list[Module]:
    return [_search(rng, "butter", ("cookies", "popcorn")), *_apart(rng, "basket", ("tomato_sauce", "cream_cheese"))]


def _there_and_back(rng: Rng) -> list[Module]:
    return [
        _search(rng, "butter", ("cookies", "popcorn")),
        containers.there_and_back("chocolate_pudding", "plate", _side(rng)),
        containers.put_back("cream_cheese", "plate", _side(rng)),
    ]


def _store_and_plates(rng: Rng) -> list[Module]:
    looked, decoy = drawn(rng, DRAWERS, 2)
    return [
        microwave.store(_side(rng)),
        drawers.look(looked, decoy, "popcorn", bool(rng.integers(2)), "butter", "plate"),
        containers.put_back("cream_cheese", "plate", _side(rng)),
    ]


def _wine_and_two_drawers(rng: Rng) -> list[Module]:
    first, second = drawn(rng, DRAWERS, 2)
    receivers = drawn(rng, ("butter", "cookies"))
    return [
        pours.wine(drawn(rng, ("red", "white"))[0]),
        drawers.hide("popcorn", receivers[0], first),
        drawers.hide("cream_cheese", receivers[1], second, start={"cream_cheese": "plate_left"}),
    ]


BOXES = ("butter", "cookies", "popcorn")
SHELVES, PLATES, BASKETS = (
    tuple(f"{kind}_{side}" for side in ("left", "right")) for kind in ("shelf", "plate", "basket")
)
TEMPLATES: tuple[Template, ...] = (
    Template(1, "Search and Sauce", (*BOXES, "tomato_sauce"), ("drainer", "frying_pan"), _search_and_sauce),
    Template(2, "Search and Plates", (*BOXES, "cream_cheese", "chocolate_pudding"), PLATES, _search_and_plates),
    Template(3, "Sauce and Shelves", (*BOXES, "tomato_sauce", "milk", "orange_juice"), SHELVES, _sauce_and_shelves),
    Template(
        4, "Baskets and Drawers", (*BOXES, "cream_cheese", "chocolate_pudding", "tomato_sauce"), BASKETS,
        _baskets_and_drawers,
    ),
    Template(5, "Search and Wine", (*BOXES, "wine_bottle"), ("mug_red", "mug_white"), _search_and_wine),
    Template(6, "Microwave and Plates", (*BOXES, "cream_cheese", "chocolate_pudding"), PLATES, _microwave_and_plates),
    Template(7, "Search and Shelves", (*BOXES, "tomato_sauce", "milk", "orange_juice"), SHELVES, _search_and_shelves),
    Template(
        8, "Search and Pan", (*BOXES, "chocolate_pudding", "tomato_sauce"), ("drainer", "frying_pan"), _search_and_pan
    ),
    Template(9, "Search and Baskets", (*BOXES, "cream_cheese", "tomato_sauce"), BASKETS, _search_and_baskets),
    Template(10, "There and Back", (*BOXES, "cream_cheese", "chocolate_pudding"), PLATES, _there_and_back),
    Template(11, "Store and Plates", (*BOXES, "chocolate_pudding", "cream_cheese"), PLATES, _store_and_plates),
    Template(
        12, "Wine and Two Drawers", ("wine_bottle", "popcorn", "cream_cheese", "butter", "cookies"),
        ("plate_left", "mug_red", "mug_white"), _wine_and_two_drawers,
    ),
)  # fmt: skip


@functools.cache
def long_tasks() -> tuple[Task, ...]:
    """All long tasks; made when they are first asked for."""
    return tuple(template.task() for template in TEMPLATES)


def long_task(key: str) -> Task:
    """A long task by its number ("1"), name or Gymnasium id. Raises ValueError for an unknown one, naming all."""
    name = f"long-{int(key):02d}" if key.isdecimal() else key
    for task in long_tasks():
        if name in (task.name, task.env_id):
            return task
    names = [task.name for task in long_tasks()]
    raise ValueError(
        f"unknown long task {key!r}{did_you_mean(key, names)}: expected a number from 1 to {len(names)} or a name; "
        f"there are: {', '.join(names)}"
    )
