"""Which kind of head a policy is, and how it is trained."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from memory_bank import MemoryConfig

Nomination = Literal["learned", "novelty", "none"]


@dataclass(frozen=True)
class HeadConfig:
    """kind: `memory` (attention over keyframes, and the recent window), `stack` (the recent window alone) or `gru`
    (a recurrent state in place of a memory).

    memory: what is remembered; a GRU has none.
    nomination: who nominates keyframes. `learned`: a network that was trained on what the decisions needed.
    `novelty`: a rule, which nominates what differs from all that the snapshot has by more than `novelty`, the root
    of the mean squared difference of the observations.
    width: of the layers; the kinds have about the same number of parameters.
    """

    kind: Literal["memory", "stack", "gru"] = "memory"
    memory: MemoryConfig = field(default_factory=MemoryConfig)
    nomination: Nomination = "none"
    novelty: float = 0.25
    width: int = 64

    def __post_init__(self) -> None:
        if self.kind != "memory" and self.nomination != "none":
            raise ValueError(f"nomination: a head of kind {self.kind!r} has no keyframes, got {self.nomination!r}")
        if (self.nomination == "none") == (self.kind == "memory" and self.memory.keyframes):
            raise ValueError(
                f"nomination: expected `learned` or `novelty` where there are keyframes and else `none`, "
                f"got {self.nomination!r}"
            )


def _bank(nomination: Nomination) -> HeadConfig:
    memory = MemoryConfig(recent_window=5, keyframe_capacity=16, cluster_gap_steps=1)
    return HeadConfig("memory", memory, nomination, width=56)


HEADS: dict[str, HeadConfig] = {
    "bank": _bank("learned"),
    "bank-novelty": _bank("novelty"),
    "no-keyframes": HeadConfig("memory", MemoryConfig(recent_window=5, keyframes=False), width=56),
    "frame-stack": HeadConfig("stack", MemoryConfig(recent_window=16, keyframes=False), width=36),
    "gru": HeadConfig("gru"),
}


@dataclass(frozen=True)
class HeadTraining:
    """steps: of the optimiser. batch: episodes in each, all of one task; of long ones fewer, so that they have at most
    `frames` together. The longer tasks join one after the other in the first half of the training.

    decisions: how many steps of an episode count in the loss. They are drawn so that the right actions are equally
    frequent among them, since the one that needs memory may be one in a thousand. All kinds of heads see the same.
    learned_from: the share of the steps after which the nominator begins to learn from what was attended to.
    bank_from: the share of the steps after which the head gets what the memory bank really keeps.
    """

    steps: int = 1_000
    batch: int = 32
    frames: int = 8_000
    decisions: int = 32
    learning_rate: float = 2e-3
    learned_from: float = 0.5
    bank_from: float = 0.7
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.learned_from < self.bank_from <= 1:
            raise ValueError(
                f"expected 0 <= learned_from < bank_from <= 1, got {self.learned_from} and {self.bank_from}"
            )
