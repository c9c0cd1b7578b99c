"""How long an answer of the 8B planner has to take on a GPU, by how much it remembers: a roofline from its config.

    python -m benchmarks.planner_roofline --out docs/benchmarks/planner_roofline.md

No figure is measured on a GPU. Each phase takes as long as its multiplications or its memory traffic, whichever is
longer, and each kernel costs a launch. How many tokens and images are new, and how many kernels run, is counted here by
asking a planner of the same depths and tiny widths.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.actor_roofline import BANDWIDTH, PEAK, REACHED_BYTES, REACHED_FLOPS, Kernels, Phase
from benchmarks.planner_stream import EVERY, Robot
from benchmarks.random_planner import LONGEST, SIZES, make_planner, speak
from benchmarks.server.served import paragraph, table
from planner.caches import CacheConfig
from planner.tiny.base import TinyConfig
from predimem.core.files import write_text

KEYFRAMES = (1, 8, 16, 64, 256)
COUNTED = (1, 8)  # keyframes at which tokens and kernels are counted; each further one brings as many tokens
WORDS = 60  # text tokens that are new with the real vocabulary, where the tiny one has a token for each phrase
VOCABULARY = 151_936
LAUNCH_S = 5e-6  # of a kernel outside a CUDA graph, an assumption


def counted(keyframes: int) -> tuple[int, int, int, int]:
    """(known tokens, new tokens, new patches, kernels) of a prepared answer."""
    planner, heads = make_planner("8b-deep", "cpu", CacheConfig())
    speak([planner], heads[0])
    robot = Robot("robot", 0)
    questions = robot.questions()
    robot.fill(keyframes)
    planner.prepare(robot.bank.upcoming(EVERY))
    planner.plan(next(questions))  # the guess of the next answer
    planner.prepare(robot.bank.upcoming(EVERY))
    snapshot = next(questions)
    inputs = planner._inputs(snapshot)
    known = inputs.ends[inputs.stops[-1] - 1]
    pictures = inputs.pictures_between(inputs.stops[-1], len(inputs.content))
    with Kernels() as kernels:
        planner.plan(snapshot)
    patches = sum(4 * picture.rows * picture.columns for picture in pictures)
    return known, len(inputs.tokens) - known, patches, kernels.count


def phases(size: TinyConfig, known: int, new: int, patches: int) -> dict[str, Phase]:
    """Of a prepared answer whose guess is right, and of each further token of one that is another one. bfloat16."""
    heads = 2 * size.heads + 2 * size.kv_heads
    layers = size.layers * (size.hidden_size * heads * size.head_dim + 3 * size.hidden_size * size.intermediate_size)
    tower = size.vision_layers * (
        4 * size.vision_hidden_size**2 + 2 * size.vision_hidden_size * size.vision_intermediate_size
    )
    head = VOCABULARY * size.hidden_size
    cache = 2 * 2 * size.layers * size.kv_heads * size.head_dim * known
    attend = 4 * size.layers * size.heads * size.head_dim * known
    tokens = new + WORDS + LONGEST
    weights = 2 * (layers + head)
    return {
        "images": Phase(2 * tower * patches, 2 * tower),
        "what is new, and the guess": Phase((2 * layers + attend) * tokens + 2 * head * LONGEST, weights + cache),
        "another token": Phase(2 * (layers + head) + attend, weights + cache),
    }


def page() -> str:
    size, rows, answers = SIZES["8b"], [], {}
    (few, *_), (more, new, patches, kernels) = counted(COUNTED[0]), counted(COUNTED[1])
    each = (more - few) // (COUNTED[1] - COUNTED[0])
    for keyframes in KEYFRAMES:
        known = more + each * (keyframes - COUNTED[1])
        parts = {n: 1000 * p.seconds(PEAK["bfloat16"]) for n, p in phases(size, known, new, patches).items()}
        launches = 1000 * kernels * LAUNCH_S
        answer = parts["images"] + parts["what is new, and the guess"] + launches
        answers[keyframes] = answer
        cells = (parts["images"], parts["what is new, and the guess"], launches, answer, parts["another token"])
        rows.append([str(keyframes), str(known), str(new), str(kernels), *(f"{value:.1f}" for value in cells)])
    said = paragraph(
        f"""**No figure on this page was measured on a GPU**: no machine with one was at hand. It is a roofline of
        Qwen3-VL-8B in bfloat16 on an H100 SXM with {PEAK["bfloat16"] / 1e12:.0f} TFLOP/s and
        {BANDWIDTH / 1e12:.2f} TB/s, of which {REACHED_FLOPS:.0%} and {REACHED_BYTES:.0%} are assumed to be reached,
        and {1e6 * LAUNCH_S:.0f} us for each kernel. Two images of 256 px a timestep, a window of 5, prompts prepared
        between two questions. Tokens and kernels are counted on a planner of the same depths whose vocabulary has a
        token for each phrase; {WORDS} text tokens and an answer of {LONGEST} are added."""
    )
    head = (
        "keyframes", "known tokens", "new tokens", "kernels", "images, ms", "new and guess, ms", "launches, ms",
        "answer, ms", "another token, ms",
    )  # fmt: skip
    return f"""# What a decision of the 8B planner should take on an H100

Made with `python -m benchmarks.planner_roofline`. `python -m benchmarks.planner_stream --device cuda --size 8b`
measures it where there is a GPU; [planner_stream](planner_stream.md) has what a CPU takes.

{said}

{table(head, rows)}

- **Answer** is one whose guess, the last answer, is right: the images of the newest timestep go through the tower, and
  what is new, the question and the guess are read in one pass over the weights.
- **Another token** is each token behind the place where an answer leaves the guess. Those are read one by one, in a
  CUDA graph, whose gaps between kernels are left out.
- Launches are added, as if none of them overlapped with computing.
- Attention over what is known is what grows. On a CPU it is most of the work at 256 keyframes; here such an answer
  takes {answers[256] / answers[8]:.1f} times as long as at 8.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="the page to write; default: print it")
    given = parser.parse_args()
    text = page()
    print(text) if given.out is None else write_text(given.out, text)


if __name__ == "__main__":
    main()
