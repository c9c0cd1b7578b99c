"""The page of `benchmarks.planner_stream`: what was measured at each number of keyframes, as Markdown."""

from __future__ import annotations

import argparse
import os
import platform
import resource
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.random_planner import MEMORY, PIXELS
from predimem.evaluation.run.machine import revision


@dataclass
class Row:
    """Milliseconds at one number of keyframes; NaN where it was not measured.

    changed: prepared, where the answer is another than the last one. compared: answers that had the same tokens.
    difference: the largest between logits, in parts of their range.
    attention: the share of attention over the known prompt in the operations of a prepared answer, by arithmetic.
    """

    keyframes: int
    tokens: int
    generate: float
    whole: float
    reuse: float
    prepared: float
    changed: float
    preparing: float
    compared: int
    difference: float
    attention: float


def report(args: argparse.Namespace, parameters: int, rows: list[Row], asked: int, computed: int) -> str:
    """The page, as Markdown."""
    by_keyframes = {row.keyframes: row for row in rows}
    lines = [
        "# How long a decision takes, by how much is remembered",
        "",
        f"Made with `python -m benchmarks.planner_stream --size {args.size} --device {args.device}`: "
        f"{parameters / 1e6:.0f} million parameters drawn at random, two images of {PIXELS} px a timestep, a window of "
        f"{MEMORY.recent_window}. Times are the medians of {args.answers} "
        "answers in milliseconds, "
        + (
            f"of processor time of {torch.get_num_threads()} thread on {_processor()} in float32."
            if args.device == "cpu"
            else f"by the clock on {torch.cuda.get_device_name()} in bfloat16."
        )
        + f" Revision {(revision()[0] or 'unknown')[:7]}.",
        "",
        "| keyframes | tokens | `generate` | whole prompt | reuse | prepared | ratio | another answer | preparing "
        "| attention, % |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        values = (row.generate, row.whole, row.reuse, row.prepared)
        ratio = row.whole / row.prepared
        cells = [f"{value:.0f}" if value == value else "" for value in values]
        cells += [f"{ratio:.1f}" if ratio == ratio else "", f"{row.changed:.0f}", f"{row.preparing:.0f}"]
        cells.append(f"{100 * row.attention:.0f}")
        lines.append(f"| {row.keyframes} | {row.tokens} | {' | '.join(cells)} |")
    lines += [
        "",
        "- **`generate`** is the Hugging Face processor on the whole prompt and transformers' `generate`.",
        "- **Whole prompt:** each image is encoded once and the last answer is a guess, but the prompt is read from "
        "its beginning.",
        "- **Reuse:** keys and values of the prompt's unchanged beginning are kept; the window is read when the "
        "question comes.",
        "- **Prepared:** between two questions the planner has read all that it could know of the next prompt, which "
        "took the time in the column `preparing`. What is left is the newest timestep, the question and the answer.",
        "- **Ratio** is that of whole prompt to prepared. These answers repeat the last one, as most do.",
        "- **Attention** is the share of attention over the known prompt in the operations of a prepared answer. It is "
        "what still grows with the memory, and no cache takes it away: every new token looks at all keyframes.",
        "- **Another answer** is a prepared one that names another subtask than the last one.",
        "",
        f"With up to {args.whole_up_to} keyframes the prepared answer had the tokens of the one from the whole prompt "
        f"in all {sum(r.compared for r in rows)} questions, and where `generate` was asked, its tokens as well. The "
        f"logits of the first token differed by up to {max(r.difference for r in rows):.0e} of their range.",
    ]
    if 8 in by_keyframes and 256 in by_keyframes:
        growth = by_keyframes[256].prepared / by_keyframes[8].prepared
        lines += ["", f"A prepared answer at 256 keyframes takes {growth:.1f} times as long as at 8."]
    if asked:
        lines += [
            "",
            f"{args.robots} robots with 32 keyframes each asked in turns: {computed} timesteps went through the tower "
            f"in {asked} answers, each of which showed one new timestep.",
        ]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines += ["", f"The process took {peak:.0f} MiB at its peak (load {os.getloadavg()[0]:.0f}).", ""]
    return "\n".join(lines)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor()
