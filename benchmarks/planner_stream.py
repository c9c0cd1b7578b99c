"""Measures how long a decision of S2 takes, by how much it remembers: `generate`, a whole prompt, and what is new.

    OMP_NUM_THREADS=1 python -m benchmarks.planner_stream --out docs/benchmarks/planner_stream.md   # 15 minutes
    python -m benchmarks.planner_stream --device cuda --size 8b --keyframes 1 8 16 64 256 --out stream_8b.md

The weights are drawn at random from a config of the size that is named, what layers add is made small, and the head is
solved so that the answers are spelled like real ones. A robot shows two new images of 256 px at every question, and
nominates one of four of them as a keyframe. Its planner has a window of 5 timesteps. All paths have to give the same
tokens and, within 1e-4 of their range in float32, the same logits; the script fails if they do not.

- generate: the Hugging Face processor on the whole prompt, and transformers' `generate`.
- whole prompt: each image is encoded once and the last answer is a guess, but the prompt is read from its beginning.
- reuse: keys and values of the prompt's unchanged beginning are kept; the window is read when the question comes.
- prepared: between two questions the planner has read all that it could know of the next prompt.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import Qwen3VLForConditionalGeneration

from memory_bank import MemoryBank, MemoryConfig
from planner.caches import CacheConfig
from planner.checkpoint import PlannerSpec
from planner.decoding import QwenPlanner
from planner.inputs import Inputs
from planner.model import ObjectiveConfig
from planner.prompt import PromptConfig, chat_messages, render_answer, render_prompt, size_images
from planner.tiny.base import BaseConfig, TinyConfig, tiny_hf_config, tiny_processor
from planner.tiny.tokenizer_config import TokenizerConfig
from predimem.core.types import MemorySnapshot, Observation
from predimem.evaluation.run.machine import revision

INSTRUCTION = "Pour wine into the red mug twice, then stand the bottle back on the table."
SUBTASKS = ("pour wine into mug 1st", "pour wine into mug 2nd")
LONGEST, SMALL = 24, 0.02
STRIDE, EVERY, HZ, PIXELS = 10, 10, 20, 256
PROMPT = PromptConfig(cameras=("front", "wrist"), timestamps="gaps")
MEMORY = MemoryConfig(recent_stride_steps=STRIDE, cluster_gap_steps=1)
ONE_IN = 4  # of so many questions one brings a keyframe
TEXT = {"mrope_section": (24, 20, 20), "rope_theta": 5e6, "head_dim": 128, "image_size": PIXELS, "patch_size": 16}
SIZES = {
    "90m": TinyConfig(
        hidden_size=1024, intermediate_size=3072, layers=6, heads=8, kv_heads=2, initializer_range=0.05,
        vision_hidden_size=320, vision_intermediate_size=1280, vision_layers=6, vision_heads=5,
        deepstack_layers=(1, 2, 4), **TEXT,
    ),
    "8b": TinyConfig(
        hidden_size=4096, intermediate_size=12288, layers=36, heads=32, kv_heads=8, initializer_range=0.02,
        vision_hidden_size=1152, vision_intermediate_size=4304, vision_layers=27, vision_heads=16,
        deepstack_layers=(8, 16, 24), **TEXT,
    ),
    "tiny": TinyConfig(image_size=PIXELS, deepstack_layers=(0, 1)),
}  # fmt: skip
VOCABULARY = {"8b": 151_936}


def make_planner(size: str, device: str, caches: CacheConfig) -> tuple[QwenPlanner, list[torch.nn.Linear]]:
    """A planner with weights drawn at random, and heads that say one subtask each."""
    tokens = TokenizerConfig(vocab_size=512, instructions=(INSTRUCTION,), subtasks=SUBTASKS)
    base = BaseConfig(tiny=SIZES[size], tokenizer=tokens)
    processor = tiny_processor(base, PROMPT)
    config = tiny_hf_config(base.tiny, processor.tokenizer, ObjectiveConfig(window=5))
    text: Any = config.text_config
    text.vocab_size = VOCABULARY.get(size, text.vocab_size)
    text.max_position_embeddings = 1 << 17
    torch.manual_seed(0)
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32 if device == "cpu" else torch.bfloat16)
    try:
        with torch.device(device):
            model = Qwen3VLForConditionalGeneration(config).eval()
            for layer in model.model.language_model.layers:
                layer.self_attn.o_proj.weight.data.mul_(SMALL)
                layer.mlp.down_proj.weight.data.mul_(SMALL)
    finally:
        torch.set_default_dtype(default)
    planner = QwenPlanner(model, processor, PlannerSpec(PROMPT, MEMORY, max_new_tokens=LONGEST), caches)
    return planner, [head_that_says(planner, subtask) for subtask in SUBTASKS]


def head_that_says(planner: QwenPlanner, subtask: str) -> torch.nn.Linear:
    """A head by which each token of one answer follows from the one before, where layers add little."""
    text, tokenizer = planner._model.model.language_model, planner._tokenizer
    before = tokenizer("<|im_start|>assistant\n").input_ids[-1]
    script = [before, *tokenizer(render_answer(subtask, []) + "<|im_end|>").input_ids]
    device = planner._model.device
    hidden = text.norm(text.embed_tokens(torch.tensor(script[:-1], device=device))).float()
    logits = torch.full((len(script) - 1, text.embed_tokens.num_embeddings), -20.0, device=device)
    logits[range(len(script) - 1), script[1:]] = 0.0
    head = torch.nn.Linear(hidden.shape[1], logits.shape[1], bias=False, device=device)
    head.weight.data = (torch.linalg.pinv(hidden) @ logits).T.to(planner._model.dtype)
    return head


def speak(planners: Sequence[QwenPlanner], head: torch.nn.Linear) -> None:
    for planner in planners:
        planner._model.lm_head = planner._forward._head = head


class Robot:
    """Sees noise, and remembers every so-manieth timestep."""

    def __init__(self, name: str, seed: int):
        self.name, self._rng, self._step, self.bank = name, np.random.default_rng(seed), 0, MemoryBank(MEMORY)
        self.bank.reset(name, INSTRUCTION)
        self._asked = 0

    def go_on(self, nominate: bool) -> None:
        """Until the next question; its frame becomes a keyframe if asked."""
        for _ in range(EVERY):
            images = {name: self._rng.integers(0, 256, (PIXELS, PIXELS, 3), np.uint8) for name in PROMPT.cameras}
            if (self._step + 1) % EVERY:  # nobody looks at the images between two questions
                images = dict.fromkeys(PROMPT.cameras, np.zeros((PIXELS, PIXELS, 3), np.uint8))
            self.bank.observe(Observation(self._step, images, np.zeros(7, np.float32), self._step / HZ))
            self._step += 1
        if nominate:
            self.bank.nominate([self._step - 1])

    def fill(self, keyframes: int) -> None:
        """Remember so many keyframes, all of them older than the window, without asking for anything."""
        for missing in range(keyframes - len(self.bank.keyframe_steps) + MEMORY.recent_window, 0, -1):
            self.go_on(nominate=missing > MEMORY.recent_window)

    def questions(self) -> Iterator[MemorySnapshot]:
        while True:
            self._asked += 1
            self.go_on(nominate=self._asked % ONE_IN == 0)
            yield self.bank.snapshot()


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


class Timer:
    """Milliseconds: of processor time on the CPU, which other work hardly disturbs, else by the clock."""

    def __init__(self, device: str):
        self._device = device

    def __call__(self, work: Callable[[], Any]) -> tuple[Any, float]:
        before = self._now()
        result = work()
        return result, (self._now() - before) * 1000

    def _now(self) -> float:
        if self._device == "cpu":
            return time.process_time()
        torch.cuda.synchronize()
        return time.perf_counter()


def generated(planner: QwenPlanner, snapshot: MemorySnapshot) -> list[int]:
    """The answer of transformers' `generate` on the processor's inputs."""
    processor, model = planner._processor, planner._model
    prompt = render_prompt(snapshot, planner.spec.prompt)
    text = processor.apply_chat_template(chat_messages(prompt.messages), tokenize=False, add_generation_prompt=True)
    images = size_images(prompt.images, planner.spec.prompt)
    inputs = processor(text=[text], images=images, do_resize=False, return_tensors="pt").to(model.device)
    limits = {"max_new_tokens": planner.spec.max_new_tokens, "do_sample": False}
    output = model.generate(**inputs, **limits, eos_token_id=planner._end, pad_token_id=0)
    answer = output[0, inputs["input_ids"].shape[1] :].tolist()
    return answer[:-1] if answer[-1] == planner._end else answer


def reading_everything(planner: QwenPlanner) -> QwenPlanner:
    """The same weights; every prompt is read from its beginning, in one pass."""
    other = QwenPlanner(planner._model, planner._processor, planner.spec, replace(planner.caches, prefix_mb=0))
    inputs = other._inputs
    other._inputs = lambda *args: replace(inputs(*args), stops=[])  # type: ignore[assignment]
    return other


def measure(
    planner: QwenPlanner, heads: list[torch.nn.Linear], robot: Robot, keyframes: int, args: argparse.Namespace
) -> Row:
    """Answers at this number of keyframes and a few more, by all paths in turns."""
    timer, questions = Timer(args.device), robot.questions()
    robot.fill(keyframes)
    whole = reading_everything(planner) if keyframes <= args.whole_up_to else None
    planners = [planner] if whole is None else [planner, whole]
    logits = [first_logits_of(each) for each in planners]
    planner.prepare(robot.bank.upcoming(EVERY))
    times: dict[str, list[float]] = {name: [] for name in ("generate", "whole", "reuse", "prepared", "changed")}
    preparing, tokens, compared, difference, share = [], 0, 0, 0.0, 0.0
    for number in range(1 + args.answers + 2):  # the first one has no guess; the last two are other answers
        changed = number > args.answers
        speak(planners, heads[(number - args.answers) % 2 if changed else 0])
        snapshot = next(questions)
        said: list[list[int]] = []
        for name, asked in zip(("changed" if changed else "prepared", "whole"), planners, strict=False):
            _, ms = timer(lambda p=asked, s=snapshot: p.plan(s))
            said.append(asked._last[robot.name].tokens)
            if number and not (changed and asked is whole):
                times[name].append(ms)
        if whole is not None:
            one, other = (seen[-1] for seen in logits)
            difference = max(difference, float((one - other).abs().max() / (other.max() - other.min())))
            compared += 1
            if number in (1, 2)[: args.generated]:
                tokens_, ms = timer(lambda s=snapshot: generated(planner, s))
                said.append(tokens_)
                times["generate"].append(ms)
        if len({tuple(one) for one in said}) != 1:
            raise SystemExit(f"at {keyframes} keyframes the answers differ: {said}")
        if number == 1:
            inputs = planner._inputs(snapshot)
            tokens, share = len(inputs.tokens), attention_share(planner, inputs)
        preparing.append(timer(lambda: planner.prepare(robot.bank.upcoming(EVERY)))[1])
    speak(planners, heads[0])
    for number in range(1 + args.answers):  # nobody prepares anything
        snapshot = next(questions)
        _, ms = timer(lambda s=snapshot: planner.plan(s))
        if number:
            times["reuse"].append(ms)
    if difference > (1e-4 if args.device == "cpu" else 5e-2):
        raise SystemExit(f"at {keyframes} keyframes logits differ by {difference:.1e} of their range")
    medians = {name: float(np.median(values)) if values else float("nan") for name, values in times.items()}
    preparing_ms = float(np.median(preparing))
    return Row(
        keyframes, tokens, **medians, preparing=preparing_ms, compared=compared, difference=difference, attention=share
    )


def attention_share(planner: QwenPlanner, inputs: Inputs) -> float:
    """Of the operations that are left when a prompt is prepared, the share of attention over what is known. It grows
    with what is known; all others do not."""
    model, text = planner._model.model, planner._model.config.text_config
    known = inputs.ends[inputs.stops[-1] - 1]
    new = len(inputs.tokens) - known
    patches = sum(
        4 * picture.rows * picture.columns for picture in inputs.pictures_between(inputs.stops[-1], len(inputs.content))
    )
    layers = sum(weight.numel() for weight in model.language_model.layers.parameters())
    tower = sum(weight.numel() for weight in model.visual.blocks.parameters())
    attention = 4 * new * known * text.num_attention_heads * text.head_dim * (text.num_hidden_layers - 1)
    return attention / (attention + 2 * new * layers + 2 * patches * tower)


def first_logits_of(planner: QwenPlanner) -> list[torch.Tensor]:
    """Gets the logits of the first token of each answer from now on."""
    seen: list[torch.Tensor] = []
    read = planner._reader.read

    def noted(*args: Any) -> list[torch.Tensor]:
        logits = read(*args)
        seen.append(logits[0][0].float())
        return logits

    planner._reader.read = noted  # type: ignore[method-assign]
    return seen


def tower_passes(planner: QwenPlanner, robots: int, keyframes: int) -> tuple[int, int]:
    """(questions, timesteps through the tower) of so many robots that ask in turns, when all is known once."""
    asking = []
    for number in range(robots):
        robot = Robot(f"robot-{number}", 100 + number)
        robot.fill(keyframes)
        asking.append(robot.questions())
    for questions in asking:
        planner.plan(next(questions))
    before = planner._images.computed
    for _ in range(2):
        for questions in asking:
            planner.plan(next(questions))
    return 2 * robots, planner._images.computed - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--size", default="90m", choices=SIZES)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--keyframes", type=int, nargs="*", default=[1, 8, 16, 64, 256])
    parser.add_argument("--answers", type=int, default=5)
    parser.add_argument("--generated", type=int, default=1, help="calls of `generate`, up to 2")
    parser.add_argument("--whole-up-to", type=int, default=64, help="keyframes; with more, whole prompts are left out")
    parser.add_argument("--robots", type=int, default=4, help="0: leave the robots in turns out")
    parser.add_argument("--out", type=Path, help="the page to write")
    args = parser.parse_args()
    with torch.inference_mode():
        planner, heads = make_planner(args.size, args.device, CacheConfig(prefix_mb=8192))
        parameters = sum(weight.numel() for weight in planner._model.parameters())
        robot, rows = Robot("robot", 0), []
        for keyframes in sorted(args.keyframes):
            rows.append(measure(planner, heads, robot, keyframes, args))
            print(rows[-1], flush=True)
        planner.forget("robot")
        gc.collect()
        asked, computed = tower_passes(planner, args.robots, 32) if args.robots else (0, 0)
    page = report(args, parameters, rows, asked, computed)
    print(page)
    if args.out:
        args.out.write_text(page)


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
        "took the time in the last column. What is left is the newest timestep, the question and the answer.",
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


if __name__ == "__main__":
    main()
