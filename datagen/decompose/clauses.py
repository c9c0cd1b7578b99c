"""From tokens to clauses: one verb, what it acts on, where to, how often, and how clauses follow each other."""

from __future__ import annotations

from dataclasses import dataclass, field

from datagen.decompose.lexer import RulesError, Token
from datagen.decompose.vocabulary import Role, Target, Vocabulary

DOOR_VERBS = ("open", "close", "look")


@dataclass
class Mention:
    """Something that was named (names: all that are called so) or pointed at (pronoun).

    same: "the same drawer", "that drawer". preposition: what stood before it.
    """

    names: frozenset[str] = frozenset()
    pronoun: str = ""
    plural: bool = False
    same: bool = False
    preposition: str = ""
    text: str = ""


@dataclass
class Clause:
    """verbs: its verb, or "open" and "close" together; empty where there is none.

    landmark: what the place is described by ("beside the cookies"). link: "before", "after" or "once" where
    a conjunction subordinates it; trailing: it follows what it belongs to. front: "but before that", it happens
    before what was said before it. first, last: it was said to be. back: put back, aside. inward: put in. each:
    "each" or "all". sentence: index.
    """

    sentence: int
    verbs: list[str] = field(default_factory=list)
    objects: list[Mention] = field(default_factory=list)
    places: list[Mention] = field(default_factory=list)
    sources: list[Mention] = field(default_factory=list)
    landmark: Mention | None = None
    count: int = 0
    again: bool = False
    each: str = ""
    direction: str = ""
    back: bool = False
    inward: bool = False
    copula: bool = False
    modal: bool = False
    link: str = ""
    trailing: bool = False
    front: bool = False
    first: bool = False
    last: bool = False
    words: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return bool(self.objects and (self.places or self.landmark))

    @property
    def empty(self) -> bool:
        return not (
            self.verbs or self.objects or self.places or self.landmark or self.count or self.again or self.copula
        )


def read_clauses(tokens: list[Token], vocabulary: Vocabulary) -> list[Clause]:
    """The clauses of an instruction in the order in which they were said."""
    reader = _Reader(vocabulary)
    for token in tokens:
        reader.read(token)
    clauses = [clause for clause in reader.clauses if not clause.empty]
    for i, clause in enumerate(clauses):
        earlier = [c for c in clauses[:i] if c.sentence == clause.sentence and c.verbs != ["pick"]]
        later = i + 1 < len(clauses) and clauses[i + 1].sentence == clause.sentence
        clause.front |= clause.first and bool(earlier) and not later
    return clauses


class _Reader:
    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary = vocabulary
        self.clauses = [Clause(0)]
        self.preposition = ""
        self.boundary = False  # nothing but a comma, "and", "then" since the last content
        self.conjoined = False  # "and" or "then" among that
        self.forced = False  # the next content begins a clause
        self.link = ""  # of the clauses up to the next comma
        self.but = self.first = self.fronting = self.same = False

    @property
    def now(self) -> Clause:
        return self.clauses[-1]

    def read(self, token: Token) -> None:
        getattr(self, f"_{token.kind}")(token)
        self.now.words.append(token.text)

    def _begin(self, when: bool = True) -> Clause:
        """The clause that content goes to: a new one if `when`, or if one has to begin."""
        if (when or self.forced) and not self.now.empty:
            described = self.now.copula and not (self.now.verbs or self.now.modal or self.forced)
            self.clauses.append(Clause(self.now.sentence, link=self.link, copula=described))
            self.preposition = ""
        if self.now.last:
            raise RulesError("'last' is said before something else: name things in their order")
        self.now.front |= self.fronting
        self.now.first |= self.first
        self.first = self.conjoined = self.forced = self.boundary = False
        return self.now

    # ---- what divides

    def _stop(self, token: Token) -> None:
        now = self.now
        if token.text == ":" and now.places and not (now.objects or now.verbs or now.copula):
            self.boundary = False  # "top drawer: cookies"
            return
        self.clauses.append(Clause(self.now.sentence + 1))
        self.preposition = self.link = ""
        self.boundary = self.forced = self.but = self.first = self.fronting = self.same = False

    def _comma(self, token: Token) -> None:
        if self.link and not self.now.empty:
            self.link, self.forced = "", True
        self._and(token)
        self.conjoined = False

    def _and(self, token: Token) -> None:
        if self.preposition == "in" and self.now.verbs:
            self.now.inward = True  # "put them in, and"
        self.boundary, self.preposition, self.conjoined = True, "", True

    def _then(self, token: Token) -> None:
        if self.fronting:
            raise RulesError("'then' after 'but first': it is not clear what comes after what")
        self.boundary = self.conjoined = True

    def _but(self, token: Token) -> None:
        self.boundary = self.but = self.forced = True

    def _link(self, token: Token) -> None:
        trailing = not self.now.empty and not self.forced and not self.conjoined
        self.link = str(token.value)
        if not self.now.empty:
            self.clauses.append(Clause(self.now.sentence))
        self.now.link, self.now.trailing = self.link, trailing
        self.boundary, self.preposition, self.forced = False, "", False

    def _first(self, token: Token) -> None:
        if self.but:
            self.fronting |= self.forced
            self.now.front |= not self.forced
        elif self.boundary and not self.now.empty:
            self.first = True
        elif len(self.now.objects) > 1:
            raise RulesError("'first' is said of one of several: name them in their order")
        else:
            self.now.first = True

    def _last(self, token: Token) -> None:
        self.now.last |= not self.boundary and bool(self.now.objects)
        self.boundary = True

    def _front(self, token: Token) -> None:
        if self.now.empty or self.boundary:
            self.fronting = True
        else:
            self.now.front = True

    def _refuse(self, token: Token) -> None:
        raise RulesError(f"the rules do not understand {token.text!r} here: say what to do, not what to leave out")

    # ---- what a clause has

    def _verb(self, token: Token) -> None:
        verb = str(token.value)
        now = self.now
        if self.preposition == "where":
            return
        if now.verbs in (["pull"], ["push"]) and verb in ("open", "close") and not self.forced:
            now.verbs = [verb]
            return
        if now.verbs in (["pick"], ["put"]) and verb in ("open", "close") and now.places and not now.objects:
            now.verbs = [verb]  # "get the drawer open"
            return
        if now.verbs == ["leave open"] and verb == "open":
            now.verbs = ["close"]  # "do not leave it open"
            return
        if now.verbs == ["redo"] and verb == "pour" and not self.boundary:
            return  # "repeat the pour"
        bare_door = now.verbs and set(now.verbs) <= set(DOOR_VERBS) and not (now.places or now.objects)
        if bare_door and verb in DOOR_VERBS and not self.forced:
            now.verbs.append(verb)
            self.boundary = False
            return
        waits = now.objects or now.places  # "the butter", "in the top drawer, "
        told = self.boundary and (now.complete or (now.copula and not now.modal) or bool(now.link) or not waits)
        clause = self._begin(bool(now.verbs) or told)
        clause.verbs = [verb]
        self.preposition = ""

    def _preposition(self, token: Token) -> None:
        value = str(token.value)
        self.preposition = value

    def _same(self, token: Token) -> None:
        self.same = True

    def _thing(self, token: Token) -> None:
        roles = [target.roles for name in token.names if (target := self.vocabulary.find(name))]
        mention = Mention(token.names, "", token.plural, self.same, self.preposition, token.text)
        self.same = False
        is_object = bool(roles) and all(Role.OBJECT in found for found in roles)
        beside = self.preposition in ("where", "beside")
        if is_object and self.preposition == "with":
            beside = bool(self.now.objects) and self.now.verbs == ["put"]
        if beside and not self.forced:
            self.now.landmark = self.now.landmark or mention
            self.boundary = False
        elif is_object:
            self._object(mention)
        else:
            self._place(mention)

    def _object(self, mention: Mention) -> None:
        now = self.now
        if now.verbs == ["pour"]:
            full = len(now.objects) + len(now.places) >= 2
        else:
            full = now.complete or (now.verbs[:1] in (["open"], ["close"], ["look"]) and bool(now.places))
        self._begin(self.boundary and full).objects.append(mention)

    def _place(self, mention: Mention) -> None:
        now = self.now
        door = bool(now.verbs) and now.verbs[0] in DOOR_VERBS
        if mention.preposition == "from" and not self.forced:
            now.sources.append(mention)
            return
        merged = merge(now.places[-1], mention, self.vocabulary) if now.places and not self.forced else None
        if merged and not (door and self.boundary):
            now.places[-1] = merged
            self.boundary = False
            return
        full = now.complete and len(now.places) + bool(now.landmark) >= len(now.objects)
        new = self.boundary and full and not door
        self._begin(new).places.append(mention)

    def _pronoun(self, token: Token) -> None:
        pronoun, now = str(token.value), self.now
        mention = Mention(pronoun=pronoun, preposition=self.preposition, text=token.text, same=self.same)
        self.same = False
        if self.forced or (self.boundary and now.complete):
            now = self._begin()
        joins = self.preposition == "with" and now.objects and now.verbs == ["put"]  # "in with them"
        if self.preposition in ("where", "beside") or joins:
            now.landmark = now.landmark or mention
        elif mention.preposition == "from":
            now.sources.append(mention)
        elif mention.preposition in ("in", "on", "over") or pronoun in ("there", "exact", "one"):
            if not now.places:
                now.places.append(mention)
        elif now.verbs and now.verbs[0] in DOOR_VERBS:
            now.places.append(mention)
        elif not now.objects:
            now.objects.append(mention)

    def _count(self, token: Token) -> None:
        assert isinstance(token.value, int)
        self._begin(False).count += token.value

    def _again(self, token: Token) -> None:
        self._begin(False).again = True

    def _each(self, token: Token) -> None:
        self.now.each = self.now.each or str(token.value)

    def _copula(self, token: Token) -> None:
        self.now.copula = True

    def _modal(self, token: Token) -> None:
        self.now.modal = True

    def _back(self, token: Token) -> None:
        self.now.back = True

    def _direction(self, token: Token) -> None:
        self.now.direction = str(token.value)


def merge(first: Mention, second: Mention, vocabulary: Vocabulary) -> Mention | None:
    """Both as one place, if one describes the other ("the mat in the basket", "the drawer that is empty")."""
    if first.pronoun in ("one", "there", "it") and not second.pronoun:
        second.same |= first.same
        return second
    if not (second.names or second.pronoun) or not (first.names or first.pronoun):
        return first if second.names else second  # "in use", of several
    if second.pronoun:
        return first if first.names else None
    for narrow, wide in ((first, second), (second, first)):
        chosen = narrow.names if narrow.names <= wide.names else frozenset[str]()
        for name in narrow.names:
            target = vocabulary.find(name)
            if target and target.candidates and _may_be(target, wide.names, vocabulary):
                chosen = frozenset({name})
        if chosen:
            return Mention(chosen, "", narrow.plural, narrow.same or wide.same, first.preposition, narrow.text)
    return None


def _may_be(reference: Target, names: frozenset[str], vocabulary: Vocabulary) -> bool:
    """Whether a reference may be one of several places, or is a part of the one place that is named."""
    if len(names) > 1:
        return bool(names & {*reference.candidates, *vocabulary.doors(reference)})
    return all((target := vocabulary.find(name)) and target.behind in names for name in reference.candidates)
