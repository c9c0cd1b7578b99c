"""From an instruction to clauses, each of which has to have one of a few known forms, word for word.

Case, punctuation, articles and politeness do not matter. A verb may be replaced by another that means the same here,
and a thing may have any of the names that the vocabulary gives it. Nothing else is taken: a word that is passed over
could be the word that changes the meaning.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from datagen.decompose.vocabulary import Vocabulary


class RulesError(ValueError):
    """An instruction that the offline decomposer does not take; the message says why."""


class Clause(NamedTuple):
    """A clause of an instruction.

    form: a key of `FORMS`.
    slots: what stands in the groups of that form's pattern, "" where nothing does. Things are written as
        `_name_things` writes them; `things` reads them.
    """

    form: str
    slots: dict[str, str]


class Thing(NamedTuple):
    """A thing that was named.

    text: the words that name it.
    names: all targets of the scene that are called so.
    """

    text: str
    names: frozenset[str]


# Words that change nothing, wherever they stand.
PASSED_OVER = (
    r" , in (?:this|that) order ,"
    r"|\b(?:in (?:this|that) order|please|kindly|carefully|gently|now|also|too|as well"
    r"|(?:could|can|would) you|the|an?)\b"
)
# What stands between the things of a list, and between two clauses, once or several times.
JOIN = r"(?:,|and|then|next|after that|(?:when|once) that is done|afterwards|finally|lastly)"
SEPARATOR = rf"(?:\.|{JOIN})"
# The parts of the forms. A thing is written as `_name_things` writes it.
THING = r"<[^>]*>"
LIST = rf"{THING}(?:(?: {JOIN})+ {THING})*"
PUT = "(?:put|place|lay|set|stand|move|shift|bring|carry|take|get|transfer|relocate|store|stow|drop|return|add)"
IS_PUT = "(?:is|are) (?:put|placed|laid|set|stood|moved|stored|transferred|returned)"
GOES = f"(?:goes|go|belongs?|{IS_PUT})"
CLOSE = "(?:close|shut)"
LOOK = rf"(?:open and {CLOSE}|check|inspect|look (?:in|into|inside))"
TIMES = r"(?:once|twice|(?:two|2|three|3) times)"
AGAIN = r"(?: (?:again|once more|one more time|second time))?"
THEM = "it|them|they"
PLACE = (
    rf"(?:(?:same|that same|that) (?P<same>{THING})(?: as (?P<same_as>{THING}))?"
    rf"|(?P<container>{THING}) with (?P<mark>{THING})"
    rf"|(?P<place>{THING})"
    rf"(?: (?:that (?:is|lies) )?(?:in|inside)(?: one of(?: two)?)? (?P<inside>{THING}|it|there)| (?P<within>inside))?"
    r"|(?P<it>it))"
)
# The form of a clause -> its pattern, with the names of the slots.
FORMS = {
    "put": rf"(?:{PUT} (?:first )?(?P<objects>{LIST}|it)|(?P<subjects>{LIST}) {GOES})"
    rf"(?: away| back| over| down| back down)?"
    rf"(?: from (?P<source>{THING})(?: that (?:it is|they are) (?:in|on))?)?"
    rf" (?:(?:to )?where (?:you (?:put|left) )?(?P<where>{THING}|{THEM})(?: is| are| lies| lie)?"
    rf"|(?:(?:to|in|at|on) )?(?P<same_spot>same (?:place|spot|side))(?: as (?P<spot_of>{THING}))?"
    rf"|(?:right )?(?:beside|next to) (?P<beside>{THING}|{THEM})"
    rf"|(?:in )?(?P<there>there)|(?P<inside_it>in|inside)"
    rf"|(?P<preposition>in|into|inside|on|onto|to) {PLACE})",
    "pour": rf"pour (?:some )?(?P<object>{THING}|it)(?: (?P<times>{TIMES}))?"
    rf" (?:over|on|onto|on top of|in|into) (?P<receiver>{THING}|it)(?: (?P<times_after>{TIMES}))?{AGAIN}",
    "pick": rf"(?:pick up|take|grab) (?P<object>{THING})",
    "look": rf"{LOOK} (?P<joints>{LIST})(?: to see what is inside)?",
    "open": rf"(?:open(?: up)?|pull open) (?P<joints>{LIST})(?: again)?|pull (?P<pulled>{THING}) open",
    "close": rf"{CLOSE} (?:(?:that )?(?P<joint>{THING}|it)|that(?: one)?)(?: again)?"
    rf"|push (?P<pushed>{THING}|it) shut|(?P<subject>{THING}) is (?:closed|shut)",
    "too": rf"(?P<objects>{LIST})(?: after (?:it|them))?",
    "leave": rf"(?:leave|keep) (?P<joints>{LIST}|it|them) open",
}
# The forms in plain words, for the message of an error.
EXPECTED = (
    "put OBJECT into PLACE; put OBJECT where OBJECT is; move OBJECT, then OBJECT from PLACE to PLACE; pick up OBJECT; "
    "pour OBJECT over THING twice; open DRAWER; close DRAWER; leave DRAWER open; open and close DRAWER, DRAWER and "
    "DRAWER"
)
# Ways to name the three drawers, from the top one to the bottom one.
ALL_DRAWERS = (
    r"\b(?:top(?: drawer)? ,?(?: and)? ?middle(?: drawer)? ,? ?and bottom drawers?"
    r"|(?:all(?: of)?(?: three)?|three) drawers(?: from top to bottom)?|(?:each|every) drawer(?: from top to bottom)?)"
)


def plain(text: str) -> str:
    """A text in lower case, without the words that are passed over, and with full stops and commas as words."""
    text = re.sub(r"[;!?]", ".", re.sub(r"[<>-]", " ", text.lower()))
    text = " ".join(re.sub(r"([.,])", r" \1 ", text).split())
    return " ".join(re.sub(PASSED_OVER, " ", text).split())


def read_clauses(instruction: str, vocabulary: Vocabulary) -> list[Clause]:
    """The clauses of an instruction in their order. Raises RulesError at the first that has none of the forms."""
    if not instruction.strip():
        raise RulesError("it is empty")
    end = rf"{SEPARATOR}(?: |$)"
    text = re.sub(rf"\bits ({THING})", r"\1 in it", _name_things(plain(instruction), vocabulary))
    rest = re.sub(rf"^(?:first |{end})+", "", text + " .")
    clauses: list[Clause] = []
    while rest:
        form, match = _next_clause(rest, end, clauses[-1].form if clauses else "")
        if not match:
            said = re.sub(r"<([^:>]*):[^>]*>", r"\1", rest.split(" . ")[0]).replace(" ,", ",").strip(" .")
            scene = ", ".join(dict.fromkeys(target.called[0] for target in vocabulary.targets))
            raise RulesError(f"{said!r} does not begin with a form that it knows: {EXPECTED}. The scene has: {scene}")
        clauses.append(Clause(form, match.groupdict("")))
        rest = re.sub(rf"^(?:{end})+", "", match.string[match.end() :])
    return clauses


def _next_clause(text: str, end: str, before: str) -> tuple[str, re.Match[str] | None]:
    """The form of the clause that a text begins with, and its match; "" and None if it has none.

    "The butter into the pan" and "sauce over it twice" are clauses, too: a verb is added where a thing comes first. A
    thing alone is one only after a put: "move the butter to the other plate, then the cream cheese".

    before: the form of the clause before, "" for the first one, which may end in "first".
    """
    added = ("", "put ", "pour ") if text.startswith("<") else ("",)
    end = end if before else rf"(?:first )?{end}"
    forms = [(form, pattern, verb) for verb in added for form, pattern in FORMS.items() if form != "too"]
    forms += [("too", FORMS["too"], "")] if before in ("put", "too") else []
    for form, pattern, verb in forms:
        if match := re.match(rf"(?:{pattern}) (?={end})", verb + text):
            return form, match
    return "", None


def things(text: str) -> list[Thing]:
    """The things that a slot names."""
    return [Thing(said, frozenset(names.split("|"))) for said, names in re.findall(r"<([^:>]*):([^>]*)>", text)]


def _name_things(text: str, vocabulary: Vocabulary) -> str:
    """The text with each name of a thing as `<name:target|target>`, with all targets that are called so."""
    meant: dict[str, list[str]] = {}
    for target in vocabulary.targets:
        for name in target.called:
            meant.setdefault(plain(name), []).append(target.name)
    text = re.sub(ALL_DRAWERS, "top drawer , middle drawer and bottom drawer", text)
    names = "|".join(sorted(map(re.escape, meant), key=len, reverse=True))
    return re.sub(rf"\b({names})(s?)\b", lambda m: f"<{m[0]}:{'|'.join(meant[m[1]])}>", text)
