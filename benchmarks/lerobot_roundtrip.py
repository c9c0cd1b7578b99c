"""Read an export with several versions of LeRobot and train on it: `python -m benchmarks.lerobot_roundtrip --help`.

For each version a virtual environment is made (about 6 GB), since none fits beside ours, and the tests in
tests/datagen/export/test_lerobot_itself.py run with it: they compare what LeRobot reads with the episodes and run
`lerobot-train` for three steps.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEST = "tests/datagen/export/test_lerobot_itself.py"
VERSIONS = ("0.4.4=3.11", "0.6.1=3.12")


def main() -> None:
    parser = argparse.ArgumentParser(description="Read an export with several versions of LeRobot.")
    parser.add_argument(
        "versions",
        nargs="*",
        default=VERSIONS,
        metavar="VERSION=PYTHON",
        help="a version of LeRobot and the interpreter for it, as uv finds it: 3.12, or a path (default: %(default)s)",
    )
    parser.add_argument("--venvs", type=Path, default=Path("runs/lerobot"), help="where the environments are kept")
    arguments = parser.parse_args()
    failed = [pair for pair in arguments.versions if not check(pair, arguments.venvs)]
    sys.exit(f"failed: {', '.join(failed)}" if failed else None)


def check(pair: str, venvs: Path) -> bool:
    version, _, python = pair.partition("=")
    interpreter = venvs.resolve() / version / "bin/python"
    uv = Path(sys.executable).with_name("uv")
    if not interpreter.with_name("lerobot-train").exists():
        subprocess.run([uv, "venv", "--clear", "--python", python or "3.12", interpreter.parents[1]], check=True)
        package = f"lerobot[training]=={version}"  # versions without this extra have its packages anyway
        subprocess.run([uv, "pip", "install", "--python", interpreter, package], check=True)
    print(f"LeRobot {version}", flush=True)
    environment = {**os.environ, "PREDIMEM_LEROBOT_PYTHON": str(interpreter)}
    command = [sys.executable, "-m", "pytest", "-v", "-m", "slow", TEST]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode == 0


if __name__ == "__main__":
    main()
