"""Measures the cost of one memory tick (observe, nominate, snapshot) early and late in a long episode.

    python benchmarks/memory_tick.py [--steps 100000] [--image-size 128]

The speed is reported as a ratio within this one run: the median tick of the last tenth of the episode
over that of the first tenth. The frames come from a ring of read-only images, as a camera driver's
would, so the figures are those of the bank and not of a copy; `--copy` hands over writeable ones.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from memory_bank import MemoryBank, MemoryConfig
from predimem.core.types import Observation


def run(steps: int, size: int, copy: bool, plan_every: int, keyframe_every: int) -> None:
    ring = [np.random.default_rng(i).integers(0, 255, (size, size, 3), np.uint8) for i in range(8)]
    for image in ring:
        image.flags.writeable = copy
    bank = MemoryBank(MemoryConfig(recent_window=5, cluster_gap_steps=6))
    bank.reset("benchmark", "remember everything")
    state = np.zeros(7, np.float32)
    ticks_us = np.empty(steps)
    before_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for step in range(steps):
        images = {"agentview": ring[step % 8], "eye_in_hand": ring[(step + 1) % 8]}
        observation = Observation(step, images, state, step / 20)
        began = time.perf_counter_ns()
        bank.observe(observation)
        if step % plan_every == 0 and step > 0:
            newest = step - plan_every + 1
            bank.nominate([newest // keyframe_every * keyframe_every] if newest % keyframe_every < 5 else [])
        bank.snapshot()
        ticks_us[step] = (time.perf_counter_ns() - began) / 1000
    after_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    tenth = steps // 10
    first, last = np.median(ticks_us[:tenth]), np.median(ticks_us[-tenth:])
    print("| steps | keyframes | first tenth, median | last tenth, median | ratio | p99.9 | memory |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    print(
        f"| {steps} | {len(bank.keyframe_steps)} | {first:.1f} µs | {last:.1f} µs | {last / first:.2f} "
        f"| {np.percentile(ticks_us, 99.9):.1f} µs | +{after_mib - before_mib:.0f} MiB |"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--image-size", type=int, default=128)
    parser.add_argument("--copy", action="store_true", help="hand over writeable images: one copy each")
    parser.add_argument("--plan-every", type=int, default=5, help="control steps between plans")
    parser.add_argument("--keyframe-every", type=int, default=50, help="control steps between events")
    args = parser.parse_args()
    run(args.steps, args.image_size, args.copy, args.plan_every, args.keyframe_every)
