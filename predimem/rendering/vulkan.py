"""Which Vulkan driver SAPIEN renders with: a GPU's, a recent lavapipe, or SwiftShader.

Call `use_driver()` before sapien is imported. The order of preference:

1. What the user names in `VK_DRIVER_FILES` or `VK_ICD_FILENAMES` is never overruled.
2. A GPU: a device node together with a driver manifest for it. A node alone does not count:
   containers often get an NVIDIA card for computing, without its graphics libraries.
3. lavapipe (Mesa's software driver) from 24.3, which first offers `VK_KHR_external_semaphore_fd`,
   without which SAPIEN does not start.
4. SwiftShader, which `tools/setup.sh` puts under `<prefix>/share/predimem/swiftshader/`, or the
   copy that an installed Chromium or Chrome brings.

Only files are looked at (a few milliseconds, no subprocess); `predimem doctor` renders for real.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from predimem.core.faults import SetupError

Kind = Literal["gpu", "lavapipe", "swiftshader", "none"]

LAVAPIPE_MIN_VERSION = (24, 3)
SWIFTSHADER_ICD = Path("share/predimem/swiftshader/vk_swiftshader_icd.json")  # below sys.prefix

_USER_VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")  # the loader prefers the first
# Where the Vulkan loader looks for manifests by itself, and where it does not but they may lie.
_LOADER_FOLDERS = ("etc/xdg", "usr/local/etc", "etc", "usr/local/share", "usr/share")
_OTHER_FOLDERS = ("usr/local/nvidia/share",)
_BROWSERS = ("usr/lib/chromium", "usr/lib64/chromium-browser", "opt/google/chrome")
_LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib")
_MESA_VENDORS = {"0x8086": "intel", "0x1002": "radeon", "0x10de": "nouveau"}  # PCI vendor: manifest name
_SETUP = "run `make setup`, which fetches SwiftShader (no GPU and no root needed), then `predimem doctor`"


class VulkanError(SetupError, RuntimeError):
    """No Vulkan driver that SAPIEN can render with; the message says how to get one."""


@dataclass(frozen=True)
class Driver:
    """A Vulkan driver that was found, and why it was chosen.

    icd: its manifest; None where there is none to name (kind "none", several named by the user, or an NVIDIA driver for
    which SAPIEN writes the manifest).
    by_loader: the Vulkan loader finds it unaided.
    device: its name for `sapien.Device` and ManiSkill's `render_backend`.
    """

    kind: Kind
    icd: Path | None
    detail: str
    by_loader: bool = False
    device: str = "pci:0"


def use_driver() -> Driver:
    """Make SAPIEN render with the driver of `find_driver`; call it before importing sapien.

    Sets `VK_ICD_FILENAMES` where the Vulkan loader would not choose that driver by itself; child
    processes inherit it, and a second call changes nothing. Raises VulkanError if there is none.
    """
    driver = find_driver()
    if driver.kind == "none":
        raise VulkanError(f"no Vulkan driver to render with: {driver.detail}; {_SETUP}")
    if driver.icd is not None and not driver.by_loader:
        os.environ["VK_ICD_FILENAMES"] = str(driver.icd)
    return driver


def find_driver(
    environ: Mapping[str, str] | None = None, root: str | Path = "/", prefix: str | Path | None = None
) -> Driver:
    """The driver to render with, by looking at files only. Never raises: kind "none" says why.

    environ, root and prefix default to this process's environment, file system and sys.prefix.
    """
    environ = os.environ if environ is None else environ
    root, prefix = Path(root), Path(sys.prefix if prefix is None else prefix)
    for variable in _USER_VARIABLES:
        if environ.get(variable):
            return _named_by_user(variable, environ[variable])
    passed_over: list[str] = []
    for search in (_nvidia, _mesa_gpu, _lavapipe):
        found = search(root, passed_over)
        if found is not None:
            return found
    return _swiftshader(root, prefix, passed_over)


def _named_by_user(variable: str, value: str) -> Driver:
    paths = [Path(part) for part in value.split(os.pathsep) if part]
    missing = [str(path) for path in paths if not path.is_file()]
    if missing:
        return Driver("none", None, f"{variable} names {missing[0]}, which is not there: unset or correct it")
    name = paths[0].name.lower()
    kind: Kind = "swiftshader" if "swiftshader" in name else "lavapipe" if name.startswith("lvp") else "gpu"
    device = "cuda:0" if "nvidia" in name else "pci:0"
    return Driver(kind, paths[0] if len(paths) == 1 else None, f"named by {variable}", True, device)


def _nvidia(root: Path, passed_over: list[str]) -> Driver | None:
    nodes = sorted((root / "dev").glob("nvidia[0-9]*"))
    if not nodes:
        return None
    for icd, by_loader in _manifests(root, "nvidia_icd"):
        return Driver("gpu", icd, f"NVIDIA GPU ({nodes[0]})", by_loader, "cuda:0")
    for folder in _LIBRARIES:
        if (root / folder / "libGLX_nvidia.so.0").exists():
            return Driver("gpu", None, f"NVIDIA GPU ({nodes[0]}), SAPIEN's manifest", True, "cuda:0")
    passed_over.append(
        f"{nodes[0]} is there but NVIDIA's Vulkan driver is not (in a container, pass NVIDIA_DRIVER_CAPABILITIES=all)"
    )
    return None


def _mesa_gpu(root: Path, passed_over: list[str]) -> Driver | None:
    for node in sorted((root / "dev/dri").glob("renderD*")):
        vendor_file = root / "sys/class/drm" / node.name / "device/vendor"
        vendor = vendor_file.read_text().strip() if vendor_file.is_file() else "unknown"
        name = _MESA_VENDORS.get(vendor)
        if name is None:
            passed_over.append(f"{node} is of PCI vendor {vendor}, not Intel, AMD or NVIDIA")
            continue
        for icd, by_loader in _manifests(root, f"{name}_icd"):
            address = vendor_file.parent.resolve().name  # the PCI address, such as 0000:00:02.0
            return Driver("gpu", icd, f"{name} GPU ({node})", by_loader, f"pci:{address}")
        passed_over.append(f"{node} has no Vulkan driver (Debian: mesa-vulkan-drivers)")
    return None


def _lavapipe(root: Path, passed_over: list[str]) -> Driver | None:
    for icd, _ in _manifests(root, "lvp_icd"):
        version = _mesa_version(root, icd)
        if version is not None and version >= LAVAPIPE_MIN_VERSION:
            return Driver("lavapipe", icd, f"Mesa {version[0]}.{version[1]}, software rendering")
        found = "an unknown version" if version is None else f"{version[0]}.{version[1]}"
        passed_over.append(f"lavapipe is {found}, SAPIEN needs 24.3 or newer")
    return None


def _swiftshader(root: Path, prefix: Path, passed_over: list[str]) -> Driver:
    candidates = [prefix / SWIFTSHADER_ICD, *(root / b / "vk_swiftshader_icd.json" for b in _BROWSERS)]
    for icd in candidates:
        library = _library_of(icd)
        if library is not None and (icd.parent / library).is_file():
            return Driver("swiftshader", icd, "; ".join(["software rendering", *passed_over]))
        if icd.is_file():
            passed_over.append(f"{icd} names a library that does not exist")
    return Driver("none", None, "; ".join([*passed_over, f"no SwiftShader at {candidates[0]}"]))


def _manifests(root: Path, stem: str) -> Iterator[tuple[Path, bool]]:
    """Manifests `<stem>*.json` for this machine, and whether the loader looks in their folder."""
    for folder in (*_LOADER_FOLDERS, *_OTHER_FOLDERS):
        for icd in sorted((root / folder / "vulkan/icd.d").glob(f"{stem}*.json")):
            if not re.search(r"i[36]86", icd.name):
                yield icd, folder in _LOADER_FOLDERS


def _library_of(icd: Path) -> str | None:
    try:
        return str(json.loads(icd.read_text())["ICD"]["library_path"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _mesa_version(root: Path, icd: Path) -> tuple[int, int] | None:
    """Mesa's (major, minor) as lavapipe's library carries it, or None if it cannot be told."""
    library = _library_of(icd)
    if library is None:
        return None
    if library.startswith("/"):
        places = [root / library.lstrip("/")]
    else:
        places = [icd.parent / library] if "/" in library else [root / p / library for p in _LIBRARIES]
    for place in places:
        if not place.is_file() or place.stat().st_size == 0:
            continue
        with place.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            match = re.search(rb"Mesa (\d+)\.(\d+)\.\d", content)
            return (int(match[1]), int(match[2])) if match else None
    return None
