"""Training a head by imitation of a teacher.

A head with a learned nominator learns in three parts. First it attends to all that an episode has shown, and
learns beside that what it would do without. The frames that its decisions then turn out to rest on teach the nominator
which frames are worth keeping. At last the head gets what the memory bank keeps when that nominator feeds it, as it
will when it acts.

Every batch is a function of (seed, step), so that all kinds of heads see the same episodes and the same decisions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, log_softmax

from actor.memory_head.config import HeadConfig, HeadTraining
from actor.memory_head.head import Head
from actor.memory_head.lessons import Batch, Lesson, draw_batch
from actor.memory_head.nets import Decision
from actor.memory_head.replay import Remembered, everything, kept, nothing
from predimem.core.progress import Bar

NEEDED_SHARE, NEEDED_LEAST = (
    0.25,
    0.02,
)  # a frame is worth keeping if decisions rest on it about as much as on any other
FOCUS = 0.03  # how much the entropy of the attention counts in the loss


def train_head(
    lessons: Mapping[str, Sequence[Lesson]], actions: int, config: HeadConfig, training: HeadTraining, name: str = ""
) -> Head:
    """A head that imitates the teacher of `lessons`, which are task -> episodes, the shorter tasks first."""
    torch.set_num_threads(training.threads)
    torch.manual_seed(training.seed)
    layout = next(iter(lessons.values()))[0].layout
    head = Head(config, layout, actions, {"tasks": list(lessons)})
    optimiser = torch.optim.Adam(head.modules.parameters(), training.learning_rate)
    decay = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda n: min(1.0, 3 * (1 - n / training.steps) + 0.02))
    losses: list[float] = []
    with Bar(training.steps, "steps", f"training {name}".strip()) as bar:
        for step in range(training.steps):
            done = step / training.steps
            batch = draw_batch(lessons, training, done, np.random.default_rng((training.seed, step)))
            loss = head_loss(head, batch, done, training)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(head.modules.parameters(), 1.0)
            optimiser.step()
            decay.step()
            losses.append(float(loss.detach()))
            bar.add(text=f"loss {np.mean(losses[-50:]):.3f}")
    head.trained |= {"steps": training.steps, "seed": training.seed, "loss": float(np.mean(losses[-50:]))}
    return head


def head_loss(head: Head, batch: Batch, done: float, training: HeadTraining) -> Tensor:
    """The loss of one batch. done: the share of the training that is over, in [0, 1)."""
    rows, labels = torch.from_numpy(batch.rows), torch.from_numpy(batch.labels)
    if head.config.kind == "gru":
        logits, _ = head.net(rows)
        chosen = logits.gather(1, torch.from_numpy(batch.steps)[..., None].expand(-1, -1, logits.shape[-1]))
        return cross_entropy(chosen.flatten(0, 1), labels.flatten())
    if head.config.kind == "stack":
        windows = nothing(batch, head.config).windows
        return cross_entropy(head.net(_rows_at(rows, windows)).logits.flatten(0, 1), labels.flatten())
    from_bank = done >= training.bank_from or head.config.nomination == "novelty"
    decision = _decide(head, rows, _shown(head, batch, from_bank))
    loss = cross_entropy(decision.logits.flatten(0, 1), labels.flatten())
    if decision.blind is not None and head.nominator is not None:
        loss = loss + cross_entropy(decision.blind.flatten(0, 1), labels.flatten())
        if done >= training.learned_from / 2:
            loss = loss + FOCUS * _entropy(decision)
        if training.learned_from <= done < training.bank_from:
            loss = loss + _nominator_loss(head, batch, needed(decision, labels))
    return loss


def needed(decision: Decision, labels: Tensor) -> Tensor:
    """bool [B, T]: the frames that the decisions of an episode rest on.

    A decision rests on a frame as far as it attends to it and gives the right action, of `labels` [B, S], more
    probability than it would without its memory.
    """
    assert decision.attention is not None and decision.blind is not None
    with torch.no_grad():
        right, blind = (
            log_softmax(logits, -1).gather(-1, labels.unsqueeze(-1)) for logits in (decision.logits, decision.blind)
        )
        weight = (decision.attention * (right - blind).clamp(0, 1)).amax(1)
        return weight >= (NEEDED_SHARE * weight.amax(-1, keepdim=True)).clamp(min=NEEDED_LEAST)


def _entropy(decision: Decision) -> Tensor:
    """Of the attention, in nats: low where it is on few frames, which can then be kept."""
    assert decision.attention is not None
    attention = torch.cat([decision.attention, 1 - decision.attention.sum(-1, keepdim=True)], -1).clamp(min=1e-9)
    return -(attention * attention.log()).sum(-1).mean()


def _nominator_loss(head: Head, batch: Batch, worth: Tensor) -> Tensor:
    lengths = torch.tensor([len(lesson.labels) for lesson in batch.lessons])
    there = torch.arange(batch.rows.shape[1]) < lengths[:, None]
    logits, targets = nomination_logits(head, batch)[there], worth[there].float()
    more = ((1 - targets).sum() / targets.sum().clamp(min=1)).clamp(1, 100)
    return binary_cross_entropy_with_logits(logits, targets, pos_weight=more)


def nomination_logits(head: Head, batch: Batch) -> Tensor:
    """float32 [B, T]: what the nominator says of each frame of the episodes."""
    assert head.nominator is not None
    rows = torch.from_numpy(batch.rows)
    before = torch.cat([torch.zeros_like(rows[:, :1]), rows[:, :-1]], 1)
    return head.nominator(torch.stack([rows, before], -2))


def _shown(head: Head, batch: Batch, from_bank: bool) -> Remembered:
    if not head.config.memory.keyframes:
        return nothing(batch, head.config)
    if not from_bank:
        return everything(batch, head.config)
    if head.nominator is None:
        return kept(batch, head, None)
    with torch.no_grad():
        worth = (nomination_logits(head, batch) > 0).numpy()
    return kept(batch, head, worth)


def _decide(head: Head, rows: Tensor, shown: Remembered) -> Decision:
    keyframes = torch.from_numpy(shown.keyframes)
    tokens = head.net.encoder(rows.gather(1, keyframes[..., None].expand(-1, -1, rows.shape[-1])))
    windows = head.net.encoder(_rows_at(rows, shown.windows))
    return head.net(windows, tokens, torch.from_numpy(shown.ages), torch.from_numpy(shown.there))


def _rows_at(rows: Tensor, steps: np.ndarray) -> Tensor:
    """float32 [B, S, W, D]: the rows of steps [B, S, W], zeros where a step is -1."""
    index = torch.from_numpy(steps)
    picked = rows[torch.arange(len(rows))[:, None, None], index.clamp(min=0)]
    return picked * (index >= 0).unsqueeze(-1)
