"""In what order the clauses of an instruction happen: "before", "after" and "but first" undone."""

from __future__ import annotations

from itertools import groupby

from datagen.decompose.clauses import Clause


def in_order(clauses: list[Clause]) -> list[int]:
    """The indices of the clauses in the order in which what they say happens."""
    sentences: list[list[int]] = []
    for _, group in groupby(range(len(clauses)), key=lambda i: clauses[i].sentence):
        said = list(group)
        led = [i for i in said if clauses[i].link == "before" and not clauses[said[0]].trailing]
        if led and led[0] == said[0]:  # "before A, B"
            said = [i for i in said if i not in led] + led
        said = _after(said, clauses)
        front = [i for i in said if clauses[i].front]
        said = [i for i in said if i not in front]
        if said or not sentences:
            sentences.append(front + said)  # "A, but first B"
        else:
            sentences.insert(-1, front)  # "A. Before that, B."
    return [i for sentence in sentences for i in sentence]


def _after(said: list[int], clauses: list[Clause]) -> list[int]:
    """ "A after B": what follows "after" or "once" goes before the clause that stands before it."""
    first = next((k for k, i in enumerate(said) if clauses[i].link in ("after", "once") and clauses[i].trailing), 0)
    if not first:
        return said
    last = first + 1
    while last < len(said) and clauses[said[last]].link == clauses[said[first]].link:
        last += 1
    return [*said[: first - 1], *said[first:last], said[first - 1], *said[last:]]
