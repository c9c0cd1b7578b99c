"""AnyGrasp's interfaces, with a stand-in for its library: the SDK itself was not run."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from datagen.grasp import anygrasp
from datagen.grasp.anygrasp import AnyGraspConfig, AnyGraspDetector, AnyGraspUnavailable
from datagen.grasp.gripper import TIP_M
from datagen.grasp.make import GraspConfig, make_detector
from datagen.grasp.types import PointCloud
from tests.datagen.grasp import standin_gsnet
from tests.datagen.grasp.clouds import box, in_world, seen, table

OLD = "\ndel create_detector\n"


@pytest.fixture
def sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder as of the SDK, with the stand-in as its library."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, anygrasp.MODULE, raising=False)
    shutil.copy(standin_gsnet.__file__, tmp_path / "gsnet.py")
    (tmp_path / "license").mkdir()
    (tmp_path / "weights.tar").write_bytes(b"")
    yield tmp_path
    sys.modules.pop(anygrasp.MODULE, None)


def config(sdk: Path) -> AnyGraspConfig:
    return AnyGraspConfig(sdk_dir=str(sdk), checkpoint="weights.tar")


def scene() -> PointCloud:
    return seen(box((0.022, 0.022, 0.05)), table())


@pytest.mark.parametrize("old", [False, True], ids=["create_detector", "AnyGrasp"])
def test_only_grasps_of_the_target_from_above_are_kept(sdk: Path, old: bool) -> None:
    if old:
        (sdk / "gsnet.py").write_text(Path(standin_gsnet.__file__).read_text() + OLD)
    detector = make_detector(GraspConfig(detector="anygrasp", anygrasp=config(sdk)))
    cloud = scene()
    vars(sys.modules["gsnet"])["STRAIGHT_DOWN"] = -cloud.up
    (grasp,) = detector.detect(cloud)
    tcp, rotation = in_world(grasp)
    np.testing.assert_allclose(rotation[:, 0], [0, 0, -1], atol=1e-6)
    assert tcp[2] + TIP_M == pytest.approx(0.10 - standin_gsnet.DEPTH_M + 2 * TIP_M, abs=1e-4)
    assert grasp.depth_m == pytest.approx(standin_gsnet.DEPTH_M - TIP_M)
    assert (grasp.width_m, grasp.score) == (0.05, 0.4)


def test_the_target_and_straight_down_are_asked_for(sdk: Path) -> None:
    cloud = scene()
    AnyGraspDetector(config(sdk)).detect(cloud)
    asked = sys.modules["gsnet"].seen
    assert np.array_equal(asked["region_steering"], cloud.target)
    np.testing.assert_allclose(asked["approach_steering"], -cloud.up)
    assert asked["collision_detection"] is True


def test_none_found(sdk: Path) -> None:
    cloud = seen(box((0.005, 0.005, 0.005)))
    assert len(cloud.points_m) < 50
    assert AnyGraspDetector(config(sdk)).detect(cloud) == []


def test_without_the_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, anygrasp.MODULE, None)  # as where it is not installed
    with pytest.raises(AnyGraspUnavailable, match=r"gsnet cannot be loaded.*anygrasp_sdk.*detector: antipodal"):
        AnyGraspDetector(AnyGraspConfig())
    with pytest.raises(AnyGraspUnavailable, match="is no folder"):
        AnyGraspDetector(AnyGraspConfig(sdk_dir=str(tmp_path / "nowhere")))


@pytest.mark.parametrize("old", [False, True], ids=["create_detector", "AnyGrasp"])
def test_without_a_licence(sdk: Path, old: bool) -> None:
    if old:
        (sdk / "gsnet.py").write_text(Path(standin_gsnet.__file__).read_text() + OLD)
    (sdk / "license").rmdir()
    with pytest.raises(AnyGraspUnavailable, match=r"licen[cs]e.*apply for it.*detector: antipodal"):
        AnyGraspDetector(config(sdk))


def test_without_the_checkpoint(sdk: Path) -> None:
    (sdk / "weights.tar").unlink()
    with pytest.raises(AnyGraspUnavailable, match=r"weights\.tar does not exist"):
        AnyGraspDetector(config(sdk))
