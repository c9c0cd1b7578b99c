"""`predimem doctor`: what this machine has, what is missing, and what to do about it."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from predimem.core import weight_files
from predimem.rendering import vulkan

CHECKOUT = Path(__file__).parents[2]
SHIPPED_WEIGHTS = (
    *("planner", "planner-no-head", "planner-no-keyframes", "actor"),
    *("arena-planner", "arena-planner-no-head", "arena-planner-recent", "arena-planner-text", "arena-planner-video"),
    *("arena-planner-corrected", "arena-planner-recent-corrected", "arena-actor-corrected"),
    *("arena-planner-varied", "arena-planner-untrained", "arena-actor", "mikasa-planner", "mikasa-actor"),
    *("mikasa-sequences-planner", "mikasa-sequences-actor", "interference-reader", "interference-robomme-planner"),
    *("robomme-planner", "robomme-planner-recent", "robomme-planner-video", "robomme-planner-uniform", "robomme-actor"),
)
# What the simulation cannot be imported without: library, and its package in Debian and Ubuntu.
SYSTEM_LIBRARIES = {
    "libX11.so.6": "libx11-6",
    "libGL.so.1": "libgl1",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgomp.so.1": "libgomp1",
}
# What playing an episode of RememberColor imports, by distribution name.
REQUIRED = ("torch", "transformers", "sapien", "mani-skill", "mikasa-robo-suite", "imageio-ffmpeg")
MIN_MEMORY_GIB = 4.0  # one environment worker with its models takes about 2
MIN_DISK_GIB = 2.0
RENDER_TIMEOUT_S = 120
_SETUP = "make setup"


@dataclass(frozen=True)
class Finding:
    """One line of the table. "FAIL": the demo cannot run; "note": it can, but look at this."""

    name: str
    state: Literal["ok", "note", "FAIL"]
    found: str
    mend: str = ""


def run() -> int:
    """Print each finding as soon as it is there. Returns 0, or 1 if something must be mended."""
    findings = []
    for finding in examine():
        print(f"{finding.state:<5} {finding.name:<13} {finding.found}", flush=True)
        findings.append(finding)
    todo = [f for f in findings if f.mend]
    if todo:
        print("\nWhat to do:")
        for finding in todo:
            print(f"  {finding.name}: {finding.mend}")
    failed = sum(f.state == "FAIL" for f in findings)
    print(f"\n{failed} of {len(findings)} must be mended" if failed else "\nEverything needed is here.")
    return int(failed > 0)


def examine() -> Iterator[Finding]:
    """All findings, the quick ones first. Looks and renders one image; changes nothing."""
    yield python_version()
    yield packages(CHECKOUT / "constraints.txt")
    yield libraries()
    yield processor()
    yield memory()
    yield disk(Path.cwd())
    yield weights(weight_files.EMBEDDED)
    yield ffmpeg()
    yield torch_device()
    driver = vulkan.find_driver()
    yield vulkan_driver(driver)
    if driver.kind != "none":
        yield render()


def python_version() -> Finding:
    found = f"{platform.python_version()} ({sys.executable})"
    if (3, 11) <= sys.version_info[:2] <= (3, 12):
        return Finding("python", "ok", found)
    return Finding("python", "FAIL", found, "use Python 3.11 or 3.12: make setup PYTHON=/path/to/python3.11")


def packages(constraints: Path) -> Finding:
    """Installed versions against the pins of the checkout, and whether the required ones are there."""
    missing = [name for name in REQUIRED if _version(name) is None]
    if missing:
        return Finding("packages", "FAIL", f"missing: {', '.join(missing)}", _SETUP)
    if not constraints.is_file():
        return Finding("packages", "ok", "all there (no checkout, so no pins to compare with)")
    pins = [line.split("==") for line in constraints.read_text().split() if "==" in line]
    installed = [(name, pin, version) for name, pin in pins if (version := _version(name)) is not None]
    other = [f"{name} {version} (pinned: {pin})" for name, pin, version in installed if version != pin]
    if other:
        return Finding("packages", "note", f"{len(other)} not as pinned: {'; '.join(other[:5])}", _SETUP)
    return Finding("packages", "ok", f"{len(installed)} installed as pinned, torch {_version('torch')}")


def libraries() -> Finding:
    missing = [package for library, package in SYSTEM_LIBRARIES.items() if not _loads(library)]
    if missing:
        command = f"sudo apt-get install {' '.join(missing)}"
        return Finding("libraries", "FAIL", f"missing: {', '.join(missing)}", command)
    return Finding("libraries", "ok", f"{', '.join(SYSTEM_LIBRARIES.values())}")


def processor() -> Finding:
    return Finding("cores", "ok", f"{len(os.sched_getaffinity(0))} usable, {platform.machine()}")


def memory() -> Finding:
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    free = int(lines["MemAvailable"].split()[0]) / 2**20
    found = f"{free:.1f} GiB available"
    if free < MIN_MEMORY_GIB:
        return Finding("memory", "note", found, f"close programs: a worker wants {MIN_MEMORY_GIB:.0f} GiB")
    return Finding("memory", "ok", found)


def disk(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free / 2**30
    found = f"{free:.1f} GiB free in {folder}"
    if free < MIN_DISK_GIB:
        return Finding("disk", "note", found, f"free some: episodes and videos want {MIN_DISK_GIB:.0f} GiB")
    return Finding("disk", "ok", found)


def weights(root: Path) -> Finding:
    """The shipped weights by name and short hash; the hash is the one that results.json names."""
    folders = {name: root / name for name in SHIPPED_WEIGHTS}
    missing = [name for name, folder in folders.items() if not list(folder.glob("*.safetensors"))]
    if missing:
        return Finding(
            "weights",
            "FAIL",
            f"missing in {root}: {', '.join(missing)}",
            "restore them (`git checkout predimem/weights`), or train with `predimem train`",
        )
    hashes = (f"{name} {weight_files.weights_hash(folder)[:8]}" for name, folder in folders.items())
    size = sum(p.stat().st_size for f in folders.values() for p in f.rglob("*") if p.is_file()) / 1e6
    return Finding("weights", "ok", f"{', '.join(hashes)} ({size:.1f} MB)")


def ffmpeg() -> Finding:
    try:
        import imageio_ffmpeg

        return Finding("ffmpeg", "ok", f"{imageio_ffmpeg.get_ffmpeg_version()}, through imageio")
    except (ImportError, RuntimeError, OSError) as error:
        return Finding("ffmpeg", "FAIL", f"not usable: {error}", _SETUP)


def torch_device() -> Finding:
    try:
        import torch
    except (ImportError, OSError) as error:
        return Finding("torch", "FAIL", f"cannot be imported: {error}", _SETUP)
    if torch.cuda.is_available():
        return Finding("torch", "ok", f"{torch.__version__} on {torch.cuda.get_device_name(0)}")
    return Finding("torch", "ok", f"{torch.__version__} on the CPU, {torch.get_num_threads()} threads")


def vulkan_driver(driver: vulkan.Driver) -> Finding:
    if driver.kind == "none":
        mend = "tools/swiftshader.sh .venv/share/predimem/swiftshader (part of `make setup`)"
        return Finding("vulkan", "FAIL", f"no driver: {driver.detail}", mend)
    place = f", {driver.icd}" if driver.icd else ""
    return Finding("vulkan", "ok", f"{driver.kind}: {driver.detail}{place}")


def render(python: str = sys.executable) -> Finding:
    """Render one image in a process of its own: a driver that is broken may end the process."""
    command = [python, "-c", "from predimem.cli.doctor import render_cube; print(render_cube())"]
    started = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=RENDER_TIMEOUT_S, cwd=CHECKOUT)
    except subprocess.TimeoutExpired:
        return Finding("rendering", "FAIL", f"no image within {RENDER_TIMEOUT_S} s", _render_advice())
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return Finding("rendering", "FAIL", f"exit {done.returncode}: {reason[:200]}", _render_advice())
    seconds = time.perf_counter() - started
    return Finding("rendering", "ok", f"{done.stdout.splitlines()[-1]}; {seconds:.1f} s with start-up")


def _render_advice() -> str:
    return (
        "the driver is there but does not work with SAPIEN. Try SwiftShader: tools/swiftshader.sh "
        ".venv/share/predimem/swiftshader, then export "
        f"VK_ICD_FILENAMES={Path(sys.prefix) / vulkan.SWIFTSHADER_ICD}"
    )


def render_cube(size_px: int = 64) -> str:
    """Render a red cube with SAPIEN, check that it is seen, and say on what and how fast (ms)."""
    driver = vulkan.use_driver()
    import numpy as np
    import sapien

    device = sapien.Device(driver.device)
    scene = sapien.Scene([sapien.physx.PhysxCpuSystem(), sapien.render.RenderSystem(device)])
    scene.set_ambient_light([0.5, 0.5, 0.5])
    material = sapien.render.RenderMaterial(base_color=[1.0, 0.0, 0.0, 1.0])
    builder = scene.create_actor_builder()
    builder.add_box_visual(half_size=(0.1, 0.1, 0.1), material=material)
    builder.set_initial_pose(sapien.Pose([1.0, 0.0, 0.0]))
    builder.build_static("cube")
    camera = scene.add_camera("camera", size_px, size_px, fovy=1.0, near=0.01, far=10.0)
    # Without a table of its own SAPIEN computes one, which takes a software driver 10 s and more.
    table = np.full((16, 16, 4), 0.5, np.float32)
    lut = sapien.render.RenderTexture(table, 2, "R32G32B32A32Sfloat", 1, "linear", "edge", False)
    camera.set_texture("BRDFLUT", lut)
    _take(scene, camera)  # the first image also makes the pipelines
    started = time.perf_counter()
    image = _take(scene, camera)
    seconds = time.perf_counter() - started
    red, green, blue = (float(c) for c in image[size_px // 2, size_px // 2, :3])
    if not red > 0.2 > max(green, blue):
        raise RuntimeError(f"expected a red cube in the middle, got RGB ({red:.2f}, {green:.2f}, {blue:.2f})")
    return f"SAPIEN on {device.name}: {size_px} px image in {1000 * seconds:.0f} ms"


def _take(scene: Any, camera: Any) -> Any:
    scene.update_render()
    camera.take_picture()
    return camera.get_picture("Color")


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution).split("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
