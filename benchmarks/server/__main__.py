"""Measures the inference server, one part at a time; with --out a part replaces its section of the table.

    python -m benchmarks.server capacity --out docs/benchmarks/server.md
    python -m benchmarks.server soak --out docs/benchmarks/server.md

capacity   robots at 20 Hz until replies come too late         kills     kill -9 and restart, what is remembered
overhead   what a request costs beside the model, against      cluster   replicas behind the Ray gateway
           openpi's loop around the same policy                hostile   messages that mean harm
soak       memory over an hour

Run it in the checkout: the servers of the tests are used here, too. Needs the packages of `predimem[dev]`. Figures of
a busy machine are worse than those of a quiet one; each section says what else ran.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = {  # module -> its section
    "capacity": "Robots at 20 Hz",
    "overhead": "Cost of a request",
    "soak": "Memory over time",
    "kills": "Kills",
    "hostile": "Hostile messages",
    "cluster": "Replicas on Ray",
}
HEAD = """# Figures of the inference server

Made with `python -m benchmarks.server capacity` (or `overhead`, `soak`, `kills`, `hostile`, `cluster`), whose code says
what is measured; `--out FILE` replaces the part's section. The sections were made on machines of two cores, on several
days, and each gives the load of its machine.
"""


def merged(text: str, part: str, section: str) -> str:
    """`text` with the section of this part replaced or added, in the order of `PARTS`."""
    found: dict[str, str] = {}
    for block in text.split("\n## ")[1:]:
        title, _, body = block.partition("\n")
        found[title] = body.strip("\n")
    found[PARTS[part]] = section.strip("\n")
    unknown = set(found) - set(PARTS.values())
    if unknown:
        raise SystemExit(f"sections that no part makes: {', '.join(sorted(unknown))}; expected {list(PARTS.values())}")
    return HEAD + "".join(f"\n## {title}\n\n{found[title].strip()}\n" for title in PARTS.values() if title in found)


def main() -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.chdir(ROOT)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.server", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parts = parser.add_subparsers(dest="part", required=True)
    wanted = next((word for word in sys.argv[1:] if word in PARTS), None)
    for name in PARTS:
        options = parts.add_parser(name)
        options.add_argument("--out", type=Path, help="Markdown file whose section is replaced; default: print it")
        if name == wanted:
            importlib.import_module(f"benchmarks.server.{name}").add_options(options)
    args = parser.parse_args()
    section = importlib.import_module(f"benchmarks.server.{args.part}").run(args)
    print(section)
    if args.out:
        args.out.write_text(merged(args.out.read_text() if args.out.exists() else HEAD, args.part, section))


if __name__ == "__main__":
    main()
