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
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.planner_stream_page import Row, report
from benchmarks.random_planner import INSTRUCTION, MEMORY, PIXELS, PROMPT, SIZES, make_planner, speak
from memory_bank import MemoryBank
from planner.caches import CacheConfig
from planner.decoding import QwenPlanner
from planner.inputs import Inputs
from planner.prompt import chat_messages, render_prompt, size_images
from predimem.core.types import MemorySnapshot, Observation

EVERY, HZ = 10, 20  # control steps between two questions, and in a second
ONE_IN = 4  # of so many questions one brings a keyframe


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


if __name__ == "__main__":
    main()
