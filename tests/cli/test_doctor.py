"""Each finding on inputs with a known answer, and the real thing on this machine."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from predimem.cli import doctor
from predimem.rendering.vulkan import Driver


def test_packages_as_pinned(tmp_path: Path) -> None:
    pins = tmp_path / "constraints.txt"
    pins.write_text(f"numpy=={importlib.metadata.version('numpy')}\nnot-installed==1.0\n")
    finding = doctor.packages(pins)
    assert (finding.state, finding.mend) == ("ok", "")
    assert finding.found.startswith("1 installed as pinned")


def test_packages_not_as_pinned(tmp_path: Path) -> None:
    pins = tmp_path / "constraints.txt"
    pins.write_text("numpy==0.0.1\n")
    finding = doctor.packages(pins)
    assert finding.state == "note"
    assert "(pinned: 0.0.1)" in finding.found
    assert finding.mend == "make setup"


def test_the_pins_are_whole_and_name_no_address() -> None:
    lines = (doctor.CHECKOUT / "constraints.txt").read_text().splitlines()
    assert all(line.count("==") == 1 and "/" not in line and " " not in line for line in lines)
    names = [line.split("==")[0] for line in lines]
    assert len(set(names)) == len(names)


def test_missing_weights_say_which(tmp_path: Path) -> None:
    for name in doctor.SHIPPED_WEIGHTS[:-1]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(b"weights")
    finding, last = doctor.weights(tmp_path), doctor.SHIPPED_WEIGHTS[-1]
    assert finding.state == "FAIL"
    assert finding.found.endswith(f": {last}")
    (tmp_path / last).mkdir()
    (tmp_path / last / "model.safetensors").write_bytes(b"weights")
    assert doctor.weights(tmp_path).state == "ok"


def test_missing_system_library_says_which_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "SYSTEM_LIBRARIES", {"libnone.so.0": "libnone0"})
    finding = doctor.libraries()
    assert (finding.state, finding.mend) == ("FAIL", "sudo apt-get install libnone0")


def test_no_driver_says_what_to_run() -> None:
    finding = doctor.vulkan_driver(Driver("none", None, "nothing found"))
    assert finding.state == "FAIL"
    assert "swiftshader.sh" in finding.mend


def test_a_driver_that_breaks_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VK_ICD_FILENAMES", "/none/icd.json")
    monkeypatch.delenv("VK_DRIVER_FILES", raising=False)
    finding = doctor.render()
    assert finding.state == "FAIL"
    assert "/none/icd.json, which is not there" in finding.found


def test_a_image_is_rendered_on_this_machine() -> None:
    finding = doctor.render()
    assert finding.state == "ok", f"{finding.found}\n{finding.mend}"
    assert "64 px image in" in finding.found


def test_run_counts_what_must_be_mended(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    bad = doctor.Finding("disk", "FAIL", "0 GiB", "free some")
    good = doctor.Finding("cores", "ok", "2")
    monkeypatch.setattr(doctor, "examine", lambda: iter([good, bad]))
    assert doctor.run() == 1
    assert "disk: free some" in capsys.readouterr().out
    monkeypatch.setattr(doctor, "examine", lambda: iter([good]))
    assert doctor.run() == 0
