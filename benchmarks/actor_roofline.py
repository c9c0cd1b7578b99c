"""How long a pass of the full-size π0.5 has to take on a GPU: a roofline of the fused engine, computed from the config.

Each phase takes as long as its multiplications or its memory traffic, whichever is longer. To that comes a gap for each
kernel, even within a CUDA graph. Kernels are counted by running a model of the same depths and tiny widths here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from actor.engine.fused import FusedPi05
from actor.gemma import GemmaConfig
from actor.pi05 import Pi05, Pi05Config, Prompted
from actor.siglip import SiglipConfig
from benchmarks.server.served import paragraph, table

PEAK = {"bfloat16": 989e12, "fp8": 1979e12}  # H100 SXM, dense, FLOP/s, by its data sheet
BANDWIDTH = 3.35e12  # bytes/s, by its data sheet
REACHED_FLOPS, REACHED_BYTES = 0.6, 0.8  # of these, an assumption
GAP_S = 1.2e-6  # between two kernels of a graph, an assumption


@dataclass(frozen=True)
class Phase:
    flops: float
    bytes: float

    def seconds(self, peak: float) -> float:
        return max(self.flops / (peak * REACHED_FLOPS), self.bytes / (BANDWIDTH * REACHED_BYTES))


def phases(config: Pi05Config, batch: int, views: int, prompt: int, steps: int, weight_bytes: int) -> dict[str, Phase]:
    """Images, prefix, and all Euler steps. Matrices of SigLIP stay in two bytes."""
    s, g, e = config.siglip, config.paligemma, config.action_expert
    patches = (s.image_size // s.patch_size) ** 2
    of_siglip = s.num_hidden_layers * (4 * s.hidden_size**2 + 2 * s.hidden_size * s.intermediate_size)
    tokens = views * patches + prompt
    images = batch * views * patches
    seen = batch * views * 4 * patches**2 * s.hidden_size * s.num_hidden_layers
    prefix, expert = of_gemma(g), of_gemma(e)
    attend = 4 * g.num_heads * g.head_dim * g.depth
    cache = 2 * 2 * g.depth * g.num_kv_heads * g.head_dim * batch * tokens
    rows = batch * config.action_horizon
    return {
        "images": Phase(2 * of_siglip * images + seen, 2 * of_siglip),
        "prefix": Phase(2 * prefix * batch * tokens + attend * batch * tokens**2, weight_bytes * prefix + cache),
        "Euler steps": Phase(
            steps * (2 * expert * rows + attend * rows * (tokens + config.action_horizon)),
            steps * (weight_bytes * expert + cache),
        ),
    }


def of_gemma(c: GemmaConfig) -> int:
    """Parameters of the matrices of all layers, without what the fixed schedule has made a table of."""
    heads = c.num_heads + 2 * c.num_kv_heads
    return c.depth * (c.width * heads * c.head_dim + c.num_heads * c.head_dim * c.width + 3 * c.width * c.mlp_dim)


class Kernels(TorchDispatchMode):
    """Counts operations that compute: views do not."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += not (func.is_view or "empty" in func.name() or "detach" in func.name())
        return func(*args, **(kwargs or {}))


def kernels(config: Pi05Config, steps: int) -> int:
    """Operations of one pass of the fused engine, each of which is a kernel where nothing merges them."""
    tiny = replace(
        config,
        siglip=SiglipConfig(16, 16, config.siglip.num_hidden_layers, 2, image_size=16, patch_size=8),
        paligemma=GemmaConfig(16, config.paligemma.depth, 16, 2, 1, 8),
        action_expert=GemmaConfig(16, config.action_expert.depth, 16, 2, 1, 8),
        vocab_size=16,
    )
    model = FusedPi05(Pi05(tiny).eval(), steps)
    views = tiny.num_cameras
    tokens = torch.ones(1, 8, dtype=torch.long)
    inputs = Prompted(torch.zeros(1, views, 3, 16, 16), torch.ones(1, views, dtype=torch.bool), tokens, tokens > 0)
    noise = torch.zeros(1, tiny.action_horizon, tiny.action_dim)
    with torch.inference_mode(False), torch.no_grad(), Kernels() as counted:
        model(inputs, noise, True)
    return counted.count


def prediction(prompt: int = 64, steps: int = 10) -> str:
    """A paragraph and a table in Markdown."""
    rows = []
    for views in (2, 3):
        config = Pi05Config(num_cameras=views)
        count = kernels(config, steps)
        for precision, size in (("bfloat16", 2), ("fp8", 1)):
            for batch in (1, 2, 4, 8):
                parts = phases(config, batch, views, prompt, steps, size)
                ms = {
                    name: 1000 * part.seconds(PEAK["bfloat16" if name == "images" else precision])
                    for name, part in parts.items()
                }
                gaps = 1000 * count * GAP_S
                total = sum(ms.values()) + gaps
                cells = [f"{v:.1f}" for v in (*ms.values(), gaps, total)]
                rows.append([f"{views} views, {precision}, batch {batch}", str(count), *cells])
    said = paragraph(
        f"""**No figure of this section was measured.** A roofline of the fused engine with CUDA graphs at full size: an
        H100 SXM with {PEAK["bfloat16"] / 1e12:.0f} TFLOP/s in bfloat16, {PEAK["fp8"] / 1e12:.0f} in 8 bits and
        {BANDWIDTH / 1e12:.2f} TB/s, of which {REACHED_FLOPS:.0%} and {REACHED_BYTES:.0%} are assumed to be reached, and
        {1e6 * GAP_S:.1f} us between two kernels. A prompt of {prompt} tokens, {Pi05Config().action_horizon} actions,
        {steps} Euler steps. `kernels` is the count of operations before `torch.compile` merges any."""
    )
    head = ("case", "kernels", "images, ms", "prefix, ms", "Euler steps, ms", "gaps, ms", "all, ms")
    return f"{said}\n\n{table(head, rows)}"
