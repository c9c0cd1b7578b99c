"""What the flow time does to the action expert, computed once for the fixed Euler steps.

The norms' scales, shifts and gates are linear in the condition, which is the time's embedding plus, with a locator, its
hint. So those of the times are a table, and the hint is one product for all of them.
"""
# ruff: noqa: F722 (shapes in annotations)

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from actor.action_expert import ActionExpert
from actor.engine.layers import Modulation
from actor.gemma import AdaRMSNorm, GemmaLayer


class Schedule(nn.Module):
    """The modulations of all norms at the Euler steps' times, and at time 0, which is that of clean actions."""

    table: Tensor
    hinted: Tensor

    def __init__(self, expert: ActionExpert, num_steps: int, hints: bool) -> None:
        super().__init__()
        if num_steps < 1:
            raise ValueError(f"num_steps must be at least 1, got {num_steps}")
        norms: list[AdaRMSNorm] = []
        for layer in expert.layers:
            assert isinstance(layer, GemmaLayer)
            norms += [n for n in (layer.input_layernorm, layer.post_attention_layernorm) if isinstance(n, AdaRMSNorm)]
        norms.append(expert.norm)
        self.num_steps, self._norms = num_steps, len(norms)
        self._precision = expert.precision().dtype
        device = expert.precision().device
        times = torch.tensor([1.0 - step / num_steps for step in range(num_steps)] + [0.0], device=device)
        with torch.no_grad():
            condition = expert.condition(times)
            table = torch.stack([norm.dense(condition).unflatten(-1, (3, -1)) for norm in norms], dim=1)
            table[:, :, 0] += 1.0
        self.register_buffer("table", table.float())  # [steps + 1, norms, 3, width]
        stacked = torch.cat([norm.dense.weight for norm in norms]).detach() if hints else torch.zeros(0)
        self.register_buffer("hinted", stacked.float())  # [norms · 3 · width, width]

    def rows(
        self, hint: Float[Tensor, "n width"] | None, known: Bool[Tensor, "n h"] | None = None
    ) -> list[list[Modulation]]:
        """For each Euler step the modulations of the norms, in their order.

        known: the actions that are given, and therefore at time 0 throughout.
        """
        table = self.table[:, :, :, None, None]  # steps + 1, norms, 3, n, l, width
        if hint is not None:
            moved = (hint.float() @ self.hinted.t()).unflatten(-1, (self._norms, 3, -1)).movedim(0, 2)
            table = table + moved[:, :, :, None]
        if known is not None:
            table = torch.where(known[:, :, None], table[-1:], table)
        flat = table.flatten(0, 2).unbind(0)
        if self._precision != torch.float32:
            flat = tuple(t.to(self._precision) if i % 3 == 2 else t for i, t in enumerate(flat))
        of_norms = [(flat[i], flat[i + 1], flat[i + 2]) for i in range(0, len(flat), 3)]
        return [of_norms[step * self._norms : (step + 1) * self._norms] for step in range(self.num_steps)]
