"""From the text of an instruction to tokens: names of the scene's things, verbs, and words of order and number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from datagen.decompose import lexicon as lx
from datagen.decompose.vocabulary import Role, Target, Vocabulary


class RulesError(ValueError):
    """The rules do not understand an instruction; the message says how far they came."""


@dataclass(frozen=True)
class Token:
    """kind: "thing", "verb", "preposition", "stop", "comma", or a kind of `lexicon.PHRASES`; value: what of that kind.

    Of a thing: the names of all targets that are called like this. plural: it was said of several ("drawers").
    """

    kind: str
    value: object
    text: str
    plural: bool = False

    @property
    def names(self) -> frozenset[str]:
        assert isinstance(self.value, frozenset)
        return self.value


def read_tokens(text: str, vocabulary: Vocabulary) -> list[Token]:
    """All tokens of an instruction; words that say nothing are left out.

    Raises RulesError naming every word that is not known.
    """
    words = list(_words(text))
    lexicon = _lexicon(vocabulary)
    heads = _elided(words, vocabulary)
    longest = max(len(phrase) for phrase in lexicon)
    tokens: list[Token] = []
    unknown: list[str] = []
    at = 0
    while at < len(words):
        size = next((n for n in range(min(longest, len(words) - at), 0, -1) if tuple(words[at : at + n]) in lexicon), 0)
        counted = _count(words, at)
        if counted and size < 2:
            tokens.append(counted)
            at += len(counted.text.split())
            continue
        if at in heads and size < 2:
            tokens.append(heads[at])
            at += 1
            continue
        if not size:
            unknown.append(words[at])
        elif (token := lexicon[tuple(words[at : at + size])]).kind != "filler":
            state = token.value in ("open", "close") and at and words[at - 1] in ("the", "an", "now", "still")
            if not state:  # "into the open drawer"
                tokens.append(token)
        at += max(size, 1)
    if unknown:
        known = ", ".join(dict.fromkeys(target.called[0] for target in vocabulary.targets))
        raise RulesError(f"unknown {_plural('word', unknown)} {', '.join(map(repr, unknown))}; the scene has: {known}")
    return tokens


def _plural(word: str, items: list[str]) -> str:
    return word if len(items) == 1 else word + "s"


def _words(text: str) -> Iterator[str]:
    """Words in lower case, punctuation marks as words of their own."""
    text = text.lower().replace("’", "'").replace("×", "x").replace("n't", " not").replace("cannot", "can not")
    text = re.sub(r"\b(there|it|that)'s\b", r"\1 is", text).replace("let's", "let us")
    text = text.replace("'re", " are").replace("'ve", " have").replace("'ll", " will")
    text = re.sub(r"'(s|d|m)\b", "", text).replace("'", "")
    text = re.sub(r"\s[-–]+\s|—|\.\.+", " ; ", text).replace("-", " ")
    text = re.sub(r"(\d)\s*x\b", r"\1x", text)
    yield from re.findall(r"\w+|[.,;:!?&]", text)


def _lexicon(vocabulary: Vocabulary) -> dict[tuple[str, ...], Token]:
    entries: dict[tuple[str, ...], Token] = {}

    def add(phrases: str, kind: str, value: object, *, divider: str | None = "|") -> None:
        for phrase in phrases.split(divider):
            entries[tuple(phrase.split())] = Token(kind, value, " ".join(phrase.split()))

    add(lx.FILLERS, "filler", "", divider=None)
    add(lx.FILLER_PHRASES, "filler", "")
    for kind, bases in lx.VERBS.items():
        for form in [*_forms(bases.split()), *lx.IRREGULAR.get(kind, "").split()]:
            add(form, "verb", kind)
    for kind, phrases in lx.VERB_PHRASES.items():
        for phrase in phrases.split("|"):
            first, *more = phrase.split()
            for form in _forms([first]):
                add(" ".join([form, *more]), "verb", kind)
    for value, phrases in lx.PREPOSITIONS.items():
        add(phrases, "preposition", value)
    for kind, values in lx.PHRASES.items():
        for value, phrases in values.items():
            add(phrases, kind, value)
    add(".|;|:|!|?", "stop", "")
    add(",", "comma", "")
    for word, phrases in lx.STATES.items():
        names = frozenset(t.name for t in vocabulary.targets if t.candidates and _is_called(t, word))
        add(phrases, "thing", names)  # no names: no place here is the only one like this
    for way, end in (("down", "top"), ("up", "bottom")):
        begun = product(("starting", "beginning", "start", "begin"), ("at", "with", "from"), ("", " one", " drawer"))
        for verb, preposition, noun in begun:
            add(f"{verb} {preposition} the {end}{noun}", "direction", way)
    entries |= _things(vocabulary)
    return entries


def _is_called(target: Target, word: str) -> bool:
    return any(word in name.split() for name in target.called)


def _things(vocabulary: Vocabulary) -> dict[tuple[str, ...], Token]:
    """Every name with what it may mean; "the top one" beside "the top drawer", and plurals of places."""
    meant: dict[tuple[str, ...], set[str]] = {}
    plurals: set[tuple[str, ...]] = set()
    for target in vocabulary.targets:
        for name in target.called:
            words = tuple(name.split())
            phrases: list[tuple[str, ...]] = [words]
            if Role.OBJECT not in target.roles:
                if len(words) > 1:
                    phrases.append((*words[:-1], "one"))
                noun = name.split()[-1]
                several = (*words[:-1], _several(noun))
                plurals.add(several)
                phrases.append(several)
            for phrase in phrases:
                meant.setdefault(phrase, set()).add(target.name)
    return {
        phrase: Token("thing", frozenset(names), " ".join(phrase), phrase in plurals) for phrase, names in meant.items()
    }


def _several(noun: str) -> str:
    return noun[:-1] + "ves" if noun.endswith("f") else noun + "s"


def _forms(bases: list[str]) -> list[str]:
    """The regular forms of verbs; some are no words, which does no harm."""
    forms = []
    for base in bases:
        stem = base.removesuffix("e")
        doubled = base + base[-1]
        forms += [base, f"{base}s", f"{base}es", f"{stem}ing", f"{stem}ed", f"{doubled}ing", f"{doubled}ed"]
        if base.endswith("y"):
            forms += [f"{base[:-1]}ies", f"{base[:-1]}ied"]
    return forms


def _count(words: list[str], at: int) -> Token | None:
    """ "two splashes" and the like; "once", where that is no conjunction."""
    if words[at] == "once" and (at + 1 == len(words) or words[at + 1] in (",", ".", ";", "!", "and", "then")):
        return Token("count", 1, "once")
    number = lx.NUMBERS.get(words[at])
    if number and at + 1 < len(words) and words[at + 1] in lx.COUNTED.split():
        return Token("count", number, " ".join(words[at : at + 2]))
    return None


def _elided(words: list[str], vocabulary: Vocabulary) -> dict[int, Token]:
    """ "the top, the middle and the bottom drawer": position of each word that leaves out its noun -> the thing."""
    named: dict[str, set[str]] = {}
    nouns: set[str] = set()
    for name in vocabulary.names(Role.JOINT):
        target = vocabulary.find(name)
        for called in target.called if target and not target.candidates else ():
            if len(called.split()) == 2 and called.split()[0] not in ("first", "second", "third"):
                named.setdefault(called.split()[0], set()).add(name)
                nouns |= {called.split()[1], _several(called.split()[1])}
    if not nouns & set(words):
        return {}
    return {
        at: Token("thing", frozenset(named[word]), word)
        for at, word in enumerate(words)
        if word in named and (at + 1 == len(words) or words[at + 1] not in nouns | {"one"})
    }
