"""Measures one answer of S2: the path of transformers and ours, side by side in one run, and in batches.

    OMP_NUM_THREADS=1 python benchmarks/planner_latency.py            # a tiny planner of the arena's config
    python benchmarks/planner_latency.py --planner DIR --device cuda  # any exported planner, such as the 8B model

A robot's memory is filled with random images (no two alike) until it has `--keyframes`; then the planner is asked
every `--every` control steps. Without `--planner` the weights are random, with a head that is solved to say two
subtasks in turn, each `--change-every` times: what is computed is what a trained planner computes. Both paths must
give the same answers; the script fails if they do not.

stock: the Hugging Face processor on the whole prompt, transformers' forward, one token at a time.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

from memory_bank import MemoryBank
from planner.checkpoint import PlannerSpec
from planner.decoding import QwenPlanner, load_planner
from planner.export import export_planner
from planner.model import ObjectiveConfig
from planner.prompt import PromptConfig, chat_messages, follow_memory, render_answer, render_prompt, size_images
from planner.tiny.base import BaseConfig, make_tiny_base
from predimem.core.config import from_dict
from predimem.core.types import MemorySnapshot, Observation

INSTRUCTION = "Pour wine into the red mug twice, then stand the bottle back on the table."
SUBTASKS = ("pour wine into mug 1st", "pour wine into mug 2nd")


def tiny_planner(folder: Path, path: str) -> tuple[QwenPlanner, list[torch.nn.Linear]]:
    """A planner of this training config with random weights, and heads that say one subtask each."""
    config = follow_memory(yaml.safe_load(Path(path).read_text()))
    base = from_dict(BaseConfig, config["base"], "base")
    tokens = replace(
        base.tokenizer, instructions=(INSTRUCTION,), subtasks=SUBTASKS
    )  # training takes them from the data
    base = replace(base, tokenizer=tokens)
    prompt = from_dict(PromptConfig, config["prompt"], "prompt")
    spec = replace(PlannerSpec(), max_new_tokens=config["max_new_tokens"])
    memory = from_dict(type(spec.memory), config["memory"], "memory")
    make_tiny_base(folder / "base", base, prompt, ObjectiveConfig(window=prompt.recent_window), None, seed=0)
    export_planner(folder / "base", folder / "export", replace(spec, prompt=prompt, memory=memory), torch.float32)
    planner = load_planner(folder / "export")
    return planner, [_head(planner, subtask) for subtask in SUBTASKS]


def _head(planner: QwenPlanner, subtask: str) -> torch.nn.Linear:
    """A head by which each token of one answer follows from the one before, attention and MLPs adding nothing."""
    text, tokenizer = planner._model.model.language_model, planner._tokenizer
    for layer in text.layers:
        layer.self_attn.o_proj.weight.data.zero_()
        layer.mlp.down_proj.weight.data.zero_()
    before = tokenizer("<|im_start|>assistant\n").input_ids[-1]
    script = [before, *tokenizer(render_answer(subtask, []) + "<|im_end|>").input_ids]
    with torch.no_grad():
        hidden = text.norm(text.embed_tokens(torch.tensor(script[:-1])))
        logits = torch.full((len(script) - 1, text.embed_tokens.num_embeddings), -20.0)
        logits[range(len(script) - 1), script[1:]] = 0.0
        head = torch.nn.Linear(hidden.shape[1], logits.shape[1], bias=False)
        head.weight.data = (torch.linalg.pinv(hidden) @ logits).T
    return head


def robot(spec: PlannerSpec, seed: int, size: int, keyframes: int, every: int) -> Iterator[MemorySnapshot]:
    """What one robot's planner is asked, for ever."""
    rng, bank, step = np.random.default_rng(seed), MemoryBank(spec.memory), 0
    bank.reset(f"robot-{seed}", INSTRUCTION)
    apart = spec.memory.cluster_gap_steps + 1
    warm_up = keyframes * apart + spec.memory.window_steps
    while True:
        images = {name: rng.integers(0, 256, (size, size, 3), np.uint8) for name in spec.prompt.cameras}
        bank.observe(Observation(step, images, np.zeros(7, np.float32), step / 20))
        if step % apart == 0 and step < keyframes * apart:
            bank.nominate([step])
        if step >= warm_up and step % every == 0:
            yield bank.snapshot()
        step += 1


def stock_answer(planner: QwenPlanner, processor: Any, snapshot: MemorySnapshot) -> list[int]:
    """Greedy decoding with transformers, without its `generate`, which takes longer still."""
    prompt, model = render_prompt(snapshot, planner.spec.prompt), planner._model
    text = processor.apply_chat_template(chat_messages(prompt.messages), tokenize=False, add_generation_prompt=True)
    images = size_images(prompt.images, planner.spec.prompt)
    inputs = processor(text=[text], images=images, do_resize=False, return_tensors="pt").to(model.device)
    outputs = model(**inputs, use_cache=True, logits_to_keep=1)
    position, tokens = inputs["input_ids"].shape[1] + int(model.model.rope_deltas[0]), []
    while (token := int(outputs.logits[0, -1].argmax())) != planner._end:
        tokens.append(token)
        if len(tokens) >= planner.spec.max_new_tokens:
            break
        outputs = model(
            input_ids=torch.tensor([[token]], device=model.device),
            past_key_values=outputs.past_key_values,
            position_ids=torch.full((3, 1, 1), position, device=model.device),
            use_cache=True,
        )
        position += 1
    return tokens


def timed(work: Callable[[], Any], device: str) -> tuple[Any, float]:
    """Result and milliseconds: of processor time on the CPU, which other work hardly disturbs, else by the clock."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    before = clock()
    result = work()
    return result, (clock() - before) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--planner", help="an exported planner; its answers are its own")
    parser.add_argument("--config", default="configs/planner/arena.yaml", help="of the tiny planner")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--image-size", type=int, default=128)
    parser.add_argument("--answers", type=int, default=25)
    parser.add_argument("--keyframes", type=int, default=9)
    parser.add_argument("--every", type=int, default=10, help="control steps between answers")
    parser.add_argument("--change-every", type=int, default=12, help="answers until the tiny planner's subtask changes")
    parser.add_argument("--robots", type=int, nargs="*", default=[2, 4, 8])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        heads: list[torch.nn.Linear] = []
        if args.planner:
            planner = load_planner(args.planner, args.device)
        else:
            planner, heads = tiny_planner(Path(folder), args.config)
        run(planner, heads, args)


def run(planner: QwenPlanner, heads: list[torch.nn.Linear], args: argparse.Namespace) -> None:
    processor = planner._inputs._processor
    asked = robot(planner.spec, 0, args.image_size, args.keyframes, args.every)

    def answer(index: int) -> tuple[MemorySnapshot, list[int], float, float, bool]:
        """(what was asked, the tokens, ms of the stock model, our ms, whether it differs from the last answer)."""
        if heads:
            speak(planner, heads[index // args.change_every % 2])
        snapshot, before = next(asked), said(planner)
        wanted, stock_ms = timed(lambda s=snapshot: stock_answer(planner, processor, s), args.device)
        _, ours_ms = timed(lambda s=snapshot: planner.plan(s), args.device)
        if said(planner) != wanted:
            raise SystemExit(f"answer {index} differs: stock {wanted}, ours {said(planner)}")
        return snapshot, wanted, stock_ms, ours_ms, before != wanted

    first_ms = answer(0)[3]  # the first one of an episode has every image to look at
    answers = [answer(index) for index in range(1, args.answers + 1)]
    snapshot, wanted = answers[-1][:2]
    inputs = planner._inputs(snapshot)
    old, new, changes = (np.array([a[column] for a in answers]) for column in (2, 3, 4))
    print(f"{len(inputs.tokens)} tokens, {len(inputs.pictures)} images; answers of {len(wanted)} tokens\n")
    print("| answer | n | stock, ms | ours, ms | ratio |\n| --- | ---: | ---: | ---: | ---: |")
    for name, rows in (("as the last one", ~changes), ("another", changes)):
        if rows.any():
            print(f"| {name} | {rows.sum()} | {_row(old[rows], new[rows])} |")
    print(f"| first of all | 1 | {_row(old, np.array([first_ms]))} |")
    print("\n| robots | one by one, ms an answer | in a batch, ms an answer | ratio |\n| ---: | ---: | ---: | ---: |")
    for robots in args.robots:
        alone, together = batches(planner, robots, args)
        print(f"| {robots} | {alone:.1f} | {together:.1f} | {alone / together:.2f} |")


def _row(old_ms: np.ndarray, new_ms: np.ndarray) -> str:
    old, new = float(np.median(old_ms)), float(np.median(new_ms))
    return f"{old:.1f} | {new:.1f} | {old / new:.1f}"


def batches(planner: QwenPlanner, robots: int, args: argparse.Namespace) -> tuple[float, float]:
    """Median ms of an answer, one by one and in a batch, in turns."""
    asked = [robot(planner.spec, 1 + i, args.image_size, i % args.keyframes, args.every) for i in range(robots)]
    alone, together = [], []
    for index in range(2 * max(2, args.answers // robots)):
        snapshots = [next(a) for a in asked]
        if index % 2:
            alone.append(timed(lambda s=snapshots: [planner.plan(x) for x in s], args.device)[1])
        else:
            together.append(timed(lambda s=snapshots: planner.plan_batch(s), args.device)[1])
    return float(np.median(alone[1:])) / robots, float(np.median(together[1:])) / robots


def said(planner: QwenPlanner) -> list[int] | None:
    """The tokens of robot 0's last answer."""
    last = planner._last.get("robot-0")
    return last.tokens if last else None


def speak(planner: QwenPlanner, head: torch.nn.Linear) -> None:
    planner._model.lm_head = planner._forward._head = head


if __name__ == "__main__":
    main()
