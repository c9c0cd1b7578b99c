"""The choice of a Vulkan driver, on file trees made by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from predimem.rendering.vulkan import SWIFTSHADER_ICD, VulkanError, find_driver, use_driver


def manifest(path: Path, library: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": {"library_path": library}}))
    return path


def touch(path: Path, content: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def swiftshader(prefix: Path) -> Path:
    icd = prefix / SWIFTSHADER_ICD
    library = touch(icd.parent / "libvk_swiftshader.so", b"\x7fELF")
    return manifest(icd, str(library))


def lavapipe(root: Path, version: bytes) -> Path:
    touch(root / "usr/lib/x86_64-linux-gnu/libvulkan_lvp.so", b"\0\0Mesa " + version + b" (LLVM 19.1)\0")
    return manifest(root / "usr/share/vulkan/icd.d/lvp_icd.json", "libvulkan_lvp.so")


def render_node(root: Path, vendor: str) -> None:
    touch(root / "dev/dri/renderD128")
    touch(root / "sys/devices/0000:00:02.0/vendor", vendor.encode() + b"\n")
    (root / "sys/class/drm/renderD128").mkdir(parents=True)
    (root / "sys/class/drm/renderD128/device").symlink_to(root / "sys/devices/0000:00:02.0")


def test_nothing_there(tmp_path: Path) -> None:
    driver = find_driver({}, tmp_path, tmp_path / "venv")
    assert (driver.kind, driver.icd) == ("none", None)
    assert "no SwiftShader at" in driver.detail


def test_swiftshader_of_the_environment(tmp_path: Path) -> None:
    icd = swiftshader(tmp_path / "venv")
    driver = find_driver({}, tmp_path, tmp_path / "venv")
    assert (driver.kind, driver.icd, driver.by_loader, driver.device) == ("swiftshader", icd, False, "pci:0")


def test_swiftshader_of_a_browser(tmp_path: Path) -> None:
    touch(tmp_path / "usr/lib/chromium/libvk_swiftshader.so")
    icd = manifest(tmp_path / "usr/lib/chromium/vk_swiftshader_icd.json", "./libvk_swiftshader.so")
    assert find_driver({}, tmp_path, tmp_path / "venv").icd == icd


def test_swiftshader_manifest_of_a_moved_checkout(tmp_path: Path) -> None:
    manifest(tmp_path / SWIFTSHADER_ICD, "/moved/away/libvk_swiftshader.so")
    driver = find_driver({}, tmp_path, tmp_path)
    assert driver.kind == "none"
    assert "names a library that does not exist" in driver.detail


@pytest.mark.parametrize(("version", "kind"), [(b"22.3.6", "swiftshader"), (b"24.3.0", "lavapipe")])
def test_lavapipe_needs_24_3(tmp_path: Path, version: bytes, kind: str) -> None:
    swiftshader(tmp_path / "venv")
    icd = lavapipe(tmp_path, version)
    driver = find_driver({}, tmp_path, tmp_path / "venv")
    assert driver.kind == kind
    assert (driver.icd == icd) == (kind == "lavapipe")
    assert kind == "lavapipe" or "lavapipe is 22.3" in driver.detail


def test_nvidia_needs_node_and_manifest(tmp_path: Path) -> None:
    swiftshader(tmp_path / "venv")
    touch(tmp_path / "dev/nvidia0")
    without = find_driver({}, tmp_path, tmp_path / "venv")
    assert without.kind == "swiftshader"
    assert "NVIDIA_DRIVER_CAPABILITIES" in without.detail
    manifest(tmp_path / "usr/share/vulkan/icd.d/nvidia_icd.i686.json", "libGLX_nvidia.so.0")
    assert find_driver({}, tmp_path, tmp_path / "venv").kind == "swiftshader"
    icd = manifest(tmp_path / "usr/share/vulkan/icd.d/nvidia_icd.json", "libGLX_nvidia.so.0")
    driver = find_driver({}, tmp_path, tmp_path / "venv")
    assert (driver.kind, driver.icd, driver.by_loader, driver.device) == ("gpu", icd, True, "cuda:0")


def test_nvidia_manifest_that_the_loader_does_not_see(tmp_path: Path) -> None:
    touch(tmp_path / "dev/nvidia3")
    icd = manifest(tmp_path / "usr/local/nvidia/share/vulkan/icd.d/nvidia_icd.json", "libGLX_nvidia.so.0")
    driver = find_driver({}, tmp_path, tmp_path)
    assert (driver.kind, driver.icd, driver.by_loader) == ("gpu", icd, False)


def test_intel_gpu(tmp_path: Path) -> None:
    render_node(tmp_path, "0x8086")
    icd = manifest(tmp_path / "usr/share/vulkan/icd.d/intel_icd.json", "libvulkan_intel.so")
    driver = find_driver({}, tmp_path, tmp_path)
    assert (driver.kind, driver.icd, driver.device) == ("gpu", icd, "pci:0000:00:02.0")


def test_virtual_gpu_is_none(tmp_path: Path) -> None:
    render_node(tmp_path, "0x1af4")  # virtio: Mesa's manifests for real cards are there all the same
    manifest(tmp_path / "usr/share/vulkan/icd.d/intel_icd.json", "libvulkan_intel.so")
    assert find_driver({}, tmp_path, tmp_path).kind == "none"


@pytest.mark.parametrize("variable", ["VK_ICD_FILENAMES", "VK_DRIVER_FILES"])
def test_the_user_is_never_overruled(tmp_path: Path, variable: str) -> None:
    icd = manifest(tmp_path / "lvp_icd.json", "libvulkan_lvp.so")
    touch(tmp_path / "dev/nvidia0")
    manifest(tmp_path / "usr/share/vulkan/icd.d/nvidia_icd.json", "libGLX_nvidia.so.0")
    driver = find_driver({variable: str(icd)}, tmp_path, tmp_path)
    assert (driver.kind, driver.icd, driver.by_loader) == ("lavapipe", icd, True)
    missing = find_driver({variable: "/none/icd.json"}, tmp_path, tmp_path)
    assert missing.kind == "none"
    assert variable in missing.detail


def test_use_driver_says_how_to_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VK_DRIVER_FILES", raising=False)
    monkeypatch.setenv("VK_ICD_FILENAMES", "/none/icd.json")
    with pytest.raises(VulkanError, match="make setup"):
        use_driver()


def test_use_driver_twice_on_this_machine() -> None:
    """In a process of its own, as the environment changes; the second call changes nothing."""
    script = (
        "import os, sys; from predimem.rendering.vulkan import use_driver; first = use_driver();"
        "before = dict(os.environ); second = use_driver(); assert dict(os.environ) == before;"
        "assert (first.kind, first.device) == (second.kind, second.device);"
        "assert 'sapien' not in sys.modules"
    )
    environ = {k: v for k, v in os.environ.items() if not k.startswith("VK_")}
    subprocess.run([sys.executable, "-c", script], env=environ, check=True)
