"""Measures one pass of S1: the plain model and the engines in turns, in one run, and predicts the full size on a GPU.

    OMP_NUM_THREADS=1 python -m benchmarks.actor_latency --out docs/benchmarks/actor_latency.md
    python -m benchmarks.actor_latency --device cuda --size full --dtype bfloat16   # with a GPU: the figures themselves

shipped     the actors that come with PrediMem, from an observation to a chunk
sized       a π0.5 with random weights, from prepared inputs to a chunk: `--size 50m` (58 million parameters), `full`
prediction  the full size on an H100 by a roofline. It is a prediction; nothing was run there.

`CPU, ms` is the processor time of the thread, which other work on the machine disturbs less than the clock on the wall;
both are medians. The ratio is that of the medians of processor time (on a GPU, of the time on the wall), plain to
engine. `error` is the largest difference of a normalised action from the plain model's in float32; for the shipped
actors it is in physical units.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from actor.engine.config import EngineConfig
from actor.engine.precision import set_precision
from actor.engine.sampler import make_sampler
from actor.gemma import GemmaConfig
from actor.pi05 import Pi05, Pi05Config, Prompted
from actor.policy import load_policy
from actor.siglip import SiglipConfig
from benchmarks.actor_roofline import prediction
from benchmarks.server.served import Begun, paragraph, table
from predimem.core.types import Observation
from predimem.core.weight_files import weights_folder

SIZES = {
    "50m": Pi05Config(
        siglip=SiglipConfig(384, 1536, 8, 6, image_size=128, patch_size=16),
        paligemma=GemmaConfig(512, 8, 2048, 8, 1, 64),
        action_expert=GemmaConfig(256, 8, 1024, 8, 1, 64),
        vocab_size=8192,
    ),
    "full": Pi05Config(),
}
ENGINES = {
    "plain": EngineConfig(),
    "fused": EngineConfig("fused"),
    "openvino": EngineConfig("openvino"),
    "openvino, buckets": EngineConfig("openvino", prompt_bucket=16),
    "openvino, bfloat16": EngineConfig("openvino", dtype="bfloat16", prompt_bucket=16),
    "plain, bfloat16": EngineConfig(dtype="bfloat16"),
    "fused, bfloat16": EngineConfig("fused", dtype="bfloat16", prompt_bucket=16),
    "fused, bfloat16, compiled": EngineConfig("fused", dtype="bfloat16", prompt_bucket=16, compile=True),
    "fused, bfloat16, fp8": EngineConfig("fused", dtype="bfloat16", prompt_bucket=16, fp8=True),
}
HEAD = ("engine", "wall, ms", "CPU, ms", "ratio", "error")
Timed = list[tuple[float, float]]


def in_turns(passes: dict[str, Callable[[], Any]], rounds: int, cuda: bool) -> dict[str, Timed]:
    """(wall, processor) milliseconds of each pass, all in turns, after three each to warm up."""
    times: dict[str, Timed] = {name: [] for name in passes}
    for number in range(rounds + 3):
        for name, run in passes.items():
            wall_s, cpu_s = time.perf_counter(), time.thread_time()
            run()
            if cuda:
                torch.cuda.synchronize()
            if number >= 3:
                times[name].append((1000 * (time.perf_counter() - wall_s), 1000 * (time.thread_time() - cpu_s)))
    return times


def rows(times: dict[str, Timed], errors: dict[str, float], cuda: bool) -> list[list[str]]:
    medians = {name: np.median(np.array(t), axis=0) for name, t in times.items()}
    which = 0 if cuda else 1
    base = medians["plain"][which]
    return [
        [name, f"{wall:.1f}", f"{cpu:.1f}", f"{base / (wall, cpu)[which]:.2f}", f"{errors[name]:.1e}"]
        for name, (wall, cpu) in medians.items()
    ]


def shipped(rounds: int, engines: list[str]) -> str:
    parts = []
    for name in ("actor", "arena-actor"):
        folder = weights_folder(None, name)
        policies = {engine: load_policy(folder, engine=ENGINES[engine]) for engine in engines}
        config, rng = policies["plain"].config, np.random.default_rng(0)
        images = {c: rng.integers(0, 256, (*config.camera_shape, 3), dtype=np.uint8) for c in config.cameras}
        state = rng.uniform(-0.3, 0.3, config.state_dim).astype(np.float32)
        observation = Observation(0, images, state)

        def infer(policy: Any, observation: Observation = observation) -> np.ndarray:
            return policy.infer(observation, "pick up the red cube").actions

        plain = infer(policies["plain"])
        errors = {engine: float(np.abs(infer(policy) - plain).max()) for engine, policy in policies.items()}
        times = in_turns({e: lambda p=p: infer(p) for e, p in policies.items()}, rounds, False)
        parts.append(f"### `{name}`, {config.num_steps} Euler steps\n\n{table(HEAD, rows(times, errors, False))}")
    return "\n\n".join(parts)


def sized(args: argparse.Namespace) -> str:
    config, cuda = SIZES[args.size], args.device.startswith("cuda")
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)

    def model(dtype: str) -> Pi05:
        torch.manual_seed(0)
        with torch.device(args.device):
            made = Pi05(config).eval()
        with torch.no_grad():
            for weight in made.action_expert.parameters():  # adaRMS starts as the identity
                weight.add_(torch.randn(weight.shape, generator=generator.manual_seed(1)).to(weight) * 0.01)
        return set_precision(made, torch.bfloat16 if dtype == "bfloat16" else torch.float32)

    b, c = args.batch, config
    mask = torch.ones(b, args.prompt_tokens, dtype=torch.bool)
    inputs = Prompted(
        torch.rand(b, c.num_cameras, 3, c.image_size, c.image_size, generator=generator).to(args.device) * 2 - 1,
        torch.ones(b, c.num_cameras, dtype=torch.bool, device=args.device),
        torch.randint(3, c.vocab_size, (b, args.prompt_tokens), generator=generator).to(args.device),
        mask.to(args.device),
    )
    noise = torch.randn(b, c.action_horizon, c.action_dim, generator=generator).to(args.device)
    passes, errors, plain = {}, {}, None
    for name in args.engines:
        engine = ENGINES[name]
        sampler = make_sampler(model(engine.weights_dtype), args.steps, engine, args.device)
        actions = sampler.sample(inputs, noise)
        plain = actions if plain is None else plain
        errors[name] = float((actions - plain).abs().max())
        passes[name] = lambda sampler=sampler: sampler.sample(inputs, noise)
    count = sum(weight.numel() for weight in model("float32").parameters()) / 1e6
    times = in_turns(passes, args.rounds, cuda)
    said = paragraph(
        f"""{count:.0f} million parameters at random, {c.num_cameras} cameras of {c.image_size} px, a prompt of
        {args.prompt_tokens} tokens, {c.action_horizon} actions, {args.steps} Euler steps, batch {b}, {args.device},
        {args.rounds} passes each."""
    )
    return f"{said}\n\n{table(HEAD, rows(times, errors, cuda))}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=["shipped", "sized", "prediction"], default=None)
    parser.add_argument("--size", choices=list(SIZES), default="50m")
    parser.add_argument("--engines", nargs="+", default=None, choices=list(ENGINES), help="plain has to be the first")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--steps", type=int, default=10, help="Euler steps")
    parser.add_argument("--prompt-tokens", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    begun = Begun.now()
    parts = args.parts or ["shipped", "sized", "prediction"]
    given = args.engines
    text = []
    if "shipped" in parts:
        text.append("## The actors that come with PrediMem\n\n" + shipped(args.rounds, given or list(ENGINES)[:3]))
    if "sized" in parts:
        names = [name for name in ENGINES if name not in ("openvino", "fused, bfloat16, compiled")]
        on_gpu = args.device.startswith("cuda")
        args.engines = given or [name for name in names if not (on_gpu and "openvino" in name)]
        text.append(f"## Size {args.size}\n\n" + sized(args))
    if "prediction" in parts:
        text.append("## The full size on an H100: a prediction\n\n" + prediction())
    head = (
        "# One pass of the actor\n\nMade with `python -m benchmarks.actor_latency`, whose code says what is measured."
    )
    page = "\n\n".join([head, paragraph(begun.line()), *text]) + "\n"
    print(page)
    if args.out:
        args.out.write_text(page)


if __name__ == "__main__":
    main()
