"""What an instruction asks for, before the steps that go without saying are added."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Event:
    """One thing to do. verb: "pick", "put", "pour", "open", "close" or "look" (into joints, one after the other).

    things: objects, or joints. where: the place, or what is poured into or over; beside: the object whose
    place it is. count: of pours. clause: the index of the clause that said it. how: of doors, "each" (as soon
    as it was filled) or "all" where no joint is named, and "up" for looking from the bottom up.
    """

    verb: str
    things: tuple[str, ...]
    where: str = ""
    beside: str = ""
    count: int = 0
    clause: int = 0
    how: str = ""

    def said(self) -> str:
        """In short, for messages."""
        where = f" -> {self.where or 'beside ' + self.beside}" if self.verb in ("put", "pour") else ""
        return f"{self.verb} {', '.join(self.things) or '...'}{where}"
