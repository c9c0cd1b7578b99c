"""The sentences and clauses that the instructions of the long tasks are put together from.

A tiny planner's tokenizer can know each as one token, so that it reads an instruction that it was not trained with. The
part of its recipe that lists them is written by
`python -m predimem.envs.arena.long.sentences > configs/planner/arena_long_sentences.yaml`; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from predimem.envs.arena.long.compose import MEANWHILE, WAIT
from predimem.envs.arena.long.module import Module
from predimem.envs.arena.long.templates import COMPOSITIONS, TEMPLATES


def sentences() -> list[str]:
    """In the order of the templates, each once."""
    modules = (module for template in TEMPLATES for i in range(COMPOSITIONS) for module in template.modules_of(i))
    return list(dict.fromkeys([WAIT, MEANWHILE, *(text for module in modules for text in _said(module))]))


def _said(module: Module) -> Iterable[str]:
    parts = (module.before, module.free, module.after)
    return (text for text in (*(part.sentence for part in parts if part), module.told) if text)


def as_yaml() -> str:
    how = "python -m predimem.envs.arena.long.sentences > configs/planner/arena_long_sentences.yaml"
    head = f"# What the instructions of the long tasks are put together from. Written by `{how}`\n"
    known = {"extends": "arena.yaml", "base": {"tokenizer": {"sentences": sentences()}}}
    return head + yaml.safe_dump(known, sort_keys=False, width=1000)


if __name__ == "__main__":
    print(as_yaml(), end="")
